//! How a driver interprets the environment: a pure function of the variables.
//!
//! A driver reads them once, in `cuInit`. Names, meanings and defaults are those of NVIDIA's Programming Guide (section
//! on environment variables); its behaviour for an invalid value is not documented, and is marked so.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::Serialize;

use crate::remark::Remark;
use crate::typo;

/// The default of a driver of today on a desktop or a server, in bytes.
const DEFAULT_MAX: u64 = 1 << 30;
/// The default of older drivers, in bytes; which was the last is not documented.
const OLDER_MAX: u64 = 256 << 20;
/// The most that a driver takes, in bytes.
const LARGEST_MAX: u64 = 4 << 30;

/// Where the driver keeps what it compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// `CUDA_CACHE_PATH` says so.
    Given(PathBuf),
    /// `.nv/ComputeCache` in this home.
    Home(PathBuf),
    /// There is no home to keep it in.
    Nowhere,
}

impl Where {
    /// The folder, if there is one.
    pub fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Given(path) => Some(path.clone()),
            Self::Home(home) => Some(home.join(".nv/ComputeCache")),
            Self::Nowhere => None,
        }
    }
}

/// The size limit of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MaxSize {
    /// In bytes.
    pub bytes: u64,
    /// Whether `CUDA_CACHE_MAXSIZE` says so, and is understood.
    pub given: bool,
}

impl MaxSize {
    /// The default limit of older drivers, in bytes.
    pub fn of_older_drivers(self) -> u64 {
        match self.given {
            true => self.bytes,
            false => OLDER_MAX,
        }
    }

    /// The most that can be set, in bytes.
    pub fn largest() -> u64 {
        LARGEST_MAX
    }
}

/// The settings that result from the variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitSettings {
    /// `CUDA_CACHE_DISABLE` is 1.
    pub disabled: bool,
    /// The folder.
    pub place: Where,
    /// Its limit.
    pub max_size: MaxSize,
    /// `CUDA_FORCE_PTX_JIT` or `CUDA_FORCE_JIT` is 1.
    pub force_jit: bool,
    /// `CUDA_DISABLE_PTX_JIT` or `CUDA_DISABLE_JIT` is 1.
    pub disable_jit: bool,
    /// `CUDA_MODULE_LOADING` is EAGER: everything is compiled at the start, used or not.
    pub eager: bool,
    /// The home folder, to be kept from being cleared.
    pub home: Option<PathBuf>,
}

impl JitSettings {
    /// The settings that result from `variables`.
    pub fn read(variables: &[(OsString, OsString)]) -> Self {
        let value = |name: &str| get(variables, name);
        let on = |names: [&str; 2]| names.iter().any(|name| value(name).is_some_and(is_on));
        let home = value("HOME").filter(|home| !home.is_empty());
        let home = home.map(PathBuf::from);
        let path = value("CUDA_CACHE_PATH").filter(|path| !path.is_empty());
        let place = match (path, &home) {
            (Some(path), _) => Where::Given(path.into()),
            (None, Some(home)) => Where::Home(home.clone()),
            (None, None) => Where::Nowhere,
        };
        let max = value("CUDA_CACHE_MAXSIZE").and_then(number);
        Self {
            disabled: value("CUDA_CACHE_DISABLE").is_some_and(is_on),
            place,
            max_size: MaxSize {
                bytes: max.unwrap_or(DEFAULT_MAX).min(LARGEST_MAX),
                given: max.is_some(),
            },
            force_jit: on(["CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"]),
            disable_jit: on(["CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"]),
            eager: value("CUDA_MODULE_LOADING").is_some_and(|value| value == "EAGER"),
            home,
        }
    }
}

fn get<'v>(variables: &'v [(OsString, OsString)], name: &str) -> Option<&'v OsStr> {
    let found = variables.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

fn number(value: &OsStr) -> Option<u64> {
    value.to_str()?.trim().parse().ok()
}

/// 1 was seen to switch it on, and 0 is the documented default. Any other number counts as in C.
fn is_on(value: &OsStr) -> bool {
    number(value).is_some_and(|number| number != 0)
}

