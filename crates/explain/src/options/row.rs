//! A row of the options' tables.

/// The place of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// There is none.
    Nothing,
    /// In the next word.
    Next,
    /// Behind the name in the same word: `-arch=sm_90`, `-Wall`.
    Rest,
    /// Either of the two.
    Either,
}

/// An option of a tool.
#[derive(Debug)]
pub struct Row {
    /// Its name, or its beginning.
    pub name: &'static str,
    /// The place of its value.
    pub takes: Takes,
    /// Its effect.
    pub means: &'static str,
}

/// A row of a table.
pub const fn row(name: &'static str, takes: Takes, means: &'static str) -> Row {
    Row { name, takes, means }
}
