//! The environment that a run depends on: the variables that its tools asked for, the programs that `PATH` names, the
//! working directory, and the times of files.
//!
//! A key contains the variables that are known to matter before anything runs. The others are observed: when a tool asks for a
//! variable, its name and value are recorded, and the result is used only where the variable has the same value. So a variable
//! that warpcc does not know leads to a miss, and not to a wrong result.

mod classes;
mod limits;
mod release;
mod searches;
mod volatile;
mod walkers;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warpcc_cache::{Difference, guards};

use classes::is_ours;
pub use classes::{is_harmless, seen_in};
use limits::Limits;
pub use release::Release;
use searches::Searches;
use volatile::is_volatile;
pub(crate) use volatile::{Mentioned, is_of_streams, mentioned_by};
pub(crate) use walkers::looks_for;

use crate::mtimes;
use crate::run_environment::RunEnvironment;

/// The questions that the programs of a run asked their environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentQueries {
    /// Variables asked for by name.
    pub variables: BTreeSet<OsString>,
    /// A program ran that may have looked at every variable: a shell, an interpreter, an unknown program.
    pub whole: bool,
    /// Variables that change from call to call, and that such a program's text mentions.
    pub mentioned: BTreeSet<String>,
    /// Names of programs that were looked for in the folders of `PATH`.
    pub programs: BTreeSet<OsString>,
    /// Whether a program asked for the working directory, by a system call or by `PWD`.
    pub directory: bool,
    /// Limits of the process that a program asked for (see [`warpcc_watch::Observed::limits`]).
    pub limits: BTreeSet<u8>,
}

impl EnvironmentQueries {
    /// Adds the questions of another run.
    pub fn merge(&mut self, other: &Self) {
        self.variables.extend(other.variables.iter().cloned());
        self.whole |= other.whole;
        self.mentioned.extend(other.mentioned.iter().cloned());
        self.programs.extend(other.programs.iter().cloned());
        self.directory |= other.directory;
        self.limits.extend(&other.limits);
    }
}

impl RunEnvironment<'_> {
    /// A value with the fixed names of the mapped folders.
    fn digest(&self, value: &OsStr) -> [u8; 32] {
        blake3::hash(&self.path_map.fixed_list(value.as_bytes())).into()
    }

    /// The digest of the working directory.
    fn directory_digest(&self) -> [u8; 32] {
        let directory = self.directory.as_os_str().as_bytes();
        blake3::hash(&self.path_map.fixed_bytes(directory)).into()
    }

    /// One digest of all variables except those that change from call to call and are not `mentioned`. It is one digest for
    /// all, so that no single value can be guessed from it.
    fn whole(&self, mentioned: &BTreeSet<String>) -> [u8; 32] {
        let counts = |name: &OsStr| {
            !is_ours(name)
                && (!is_volatile(name)
                    || mentioned.iter().any(|m| name == m.as_str()) && !guards::is_off("mentioned"))
        };
        let variables = self.environment.iter().filter(|(name, _)| counts(name));
        let mut variables: Vec<_> = variables.collect();
        variables.sort();
        let mut hasher = blake3::Hasher::new();
        for (name, value) in variables {
            for bytes in [name.as_bytes(), &self.path_map.fixed_list(value.as_bytes())] {
                hasher.update(&(bytes.len() as u64).to_le_bytes());
                hasher.update(bytes);
            }
        }
        hasher.finalize().into()
    }
}

/// A variable, and the BLAKE3 of its value; `None` where it was not set.
type Variable = (Vec<u8>, Option<[u8; 32]>);

/// The conditions, besides files, under which a result can be used again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// The file times that the result contains, see [`crate::mtimes`].
    pub times: Vec<u8>,
    variables: Vec<Variable>,
    whole: Option<(BTreeSet<String>, [u8; 32])>,
    searches: Option<Searches>,
    directory: Option<[u8; 32]>,
    limits: Limits,
}

impl Conditions {
    /// The answers to `asked` in this place now.
    pub fn observe(asked: &EnvironmentQueries, times: &[u8], place: RunEnvironment<'_>) -> Self {
        let counts = |name: &&OsString| !is_harmless(name) && !guards::is_off("variables");
        let names = asked.variables.iter().filter(counts);
        let value = |name: &OsString| {
            let digest = place.variable(name).map(|value| place.digest(value));
            (name.as_bytes().to_vec(), digest)
        };
        Self {
            times: place.path_map.fix_text(times),
            variables: names.map(value).collect(),
            whole: (asked.whole && !guards::is_off("whole-environment"))
                .then(|| (asked.mentioned.clone(), place.whole(&asked.mentioned))),
            searches: (!asked.programs.is_empty() && !guards::is_off("program-search"))
                .then(|| Searches::run(&asked.programs, place)),
            directory: (asked.directory && !guards::is_off("asked-folder"))
                .then(|| place.directory_digest()),
            limits: Limits::read(&asked.limits),
        }
    }

    /// The conditions as bytes, for a record.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// The conditions from a record; `None` if the bytes are not conditions.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }

