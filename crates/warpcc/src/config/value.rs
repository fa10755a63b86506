//! How each setting reads its value from text or from TOML.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use warpcc_path_map::BaseDirs;
use warpcc_remote_client::LayerError;
use warpcc_remote_client::layer_table::LayerTable;
use warpcc_remote_client::{Address, NotAnAddress};
use warpcc_remote_client::{Layer, config_file};

use super::environment;
use super::property::Property;
use super::setting::LogTarget;
use super::size::MaxSize;

/// A value before its setting has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Raw {
    Text(OsString),
    Integer(i64),
    Flag(bool),
    List(Vec<OsString>),
    /// Shared caches, each as the names and values of its table, `url` among them.
    Layers(Vec<LayerTable>),
    /// A kind no setting takes (a date, a table); kept as written for the message.
    Other(String),
}

impl Raw {
    /// The value as its author wrote it, near enough to be found.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.to_string_lossy().into_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| item.to_string_lossy()).collect();
                format!("[{}]", items.join(", "))
            }
            // The addresses may contain secrets.
            Self::Layers(_) => "[remote]".to_owned(),
            Self::Other(text) => text.clone(),
        }
    }

    fn utf8(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.to_str().map(str::trim),
            _ => None,
        }
    }
}

/// The problem with a value, as the rest of a sentence that begins with the value.
type Problem = &'static str;

pub(super) fn flag(raw: &Raw) -> Result<bool, Problem> {
    if let Raw::Flag(flag) = raw {
        return Ok(*flag);
    }
    let number = if let Raw::Integer(number) = raw {
        number.to_string()
    } else {
        String::new()
    };
    match raw.utf8().unwrap_or(&number).to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("is neither true nor false (write 1 or 0)"),
    }
}

pub(super) fn jobs(raw: &Raw) -> Result<NonZeroUsize, Problem> {
    let number = match raw {
        Raw::Integer(number) => usize::try_from(*number).ok(),
        _ => raw.utf8().and_then(|text| text.parse().ok()),
    };
    number
        .and_then(NonZeroUsize::new)
        .ok_or("is not a number of jobs (a whole number from 1)")
}

/// Seconds; none for 0.
pub(super) fn seconds(raw: &Raw) -> Result<Option<Duration>, Problem> {
    let seconds = match raw {
        Raw::Integer(number) => u32::try_from(*number).ok(),
        _ => raw.utf8().and_then(|text| text.parse().ok()),
    };
    let seconds: u32 = seconds.ok_or("is not a number of seconds (0 for no limit)")?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds.into())))
}

pub(super) fn max_size(raw: &Raw) -> Result<MaxSize, Problem> {
    let size = match raw {
        Raw::Integer(bytes) => u64::try_from(*bytes).ok().map(MaxSize::from_bytes),
        _ => raw.utf8().and_then(|text| text.parse().ok()),
    };
    size.ok_or("is not a size (like 5G or 500MiB; 0 for no limit)")
}

pub(super) fn text(raw: &Raw) -> Result<String, Problem> {
    match raw.utf8() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err("is not a name"),
    }
}

/// Words with commas or white space between, or a TOML list of them.
pub(super) fn words(raw: &Raw) -> Result<String, Problem> {
    let texts = match raw {
        Raw::List(items) => items.iter().map(|item| item.to_str()).collect(),
        _ => raw.utf8().map(|text| vec![text]),
    };
    match texts {
        Some(texts) if !texts.is_empty() => Ok(texts.join(",")),
        _ => Err("must be a text or a list of texts"),
    }
}

pub(super) fn path(raw: &Raw, home: Option<&Path>) -> Result<PathBuf, Problem> {
    match raw {
        Raw::Text(text) if !text.is_empty() => below_home(Path::new(text), home),
        _ => Err("is not a path"),
    }
}

pub(super) fn log(raw: &Raw, home: Option<&Path>) -> Result<LogTarget, Problem> {
    match raw.utf8() {
        Some("stderr") => Ok(LogTarget::Stderr),
        _ => path(raw, home).map(LogTarget::File),
    }
}

/// An absolute folder: compilers run in many folders and must agree on this one.
pub(super) fn folder(raw: &Raw, home: Option<&Path>) -> Result<PathBuf, Problem> {
    let path = path(raw, home)?;
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("is not an absolute path")
    }
}

