//! The settings file: TOML in, one entry per line out, each with its place.

use std::ffi::OsString;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use warpcc_remote_client::layer_table::{self, TableError, TableProblem, line_of};

use super::error::ConfigError;
use super::key::Key;
use super::setting::SettingSource;
use super::value::Raw;

/// One setting as the file gives it.
pub(super) struct FileSetting {
    pub(super) key: Key,
    pub(super) raw: Raw,
    pub(super) source: SettingSource,
}

/// Read the text of the settings file at `path`, in the order of its lines.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<FileSetting>, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| not_toml(path, text, &error))?;
    let mut pairs: Vec<_> = table.get_ref().iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
        .into_iter()
        .map(|(key, value)| {
            let line = line_of(text, &key.span());
            let name = key.get_ref().as_ref();
            let unknown = |line, key: String, nearest: &str| ConfigError::UnknownKey {
                path: path.to_owned(),
                line,
                key,
                hint: format!(", did you mean `{nearest}`?"),
            };
            let known = Key::named(name);
            if known != Some(Key::Remote)
                && let DeValue::Table(table) = value.get_ref()
                && let Some(inner) = table.keys().min_by_key(|inner| inner.span().start)
            {
                let line = line_of(text, &inner.span());
                let nearest = Key::nearest_in(name, inner.get_ref()).name();
                return Err(unknown(
                    line,
                    format!("{name}.{}", inner.get_ref()),
                    nearest,
                ));
            }
            let known =
                known.ok_or_else(|| unknown(line, name.to_owned(), Key::nearest(name).name()))?;
            let source = SettingSource::File {
                path: path.to_owned(),
                line,
            };
            Ok(FileSetting {
                key: known,
                raw: raw_of(known, text, value).map_err(|error| in_remote(path, error))?,
                source,
            })
        })
        .collect()
}

/// The parser's error, with its place.
pub(super) fn not_toml(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| line_of(text, &span)),
        message: error.message().to_owned(),
    }
}

/// The error in `[remote]`, with its place.
fn in_remote(path: &Path, error: TableError) -> ConfigError {
    let TableError { line, key, problem } = error;
    let path = path.to_owned();
    match problem {
        TableProblem::Unknown(hint) => ConfigError::UnknownKey {
            path,
            line,
            key,
            hint,
        },
        TableProblem::Wrong(problem) => ConfigError::MisplacedKey {
            path,
            line,
            key,
            problem,
        },
    }
}

fn raw_of(key: Key, text: &str, value: &Spanned<DeValue<'_>>) -> Result<Raw, TableError> {
    let as_written = || Raw::Other(text.get(value.span()).unwrap_or_default().to_owned());
    Ok(match value.get_ref() {
        DeValue::String(string) => Raw::Text(OsString::from(string.as_ref())),
        DeValue::Boolean(flag) => Raw::Flag(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| as_written(), Raw::Integer),
        DeValue::Array(items) => {
            let strings: Option<Vec<_>> = items
                .iter()
                .map(|item| item.get_ref().as_str().map(OsString::from))
                .collect();
            strings.map_or_else(as_written, Raw::List)
        }
        DeValue::Table(table) if key == Key::Remote => {
            Raw::Layers(layer_table::read(text, &value.span(), table)?)
        }
        _ => as_written(),
    })
}
