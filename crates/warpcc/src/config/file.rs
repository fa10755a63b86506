//! The settings file: TOML in, one entry per line out, each with its place.

use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use warpcc_remote_client::config_file::tables;

use super::error::ConfigError;
use super::key::Key;
use super::setting::SettingSource;
use super::value::Raw;

/// One setting as the file gives it.
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) raw: Raw,
    pub(super) source: SettingSource,
}

/// Read the text of the settings file at `path`, in the order of its lines.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| line_of(text, &span)),
        message: error.message().to_owned(),
    })?;
    let mut pairs: Vec<_> = table.get_ref().iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
        .into_iter()
        .map(|(key, value)| {
            let line = line_of(text, &key.span());
            let name = key.get_ref().as_ref();
            let known = Key::named(name).ok_or_else(|| ConfigError::UnknownKey {
                path: path.to_owned(),
                line,
                key: name.to_owned(),
                nearest: Key::nearest(name).name(),
            })?;
            let source = SettingSource::File {
                path: path.to_owned(),
                line,
            };
            Ok(Entry {
                key: known,
                raw: raw_of(text, value),
                source,
            })
        })
        .collect()
}

fn raw_of(text: &str, value: &Spanned<DeValue<'_>>) -> Raw {
    let as_written = || Raw::Other(text.get(value.span()).unwrap_or_default().to_owned());
    match value.get_ref() {
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
        DeValue::Table(table) => tables(table).map_or_else(as_written, Raw::Layers),
        _ => as_written(),
    }
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