/// Several absolute folders, or `auto` among them: a TOML list, or text with ':' between them.
pub(super) fn base_dirs(raw: &Raw, home: Option<&Path>) -> Result<BaseDirs, Problem> {
    let items: Vec<OsString> = match raw {
        Raw::List(items) => items.clone(),
        Raw::Text(text) => text
            .as_bytes()
            .split(|byte| *byte == b':')
            .filter(|item| !item.is_empty())
            .map(|item| OsString::from_vec(item.to_vec()))
            .collect(),
        _ => return Err("is not a list of paths, or auto"),
    };
    let mut base = BaseDirs::default();
    for item in items {
        if item == "auto" {
            base.auto = true;
        } else {
            base.folders.push(folder(&Raw::Text(item), home)?);
        }
    }
    Ok(base)
}

/// The shared caches, near to far: text with white space between them, a TOML list, or a table with a list `layers`.
/// `none` is no cache, so that a variable can turn off what a file says.
pub(super) fn layers(raw: &Raw) -> Result<Vec<Layer>, LayerError> {
    let variable =
        |name: &str| environment::variable(name).and_then(|value| value.into_string().ok());
    let wrong = |problem: &'static str| LayerError::new("remote", problem);
    let texts = match raw {
        Raw::Text(text) => vec![text.to_str()],
        Raw::List(items) => items.iter().map(|item| item.to_str()).collect(),
        Raw::Layers(tables) => {
            let layer = |table: &LayerTable| config_file::layer(table, &variable);
            return tables.iter().map(layer).collect();
        }
        _ => {
            return Err(wrong(
                "must be a URL, a list of URLs, or a table with `layers`",
            ));
        }
    };
    let texts: Option<Vec<&str>> = texts.into_iter().collect();
    config_file::parse_all(texts.ok_or_else(|| wrong("is not UTF-8"))?, &variable)
}

/// The cluster's address.
pub(super) fn address(raw: &Raw) -> Result<Address, Problem> {
    match raw.utf8().map(str::parse::<Address>) {
        Some(Ok(address)) => Ok(address),
        Some(Err(NotAnAddress::Credentials)) => {
            Err("holds a name or password; put them into executor_headers or executor_token")
        }
        _ => Err("is not grpc://HOST:PORT[/INSTANCE] or grpcs://…"),
    }
}

/// A TOML list, or text with commas between.
fn list(raw: &Raw) -> Option<Vec<String>> {
    let items: Vec<String> = match raw {
        Raw::List(items) => items
            .iter()
            .map(|i| i.to_string_lossy().into_owned())
            .collect(),
        Raw::Text(text) => {
            let text = text.to_string_lossy();
            text.split(',').map(str::to_owned).collect()
        }
        _ => return None,
    };
    let items = items.iter().map(|item| item.trim());
    let items = items.filter(|item| !item.is_empty());
    Some(items.map(str::to_owned).collect())
}

/// Tools that may be installed on workers, by their names in reports.
const TOOLS: [&str; 5] = ["host", "cudafe++", "cicc", "ptxas", "fatbinary"];

/// Names of tools.
pub(super) fn tools(raw: &Raw) -> Result<Vec<String>, Problem> {
    let items = list(raw).ok_or("is not a list of tools")?;
    if items.iter().any(|item| !TOOLS.contains(&item.as_str())) {
        return Err("is not a tool (host, cudafe++, cicc, ptxas or fatbinary)");
    }
    Ok(items)
}

/// `NAME=VALUE` for every tool, `TOOL:NAME=VALUE` for one: a TOML list, or text with commas between.
pub(super) fn properties(raw: &Raw) -> Result<Vec<Property>, Problem> {
    let items = list(raw).ok_or("is not a list of properties")?;
    (items.iter())
        .map(|item| {
            let (name, value) = item
                .split_once('=')
                .ok_or("is not NAME=VALUE or TOOL:NAME=VALUE")?;
            let (tool, name) = match name.split_once(':') {
                Some((tool, name)) => (Some(tool.to_owned()), name),
                None => (None, name),
            };
            Ok(Property {
                tool,
                name: name.to_owned(),
                value: value.to_owned(),
            })
        })
        .collect()
}

/// `~/x`: in a settings file, and in a variable that no shell has set, such as one of a CI file or a Dockerfile.
fn below_home(path: &Path, home: Option<&Path>) -> Result<PathBuf, Problem> {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Ok(home.join(rest)),
        (Ok(_), None) => Err("begins with ~, but HOME is not set to an absolute path"),
        (Err(_), _) => Ok(path.to_owned()),
    }
}
