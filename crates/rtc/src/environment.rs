//! Reads the process's environment. No other module of this crate does.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The file that lists what a program asks for.
pub(crate) const RECORD: &str = "WARPCC_RTC_RECORD";
/// The file that gets a trace of all requests.
pub(crate) const TRACE: &str = "WARPCC_RTC_TRACE";
/// The size limit of each folder.
pub(crate) const MAX_SIZE: &str = "WARPCC_RTC_MAXSIZE";
/// The folders.
pub(crate) const CACHE: &str = "WARPCC_RTC_CACHE";
/// The folder that comes first if the first one is on a network.
pub(crate) const LOCAL: &str = "WARPCC_RTC_LOCAL";
/// The packs.
pub(crate) const PACKS: &str = "WARPCC_RTC_PACKS";
/// The path of NVRTC.
pub(crate) const NVRTC: &str = "WARPCC_NVRTC";
/// The path of nvJitLink.
pub(crate) const NVJITLINK: &str = "WARPCC_NVJITLINK";
/// The path of nvFatbin.
pub(crate) const NVFATBIN: &str = "WARPCC_NVFATBIN";

/// The folder where all processes of a user agree on their shares of the machine. It is a setting of warpcc's, too.
pub(crate) const RUNTIME_DIR: &str = "WARPCC_RUNTIME_DIR";

/// Every variable of ours that only this crate reads.
pub const VARIABLES: [&str; 9] = [
    RECORD, TRACE, MAX_SIZE, CACHE, LOCAL, PACKS, NVRTC, NVJITLINK, NVFATBIN,
];

/// A copy of the variables.
#[derive(Debug, Clone, Default)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// The variables of this process, now.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// An environment of these variables, for tests and for programs with settings of their own.
    pub fn from_variables<N: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let owned = variables.into_iter().map(|(n, v)| (n.into(), v.into()));
        Self(owned.collect())
    }

    /// The same with this variable added or replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.into(), value.into()));
        self
    }

    /// A variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_os_str())
            .filter(|value| !value.is_empty())
    }

    /// The path in a variable.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The path in a variable of ours: `~/` is the home folder, for files that set variables without a shell.
    pub fn own_path(&self, name: &str) -> Option<PathBuf> {
        self.path(name).map(|path| self.below_home(path))
    }

    /// The paths in a variable of ours, with ':' between them.
    pub fn own_paths(&self, name: &str) -> Vec<PathBuf> {
        let list = self.get(name);
        let paths = list.into_iter().flat_map(std::env::split_paths);
        let named = paths.filter(|path| !path.as_os_str().is_empty());
        named.map(|path| self.below_home(path)).collect()
    }

    fn below_home(&self, path: PathBuf) -> PathBuf {
        let home = self.path("HOME").filter(|home| home.is_absolute());
        match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }

    /// The decimal number in a variable, as drivers read theirs.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.to_str()?.trim().parse().ok()
    }

    /// Whether a switch is on: any number but 0, as in C.
    pub fn is_on(&self, name: &str) -> bool {
        self.number(name).is_some_and(|number| number != 0)
    }
}
