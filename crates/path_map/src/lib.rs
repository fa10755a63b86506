//! Folders whose names do not count: a result that was made below one of them is valid in every clone of it.
//!
//! A [`PathMap`] gives each such folder a fixed name. Such a folder is mapped. Keys and records have the fixed names;
//! people and files have the real ones. The map is made once for a call and passed to the code that needs it. It works
//! on paths, text and the parts of keys, and knows no tool, no cache and no command line.
//!
//! [`discover()`] is the only function that looks at the disk: with `auto`, it asks where repositories begin.

mod discover;
mod installers;
mod map;
mod markers;
mod text;
mod work_dir;

pub use discover::{BaseDirs, CallFolders, discover};
pub use map::{BASE, PathMap};
pub use markers::{files_in_markers, is_in_marker, only_markers};
pub use work_dir::WorkDir;
