//! What is shown of a file's content: texts, tables and excerpts.

use serde::{Deserialize, Serialize};

/// Rows of a table that are kept: a cubin of a large file has thousands of kernels.
const MOST_ROWS: usize = 100;

/// A piece of what matters in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Block {
    /// A few sentences.
    Text {
        /// The sentences.
        text: String,
    },
    /// Names and values.
    Facts {
        /// The subject of the facts.
        title: String,
        /// One after the other.
        rows: Vec<NamedValue>,
    },
    /// Rows and columns.
    Table(Table),
    /// Lines of the file itself.
    Excerpt {
        /// The subject of the lines.
        title: String,
        /// The lines, from the file's own text.
        lines: Vec<Line>,
    },
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether another machine gives another value, with the same toolkit and source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub varies: bool,
}

/// Rows and columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The subject of the table.
    pub title: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// As many cells as columns in each.
    pub rows: Vec<Vec<String>>,
    /// Columns whose values another machine may give otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varies: Vec<usize>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its number in the user's source, where it comes from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Its text.
    pub text: String,
    /// Whether it is the one that matters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
}

impl Block {
    /// A few sentences.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Names and values.
    pub fn facts(title: &str, rows: Vec<NamedValue>) -> Self {
        Self::Facts {
            title: title.to_owned(),
            rows,
        }
    }

    /// Rows under `columns`.
    pub fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self::Table(Table {
            title: title.to_owned(),
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
            rows,
            varies: Vec::new(),
        })
    }

    /// The first rows under `columns`; the title says how many there are when these are not all.
    pub fn first_rows(
        title: &str,
        columns: &[&str],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let mut rows: Vec<Vec<String>> = rows.collect();
        let all = rows.len();
        rows.truncate(MOST_ROWS);
        match all > rows.len() {
            true => Self::table(
                &format!("{title} (the first {} of {all})", rows.len()),
                columns,
                rows,
            ),
            false => Self::table(title, columns, rows),
        }
    }

    /// The same table, with columns that other machines may give otherwise.
    #[must_use]
    pub fn varying(mut self, columns: &[usize]) -> Self {
        if let Self::Table(table) = &mut self {
            table.varies = columns.to_vec();
        }
        self
    }

    /// Lines without numbers.
    pub fn excerpt<S: Into<String>>(title: &str, lines: impl IntoIterator<Item = S>) -> Self {
        Self::lines(
            title,
            lines
                .into_iter()
                .map(|text| Line {
                    number: None,
                    text: text.into(),
                    marked: false,
                })
                .collect(),
        )
    }

    /// Lines.
    pub fn lines(title: &str, lines: Vec<Line>) -> Self {
        Self::Excerpt {
            title: title.to_owned(),
            lines,
        }
    }
}

impl NamedValue {
    /// A fact that is the same everywhere.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
            varies: false,
        }
    }

    /// A fact about this machine: its paths, its headers, its host compiler.
    pub fn here(name: &str, value: impl Into<String>) -> Self {
        Self {
            varies: true,
            ..Self::new(name, value)
        }
    }
}