    /// Checks whether the conditions hold.
    ///
    /// # Errors
    /// The variable that differs, if it is a variable.
    pub fn hold(&self, place: RunEnvironment<'_>) -> Result<(), Option<Difference>> {
        let differs = |name: &[u8]| {
            let name = String::from_utf8_lossy(name).into_owned();
            Err(Some(Difference::VariableChanged { name }))
        };
        for (name, digest) in &self.variables {
            let now = place.variable(OsStr::from_bytes(name));
            if now.map(|value| place.digest(value)) != *digest {
                return differs(name);
            }
        }
        if let Some((mentioned, digest)) = &self.whole
            && place.whole(mentioned) != *digest
        {
            return differs(warpcc_cache::ANY_VARIABLE.as_bytes());
        }
        if let Some(searches) = &self.searches
            && !searches.hold(place)
        {
            return differs(b"PATH");
        }
        if let Some(digest) = self.directory
            && place.directory_digest() != digest
        {
            return differs(warpcc_cache::WORKING_DIRECTORY.as_bytes());
        }
        if !self.limits.hold() {
            return Err(None);
        }
        let times = place.path_map.real_text(&self.times);
        match mtimes::first_changed(&times, place.directory) {
            None => Ok(()),
            Some(path) => Err(Some(Difference::FileChanged { path })),
        }
    }

    /// The questions, so that every call that uses the result depends on the same conditions.
    pub fn asked(&self) -> EnvironmentQueries {
        let name = |(name, _): &Variable| OsString::from_vec(name.clone());
        EnvironmentQueries {
            variables: self.variables.iter().map(name).collect(),
            whole: self.whole.is_some(),
            mentioned: self
                .whole
                .as_ref()
                .map(|(mentioned, _)| mentioned.clone())
                .unwrap_or_default(),
            programs: self
                .searches
                .as_ref()
                .map(Searches::names)
                .unwrap_or_default(),
            directory: self.directory.is_some(),
            limits: self.limits.numbers(),
        }
    }
}

/// Conditions as bytes.
pub(crate) fn encode(conditions: &impl Serialize) -> Vec<u8> {
    // These types cannot fail to serialise. If they did, the empty text would be a condition that never holds.
    postcard::to_allocvec(conditions).unwrap_or_default()
}

/// Conditions from bytes; `None` if they are no conditions, or more.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((conditions, [])) => Some(conditions),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use warpcc_path_map::PathMap;

    use super::*;

    fn hold(asked: &EnvironmentQueries, before: &[(&str, &str)], after: &[(&str, &str)]) -> bool {
        let own = |all: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            all.iter().map(|(n, v)| (n.into(), v.into())).collect()
        };
        let (before, after) = (own(before), own(after));
        let place = |environment| RunEnvironment {
            environment,
            directory: Path::new("/"),
            path_map: PathMap::EMPTY,
        };
        let made = Conditions::observe(asked, b"", place(&before));
        let read = Conditions::decode(&made.encode()).expect("conditions");
        assert_eq!(made, read);
        read.hold(place(&after)).is_ok()
    }

    #[test]
    fn a_variable_asked_for_counts_and_another_does_not() {
        let asked = EnvironmentQueries {
            variables: ["A", "B", "MAKEFLAGS"].map(OsString::from).into(),
            ..EnvironmentQueries::default()
        };
        assert!(hold(&asked, &[("A", "1")], &[("A", "1"), ("C", "2")]));
        assert!(!hold(&asked, &[("A", "1")], &[("A", "2")]));
        assert!(!hold(&asked, &[("A", "1")], &[]));
        assert!(!hold(&asked, &[("A", "1")], &[("A", "1"), ("B", "")]));
        assert!(hold(&asked, &[("MAKEFLAGS", "1")], &[("MAKEFLAGS", "2")]));
    }

    #[test]
    fn for_a_program_that_nobody_knows_every_variable_counts() {
        let mut asked = EnvironmentQueries {
            whole: true,
            ..EnvironmentQueries::default()
        };
        assert!(hold(&asked, &[("A", "1"), ("PATH", "x")], &[("A", "1")]));
        let tracker = |folder| [("PIP_BUILD_TRACKER", folder)];
        assert!(hold(&asked, &tracker("/tmp/a"), &tracker("/tmp/b")));
        assert!(!hold(&asked, &[("A", "1")], &[("A", "1"), ("B", "2")]));
        asked.mentioned.insert("PATH".into());
        assert!(!hold(&asked, &[("PATH", "x")], &[("PATH", "y")]));
        // The digest must also contain where a name ends and its value begins.
        assert!(!hold(&asked, &[("A", "BC")], &[("AB", "C")]));
    }
    #[test]
    fn the_working_directory_counts_for_who_asked_and_below_a_mapped_folder_by_its_place() {
        let holds = |asked: bool, mapped: [&str; 2], now: &str| {
            let asked = EnvironmentQueries {
                directory: asked,
                ..EnvironmentQueries::default()
            };
            let [before, after] = mapped.map(|folder| PathMap::new([("1", folder)]));
            let place = |directory, path_map| RunEnvironment {
                environment: &[],
                directory: Path::new(directory),
                path_map,
            };
            let made = Conditions::observe(&asked, b"", place("/a/b", &before));
            assert_eq!(made.asked(), asked);
            made.hold(place(now, &after)).is_ok()
        };
        assert!(holds(true, ["/x", "/x"], "/a/b"));
        assert!(!holds(true, ["/x", "/x"], "/a/c"));
        assert!(holds(false, ["/x", "/x"], "/a/c"));
        assert!(holds(true, ["/a", "/c"], "/c/b"));
        assert!(!holds(true, ["/a", "/c"], "/c/d"));
    }
}
