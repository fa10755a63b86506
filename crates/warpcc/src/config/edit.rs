//! Changes settings in the text of the settings file. Everything else in it stays as it is written: comments, order, spaces.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use warpcc_remote_client::layer_table::line_of;

use super::error::ConfigError;
use super::key::Key;
use super::setting::SettingSource;
use super::{Config, absolute, file, is_absent, settings_file};

/// The settings file as it is to be written.
#[derive(Debug, PartialEq, Eq)]
pub struct EditedFile {
    /// Where it is. Neither it nor its folder need exist.
    pub path: PathBuf,
    /// What it is to hold.
    pub text: String,
    /// What was changed, in the order of the assignments.
    pub changes: Vec<SettingChange>,
}

/// One setting that was changed.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// The key in the file.
    pub name: &'static str,
    /// The line, counted from 1; nothing where the setting was removed.
    pub line: Option<usize>,
    /// The variable that is set too, and counts in its place.
    pub overridden_by: Option<&'static str>,
}

/// Takes `assignments` (names and values) into the settings file that `env` leads to. An empty value removes the setting.
///
/// # Errors
/// A name that is no setting's, a value that its setting cannot take, a file that cannot be read or is wrong elsewhere.
pub fn edit(
    env: impl Fn(&str) -> Option<OsString>,
    assignments: &[(String, String)],
) -> Result<EditedFile, ConfigError> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let home = absolute(env("HOME"));
    let (path, _) = settings_file(env, home.as_deref()).ok_or(ConfigError::NoFile)?;
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        // A pipe would be waited for, and a device forgets what is written.
        let error = io::Error::other("it is not a regular file");
        return Err(ConfigError::Unreadable { path, error });
    }
    let mut text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if is_absent(&error) => String::new(),
        Err(error) => return Err(ConfigError::Unreadable { path, error }),
    };
    let mut keys = Vec::new();
    for (name, value) in assignments {
        let key = Key::named(name).ok_or_else(|| ConfigError::UnknownName {
            name: name.clone(),
            nearest: Key::nearest(name).name(),
        })?;
        text = with_setting(&path, &text, key, value)?;
        keys.push(key);
    }
    // What is written is what the next call reads.
    let mut read = Config::defaults();
    let mut lines = Vec::new();
    for entry in file::parse(&path, &text)? {
        if let SettingSource::File { line, .. } = &entry.source {
            lines.push((entry.key, *line));
        }
        read.set(entry.key, &entry.raw, entry.source, home.as_deref())?;
    }
    let change = |key: Key| SettingChange {
        name: key.name(),
        line: lines
            .iter()
            .find(|(in_file, _)| *in_file == key)
            .map(|(_, line)| *line),
        overridden_by: env(key.variable()).map(|_| key.variable()),
    };
    let changes = keys.into_iter().map(change).collect();
    Ok(EditedFile {
        path,
        text,
        changes,
    })
}

/// The text with `key` set to `value`, or without it where that is empty.
fn with_setting(path: &Path, text: &str, key: Key, value: &str) -> Result<String, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| file::not_toml(path, text, &error))?;
    let table = table.get_ref();
    let is_table = |value: &DeValue<'_>| matches!(value, DeValue::Table(_));
    let old = table.iter().find(|(name, _)| name.get_ref() == key.name());
    let new = (!value.is_empty()).then(|| in_toml(value));
    match (old, new) {
        (Some((name, old)), _) if is_table(old.get_ref()) => Err(ConfigError::MisplacedKey {
            path: path.to_owned(),
            line: line_of(text, &name.span()),
            key: key.name().to_owned(),
            problem: "is a table here: change it in the file",
        }),
        (Some((_, old)), Some(new)) => {
            Ok([&text[..old.span().start], &new, &text[old.span().end..]].concat())
        }
        (Some((name, old)), None) => {
            let start = text[..name.span().start].rfind('\n').map_or(0, |at| at + 1);
            Ok([&text[..start], &text[line_end(text, old.span().end)..]].concat())
        }
        (None, Some(new)) => {
            let plain = table.iter().filter(|(_, value)| !is_table(value.get_ref()));
            let last = plain
                .map(|(_, value)| line_end(text, value.span().end))
                .max();
            // Below a table's name it would be the table's.
            let first_table = table.iter().any(|(_, value)| is_table(value.get_ref()));
            let begin = text.len() - text.trim_start_matches('\u{feff}').len();
            let at = last.unwrap_or(if first_table { begin } else { text.len() });
            let (before, after) = text.split_at(at);
            let gap = match at == begin || before.ends_with('\n') {
                true => "",
                false => "\n",
            };
            Ok(format!("{before}{gap}{} = {new}\n{after}", key.name()))
        }
        (None, None) => Ok(text.to_owned()),
    }
}

