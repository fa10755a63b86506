//! Which files did a process look for? A preloaded library writes them down, this crate reads them back.