/// Problems with the variables, apart from the folder itself.
pub fn remarks(variables: &[(OsString, OsString)], settings: &JitSettings) -> Vec<Remark> {
    let mut found = Vec::new();
    for name in variables.iter().filter_map(|(name, _)| name.to_str()) {
        if let Some(known) = typo::meant(name) {
            found.push(Remark::fix(
                format!("{name} is set, and no driver reads it"),
                format!("it was probably meant to be {known}"),
                format!("set {known} instead"),
            ));
        }
    }
    let raw = |name: &str| get(variables, name).map(|value| value.to_string_lossy().into_owned());
    if settings.disabled {
        found.push(Remark::fix(
            "CUDA_CACHE_DISABLE is set",
            "no compiled code is stored: every start compiles everything again",
            "unset CUDA_CACHE_DISABLE",
        ));
    }
    if let Some(text) = raw("CUDA_CACHE_MAXSIZE") {
        found.extend(of_max_size(&text));
    }
    for name in [
        "CUDA_CACHE_DISABLE",
        "CUDA_FORCE_PTX_JIT",
        "CUDA_FORCE_JIT",
        "CUDA_DISABLE_PTX_JIT",
        "CUDA_DISABLE_JIT",
    ] {
        if let Some(text) = raw(name).filter(|text| !matches!(text.as_str(), "" | "0" | "1")) {
            found.push(Remark::fix(
                format!("{name} is {text:?}, which is neither 0 nor 1"),
                "NVIDIA does not document what a driver does with that",
                format!("set {name}=1, or unset it"),
            ));
        }
    }
    if let Some(text) = raw("CUDA_MODULE_LOADING")
        .filter(|text| !matches!(text.as_str(), "" | "LAZY" | "EAGER" | "DEFAULT"))
    {
        found.push(Remark::fix(
            format!("CUDA_MODULE_LOADING is {text:?}, which is neither LAZY nor EAGER"),
            "NVIDIA does not document what a driver does with that",
            "set CUDA_MODULE_LOADING=LAZY, or unset it",
        ));
    }
    if settings.force_jit {
        found.push(Remark::fix(
            "CUDA_FORCE_PTX_JIT or CUDA_FORCE_JIT is set",
            "machine code in programs and libraries is ignored, and their PTX compiled instead",
            "unset it, unless this is to test the PTX",
        ));
    }
    if settings.disable_jit {
        found.push(Remark::note(
            "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT is set",
            "nothing is compiled: a module with only PTX for a GPU fails with error 223, unless the driver's cache has it",
            "",
        ));
    }
    if settings.eager {
        found.push(Remark::note(
            "CUDA_MODULE_LOADING is EAGER",
            "all of a program's modules are compiled when it starts, used or not",
            "unset it, to compile a module when its first kernel is needed",
        ));
    }
    found.extend(of_place(settings));
    found
}

fn of_max_size(text: &str) -> Option<Remark> {
    const SET: &str = "set CUDA_CACHE_MAXSIZE to a number of bytes, at most 4294967296";
    match text.trim().parse::<u64>() {
        _ if text.is_empty() => None,
        Err(_) => Some(Remark::fix(
            format!("CUDA_CACHE_MAXSIZE is {text:?}, which is not a number of bytes"),
            "NVIDIA does not document what a driver does with that",
            SET,
        )),
        Ok(0) => Some(Remark::fix(
            "CUDA_CACHE_MAXSIZE is 0",
            "nothing fits, so every start compiles everything again",
            SET,
        )),
        Ok(bytes) if bytes > LARGEST_MAX => Some(Remark::fix(
            format!("CUDA_CACHE_MAXSIZE is {bytes}, more than a driver takes"),
            "the most is 4294967296 (4 GiB)",
            "set CUDA_CACHE_MAXSIZE=4294967296",
        )),
        Ok(_) => None,
    }
}