/// Where the line after the place `at` begins.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// A value of a command line as TOML has it.
fn in_toml(value: &str) -> String {
    let is_flag = value == "true" || value == "false";
    let is_number = value
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == value);
    match is_flag || is_number {
        true => value.to_owned(),
        false => toml::Value::String(value.to_owned()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file's text after the assignments, or the message, with its path replaced by FILE.
    fn edited(text: &str, assignments: &[(&str, &str)]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".into()),
            "WARPCC_CONFIG" => Some(path.clone().into()),
            _ => None,
        };
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let assignments: Vec<_> = assignments.iter().map(owned).collect();
        edit(env, &assignments)
            .map(|edited| edited.text)
            .map_err(|error| error.to_string().replace(path.to_str().unwrap(), "FILE"))
    }

    #[test]
    fn comments_and_order_stay() {
        let text = "# mine\nmax_size = \"5G\"  # small disk\njobs=4\n\n# far\n[remote]\nlayers = [\"http://cache:1\"]\n";
        assert_eq!(
            edited(
                text,
                &[("jobs", "8"), ("max_size", "50G"), ("readonly", "true")]
            ),
            Ok(text
                .replace("5G", "50G")
                .replace("jobs=4\n", "jobs=8\nreadonly = true\n"))
        );
        assert_eq!(
            edited(text, &[("jobs", "")]),
            Ok(text.replace("jobs=4\n", ""))
        );
        assert_eq!(edited(text, &[("log", "")]), Ok(text.to_owned()));
    }

    #[test]
    fn a_new_setting_is_in_no_table() {
        let table = "# far\n[remote]\nlayers = [\"http://cache:1\"]\n";
        assert_eq!(
            edited(table, &[("jobs", "8")]),
            Ok(format!("jobs = 8\n{table}"))
        );
        assert_eq!(
            edited(&format!("\u{feff}{table}"), &[("jobs", "8")]),
            Ok(format!("\u{feff}jobs = 8\n{table}")),
            "behind a byte order mark"
        );
        assert_eq!(edited("", &[("jobs", "8")]), Ok("jobs = 8\n".to_owned()));
        assert_eq!(
            edited("# mine", &[("nvcc", "/a \"b\"/nvcc")]),
            Ok("# mine\nnvcc = '/a \"b\"/nvcc'\n".to_owned())
        );
    }

    #[test]
    fn a_wrong_value_is_mended() {
        assert_eq!(
            edited("jobs = \"x\"\n", &[("jobs", "3")]),
            Ok("jobs = 3\n".to_owned())
        );
        let lines = "base_dir = [\n  \"/a\", # one\n  \"/b\",\n]\njobs = 3\n";
        assert_eq!(
            edited(lines, &[("base_dir", "")]),
            Ok("jobs = 3\n".to_owned())
        );
    }

    #[test]
    fn nothing_is_written_that_is_not_understood() {
        let error = |text, name, value| edited(text, &[(name, value)]).unwrap_err();
        assert_eq!(
            error("", "jbos", "8"),
            "there is no setting `jbos`, did you mean `jobs`?"
        );
        assert_eq!(
            error("", "jobs", "many"),
            error("jobs = \"many\"\n", "log", "stderr")
        );
        let table = error(
            "[remote]\nlayers = [\"http://cache:1\"]\n",
            "remote",
            "http://cache:2",
        );
        assert_eq!(
            table,
            "FILE:1: remote is a table here: change it in the file"
        );
        assert!(error("jobs =\n", "jobs", "8").starts_with("FILE:1: not TOML"));
    }

    #[test]
    fn only_a_regular_file_is_changed() {
        let env = |name: &str| (name == "WARPCC_CONFIG").then(|| "/dev/null".into());
        let refused = edit(env, &[("jobs".to_owned(), "8".to_owned())]).unwrap_err();
        assert!(
            refused.to_string().contains("not a regular file"),
            "{refused}"
        );
    }

    #[test]
    fn a_variable_that_wins_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let env = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some(folder.path().into()),
            "WARPCC_JOBS" => Some("2".into()),
            _ => None,
        };
        let found = edit(env, &[("jobs".to_owned(), "8".to_owned())]).unwrap();
        assert_eq!(found.path, folder.path().join("warpcc/config.toml"));
        let change = SettingChange {
            name: "jobs",
            line: Some(1),
            overridden_by: Some("WARPCC_JOBS"),
        };
        assert_eq!(found.changes, [change]);
    }
}
