//! Reads the table `[remote]` of a settings file: which settings each shared cache gets, and on which line each is.
//!
//! It knows the names of settings, and leaves their values to [`Layer::set`](crate::Layer::set).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::layer_names::{self, SETTINGS};

/// The list of shared caches in `[remote]`.
const LAYERS: &str = "layers";
/// The address of one of them.
pub(crate) const URL: &str = "url";

/// One setting of a shared cache, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSetting {
    /// Its name.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// Its line, counted from 1.
    pub line: usize,
}

/// All settings of one shared cache, `url` among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerTable {
    /// The settings; a later one replaces an earlier one.
    pub settings: Vec<LayerSetting>,
    /// The line on which its entry in `layers` begins, counted from 1.
    pub line: usize,
}

/// A mistake in `[remote]`, and where it is. It contains no value, because that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// The line, counted from 1.
    pub line: usize,
    /// The key, from the file's top: `remote.layers.tokenfile`.
    pub key: String,
    /// What is wrong with the key.
    pub problem: TableProblem,
}

/// What is wrong with a key of `[remote]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableProblem {
    /// No setting has this name. The text is the end of the message, and says which one was probably meant.
    Unknown(String),
    /// Its value is of the wrong kind, or it is in the wrong place: the rest of a sentence that begins with the key.
    Wrong(&'static str),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            TableProblem::Unknown(hint) => write!(f, "unknown setting `{}`{hint}", self.key),
            TableProblem::Wrong(problem) => write!(f, "{} {problem}", self.key),
        }
    }
}

/// Reads `[remote]`, which begins at `span` of the file's text. A setting next to `layers` is for each cache, and each cache may have another value.
///
/// # Errors
/// The first key that is unknown, or whose value is of the wrong kind.
pub fn read(
    text: &str,
    span: &Range<usize>,
    table: &DeTable<'_>,
) -> Result<Vec<LayerTable>, TableError> {
    let mut shared = Vec::new();
    let mut layers = None;
    for (name, value) in in_order(table) {
        match (name.get_ref().as_ref(), value.get_ref()) {
            (LAYERS, DeValue::Array(items)) => layers = Some(items),
            _ => shared.push(setting(text, "remote.", &[LAYERS, URL], name, value)?),
        }
    }
    let wrong = |line, key: &str, problem| TableError {
        line,
        key: key.to_owned(),
        problem: TableProblem::Wrong(problem),
    };
    let Some(layers) = layers else {
        let problem = "has no list `layers` of URLs or tables";
        return Err(wrong(line_of(text, span), "remote", problem));
    };
    if let Some(url) = shared.iter().find(|setting| setting.name == URL) {
        let problem = "is in the wrong place: write it into the list `layers`";
        return Err(wrong(url.line, "remote.url", problem));
    }
    let one = |item: &Spanned<DeValue<'_>>| {
        let line = line_of(text, &item.span());
        let mut settings = shared.clone();
        match item.get_ref() {
            DeValue::String(url) => settings.push(LayerSetting {
                name: URL.to_owned(),
                value: url.to_string(),
                line,
            }),
            DeValue::Table(own) => {
                for (name, value) in in_order(own) {
                    settings.push(setting(text, "remote.layers.", &[URL], name, value)?);
                }
            }
            _ => {
                let problem = "must be a list of URLs or tables";
                return Err(wrong(line, "remote.layers", problem));
            }
        }
        Ok(LayerTable { settings, line })
    };
    layers.iter().map(one).collect()
}

/// The line of a place in the file, counted from 1.
pub fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

type Pair<'t, 'a> = (&'t Spanned<Cow<'a, str>>, &'t Spanned<DeValue<'a>>);

/// The keys and values of a table, in the order of the file.
fn in_order<'t, 'a>(table: &'t DeTable<'a>) -> Vec<Pair<'t, 'a>> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(name, _)| name.span().start);
    pairs
}

/// One setting. `more` has the names that are valid here besides those of settings.
fn setting(
    text: &str,
    table: &str,
    more: &[&'static str],
    name: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<LayerSetting, TableError> {
    let line = line_of(text, &name.span());
    let written = name.get_ref().as_ref();
    let refuse = |problem| TableError {
        line,
        key: format!("{table}{written}"),
        problem,
    };
    if !more.contains(&written) && !layer_names::is_known(written) {
        let known = SETTINGS.iter().chain(more).copied();
        let hint = layer_names::hint(written, known);
        return Err(refuse(TableProblem::Unknown(hint)));
    }
    let value = match value.get_ref() {
        _ if written == LAYERS => Err("must be a list of URLs or tables"),
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        _ => Err("must be a text, a number, true or false"),
    };
    Ok(LayerSetting {
        name: written.to_owned(),
        value: value.map_err(|problem| refuse(TableProblem::Wrong(problem)))?,
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> (usize, String, TableProblem) {
        let table = DeTable::parse(text).expect("TOML");
        let remote = table.get_ref().get("remote").expect("the table");
        let DeValue::Table(inner) = remote.get_ref() else {
            panic!("{text}: no table");
        };
        let error = read(text, &remote.span(), inner).expect_err(text);
        (error.line, error.key, error.problem)
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest() {
        for (text, line, key, near) in [
            (
                "[remote]\nlayrs = [\"http://h\"]\n",
                2,
                "remote.layrs",
                "layers",
            ),
            (
                "jobs = 2\n[remote]\nlayers = []\nread-onli = true\n",
                4,
                "remote.read-onli",
                "read_only",
            ),
            (
                "[remote]\nlayers = [\n  \"http://a\",\n  { url = \"http://h\", tokenfile = \"hunter2\" },\n]\n",
                4,
                "remote.layers.tokenfile",
                "token_file",
            ),
            (
                "[remote]\n[[remote.layers]]\nurl = \"http://h\"\ntimout = 2\n",
                4,
                "remote.layers.timout",
                "timeout",
            ),
            (
                "[remote]\nlayers = []\n[remote.s3]\nregion = 2\n",
                3,
                "remote.s3",
                "read_only",
            ),
        ] {
            let (found_line, found_key, problem) = mistake(text);
            assert_eq!((found_line, found_key.as_str()), (line, key), "{text}");
            let TableProblem::Unknown(hint) = problem else {
                panic!("{text}: {problem:?}");
            };
            assert!(
                hint.contains(&format!("`{near}`")) && !hint.contains("hunter2"),
                "{hint}"
            );
        }
    }

    #[test]
    fn a_key_in_the_wrong_place_or_of_the_wrong_kind_is_named() {
        for (text, line, key) in [
            ("jobs = 2\n[remote]\ntimeout = 2\n", 2, "remote"),
            (
                "[remote]\nlayers = []\nurl = \"http://h\"\n",
                3,
                "remote.url",
            ),
            (
                "[remote]\nlayers = [\"http://h\"]\ntimeout = [2]\n",
                3,
                "remote.timeout",
            ),
            ("[remote]\nlayers = \"http://h\"\n", 2, "remote.layers"),
            ("[remote]\nlayers = [\n  2]\n", 3, "remote.layers"),
        ] {
            let (found_line, found_key, problem) = mistake(text);
            assert_eq!((found_line, found_key.as_str()), (line, key), "{text}");
            assert!(matches!(problem, TableProblem::Wrong(_)), "{text}");
        }
    }
}
