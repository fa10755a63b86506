//! The shared caches that a user has named: `WARPCC_REMOTE`, else `remote` in the settings file. For programs that are not
//! warpcc itself, which reads all its settings at once; the two read each value with the same functions.
//!
//! Reads the settings file, and of the environment what it is given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::layer_names::LayerError;
use crate::layer_table::{self, LayerSetting, LayerTable, URL};
use crate::settings::{Access, Layer, layers as parse_layers};
use crate::{layer_policy, signatures};

/// The layer of one table.
///
/// # Errors
/// It has no `url`, or an error of [`Layer::parse`]; with its line.
pub fn layer(
    table: &LayerTable,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Layer, LayerError> {
    let settings = &table.settings;
    let url = settings.iter().rev().find(|setting| setting.name == URL);
    let Some(url) = url else {
        return Err(LayerError::new("a table of layers", "has no url").in_line(table.line));
    };
    let mut layer = Layer::parse(&url.value, variable).map_err(|error| error.in_line(url.line))?;
    for LayerSetting { name, value, line } in settings.iter().filter(|setting| setting.name != URL)
    {
        let set = layer.set(name, value, variable);
        set.map_err(|error| error.in_line(*line))?;
    }
    Ok(layer)
}

/// The layers of texts, each with layers near to far. `none` is no cache, so that a variable can turn off what a file says.
///
/// # Errors The error of [`Layer::parse`] for the first layer that is wrong.
pub fn parse_all<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Layer>, LayerError> {
    let mut layers = Vec::new();
    for text in texts.into_iter().filter(|text| text.trim() != "none") {
        layers.extend(parse_layers(text, variable)?);
    }
    Ok(layers)
}

/// The layers of a process with this environment, as warpcc would read them.
///
/// # Errors
/// The first error in the settings and its place, without credentials.
pub fn layers(environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Vec<Layer>, String> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let text = |name: &str| set(name).and_then(|value| value.into_string().ok());
    let file = match set("WARPCC_CONFIG") {
        Some(path) => {
            let path = PathBuf::from(path);
            let home = set("HOME").map(PathBuf::from);
            Some(
                match (
                    path.strip_prefix("~"),
                    home.filter(|home| home.is_absolute()),
                ) {
                    (Ok(rest), Some(home)) => home.join(rest),
                    _ => path,
                },
            )
        }
        None => {
            let below_home = || set("HOME").map(|home| Path::new(&home).join(".config"));
            let folder = set("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .or_else(below_home);
            folder
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join("warpcc").join("config.toml"))
        }
    };
    let InFile {
        mut layers,
        mut readonly,
        signatures: in_file,
    } = match file.map(|file| in_file(&file, &text)) {
        Some(found) => found?,
        None => InFile::default(),
    };
    if let Some(given) = set("WARPCC_REMOTE") {
        let given = given
            .into_string()
            .map_err(|_| "WARPCC_REMOTE is not UTF-8".to_owned())?;
        layers = parse_all([given.as_str()], &text)
            .map_err(|error| format!("WARPCC_REMOTE: {error}"))?;
    }
    if let Some(flag) = text("WARPCC_REMOTE_READONLY") {
        readonly = switch(&flag).ok_or("WARPCC_REMOTE_READONLY must be true or false")?;
    }
    let given = |name: &str| {
        let found = || in_file.iter().find(|(known, _)| **known == *name);
        text(name).or_else(|| found().map(|(_, value)| value.clone()))
    };
    layer_policy::apply(&mut layers, &signatures::from_variables(&given));
    if readonly {
        for layer in &mut layers {
            layer.access = Access::ReadOnly;
        }
    }
    Ok(layers)
}

/// The shared caches in a settings file.
#[derive(Default)]
struct InFile {
    layers: Vec<Layer>,
    readonly: bool,
    /// Settings of signatures, by the names of their variables.
    signatures: Vec<(&'static str, String)>,
}

fn in_file(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<InFile, String> {
    // A missing file has no settings. If it should exist, warpcc itself reports that.
    let Ok(file) = std::fs::read_to_string(path) else {
        return Ok(InFile::default());
    };
    let at = |problem: &str| format!("{}: {problem}", path.display());
    let in_line = |line: usize, problem: &str| format!("{}:{line}: {problem}", path.display());
    // The parser's message may quote the file's content.
    let table = DeTable::parse(&file).map_err(|_| at("it is not valid TOML"))?;
    let find = |name: &str| table.get_ref().get(name).map(|value| value.get_ref());
    let layers = match find("remote") {
        None => Ok(Vec::new()),
        Some(DeValue::String(text)) => parse_all([text.as_ref()], variable),
        Some(DeValue::Array(items)) => {
            let texts = items.iter().map(|item| item.get_ref().as_str());
            let texts: Option<Vec<_>> = texts.collect();
            parse_all(
                texts.ok_or_else(|| at("remote must be a list of URLs"))?,
                variable,
            )
        }
        Some(DeValue::Table(remote)) => {
            let span = table
                .get_ref()
                .get("remote")
                .map_or(0..0, |value| value.span());
            let tables = layer_table::read(&file, &span, remote)
                .map_err(|error| in_line(error.line, &error.to_string()))?;
            tables.iter().map(|table| layer(table, variable)).collect()
        }
        Some(_) => {
            return Err(at(
                "remote must be a URL, a list of URLs, or a table with `layers`",
            ));
        }
    };
    let readonly = match find("remote_readonly") {
        None => Some(false),
        Some(DeValue::Boolean(flag)) => Some(*flag),
        Some(DeValue::String(text)) => switch(text),
        Some(_) => None,
    };
    let readonly = readonly.ok_or_else(|| at("remote_readonly must be true or false"))?;
    let signatures = signatures::VARIABLES.into_iter().filter_map(|variable| {
        // In the file it has the variable's name in lower case.
        let name = variable.trim_start_matches("WARPCC_").to_lowercase();
        let text = match find(&name)? {
            DeValue::Array(items) => {
                let words = items.iter().filter_map(|item| item.get_ref().as_str());
                words.collect::<Vec<_>>().join(",")
            }
            other => other.as_str()?.to_owned(),
        };
        Some((variable, text))
    });
    let signatures = signatures.collect();
    Ok(InFile {
        layers: layers.map_err(|error| match error.line {
            Some(line) => in_line(line, &error.to_string()),
            None => at(&error.to_string()),
        })?,
        readonly,
        signatures,
    })
}

fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Vec<Layer>, String> {
        layers(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_variable_wins_over_the_file_and_readonly_over_both() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".config/warpcc");
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("config.toml");
        let text = "jobs = 3\n[remote]\ntimeout = 2\nlayers = [\"redis://near:1\", { url = \"https://far/x\", \
                    read_only = true }]\n";
        std::fs::write(&file, text).expect("written");
        let home = ("HOME", home.path().to_str().expect("text"));
        let of_file = read(&[home]).expect("layers");
        let shown: Vec<_> = of_file.iter().map(Layer::shown).collect();
        assert_eq!(shown, ["redis://near:1", "https://far/x"]);
        assert_eq!(of_file[0].answer.as_secs(), 2);
        assert_eq!(of_file[0].access, Access::ReadWrite);
        assert_eq!(of_file[1].access, Access::ReadOnly);
        let given = read(&[home, ("WARPCC_REMOTE", "file:/there")]).expect("layers");
        assert_eq!(given.len(), 1);
        assert_eq!(read(&[home, ("WARPCC_REMOTE", "none")]), Ok(Vec::new()));
        let readonly = read(&[home, ("WARPCC_REMOTE_READONLY", "1")]).expect("layers");
        assert!(
            readonly
                .iter()
                .all(|layer| layer.access == Access::ReadOnly)
        );
        let tilde = ("WARPCC_CONFIG", "~/.config/warpcc/config.toml");
        assert_eq!(read(&[home, tilde]).expect("layers").len(), 2);
        assert_eq!(read(&[]), Ok(Vec::new()));
    }

    #[test]
    fn trusted_keys_of_the_file_make_a_cache_read_only_and_the_variable_wins() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.toml");
        let config = ("WARPCC_CONFIG", file.to_str().expect("text"));
        let text = "remote = \"https://far\"\nremote_trusted_keys = [\"/a\", \"/b\"]\n";
        std::fs::write(&file, text).expect("written");
        let found = read(&[config]).expect("layers");
        assert_eq!(found[0].access, Access::ReadOnly);
        let trusted = found[0].signatures.trusted_keys.as_deref();
        assert_eq!(trusted, Some("/a,/b"));
        let none = ("WARPCC_REMOTE_TRUSTED_KEYS", "none");
        let found = read(&[config, none]).expect("layers");
        assert_eq!(found[0].access, Access::ReadWrite);
        assert!(!found[0].signatures.are_demanded());
    }

    #[test]
    fn errors_contain_no_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.toml");
        let config = ("WARPCC_CONFIG", file.to_str().expect("text"));
        for text in [
            "remote = \"u:hunter2@h\"",
            "[remote]\nlayers = [{ token = \"hunter2\" }]",
            "[remote]\nlayers = [{ url = \"http://h\", timeout = \"hunter2\" }]",
            "remote = 2",
            "remote = \"https://h|token=hunter2",
            "remote_readonly = \"hunter2\"",
        ] {
            std::fs::write(&file, text).expect("written");
            let error = read(&[config]).expect_err(text);
            assert!(
                error.contains("config.toml") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