fn of_place(settings: &JitSettings) -> Option<Remark> {
    const SET: &str = "set CUDA_CACHE_PATH to a folder on a persistent local disk";
    let lost = "there is no folder to store results in, so every start compiles everything again";
    match &settings.place {
        Where::Nowhere => Some(Remark::fix(
            "neither HOME nor CUDA_CACHE_PATH is set",
            lost,
            SET,
        )),
        Where::Home(home) if !home.is_absolute() => Some(Remark::fix(
            format!("HOME is {}, which is not an absolute path", home.display()),
            lost,
            SET,
        )),
        Where::Given(path) if path.is_relative() => Some(Remark::fix(
            format!(
                "CUDA_CACHE_PATH is {}, which is not an absolute path",
                path.display()
            ),
            "each folder that a program is started in would get a cache of its own",
            "set CUDA_CACHE_PATH to an absolute path",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Vec<(OsString, OsString)> {
        let pairs = text.split_whitespace();
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        pairs.map(|(n, v)| (n.into(), v.into())).collect()
    }

    fn said(text: &str) -> String {
        let variables = variables(text);
        let found = remarks(&variables, &JitSettings::read(&variables));
        let lines = found.iter().map(|r| format!("{} / {}\n", r.what, r.fix));
        lines.collect()
    }

    #[test]
    fn the_folder_is_the_given_one_or_in_the_home() {
        let place = |text| JitSettings::read(&variables(text)).place.folder();
        assert_eq!(place("HOME=/h"), Some("/h/.nv/ComputeCache".into()));
        assert_eq!(place("HOME=/h CUDA_CACHE_PATH=/c"), Some("/c".into()));
        assert_eq!(place("HOME=/h CUDA_CACHE_PATH="), place("HOME=/h"));
        assert_eq!(place("HOME="), None);
    }

    #[test]
    fn sizes_are_bytes_up_to_four_gibibytes() {
        let max = |text| JitSettings::read(&variables(text)).max_size;
        assert_eq!((max("").bytes, max("").given), (1 << 30, false));
        assert_eq!(max("").of_older_drivers(), 256 << 20);
        assert_eq!(max("CUDA_CACHE_MAXSIZE=1000").bytes, 1000);
        assert_eq!(max("CUDA_CACHE_MAXSIZE=1000").of_older_drivers(), 1000);
        assert_eq!(max("CUDA_CACHE_MAXSIZE=99999999999").bytes, 4 << 30);
        assert!(said("HOME=/h CUDA_CACHE_MAXSIZE=4G").contains("not a number of bytes"));
        assert!(said("HOME=/h CUDA_CACHE_MAXSIZE=0").contains("is 0"));
        assert!(said("HOME=/h CUDA_CACHE_MAXSIZE=5000000000").contains("=4294967296"));
    }

    #[test]
    fn nothing_is_said_about_nothing() {
        assert_eq!(said("HOME=/h PATH=/bin CUDA_HOME=/cuda"), "");
        let quiet = "HOME=/h CUDA_CACHE_PATH=/c CUDA_CACHE_MAXSIZE=4294967296 \
                     CUDA_CACHE_DISABLE=0 CUDA_MODULE_LOADING=LAZY";
        assert_eq!(said(quiet), "");
    }

    #[test]
    fn each_trouble_has_its_fix() {
        for (text, word) in [
            (
                "HOME=/h CUDA_CACHE_MAX_SIZE=1",
                "set CUDA_CACHE_MAXSIZE instead",
            ),
            ("HOME=/h CUDA_CACHE_DISABLE=1", "unset CUDA_CACHE_DISABLE"),
            ("HOME=/h CUDA_CACHE_DISABLE=yes", "neither 0 nor 1"),
            ("HOME=/h CUDA_FORCE_PTX_JIT=1", "unset it"),
            (
                "HOME=/h CUDA_MODULE_LOADING=lazy",
                "set CUDA_MODULE_LOADING=LAZY",
            ),
            ("PATH=/bin", "neither HOME nor CUDA_CACHE_PATH"),
            ("HOME=h", "not an absolute path"),
            ("HOME=/h CUDA_CACHE_PATH=here", "absolute path"),
            ("HOME=/h CUDA_CACHE_PATH=~/cache", "absolute path"),
        ] {
            assert!(said(text).contains(word), "{text}: {}", said(text));
        }
        let settings = JitSettings::read(&variables("CUDA_FORCE_JIT=1 CUDA_DISABLE_JIT=1"));
        assert!(settings.force_jit && settings.disable_jit && !settings.disabled);
    }
}
