//! Finds variables that are named like ours and that nothing reads: `WARPCC_JBOS=3`.
//!
//! `warpcc config`, `stats` and `doctor` look for them. A compilation does not: a configure step that finds a warning on
//! standard error takes a compiler's option for unknown.

use std::ffi::OsString;
use std::fmt;

use super::environment::BEHIND;
use super::key::Key;

const PREFIX: &str = "WARPCC_";
/// The variable that names the settings file.
pub(super) const FILE: &str = "WARPCC_CONFIG";
/// Variables that tools on workers, the watch library, and contributors' tests and builds read. docs/configuration.md
/// explains each.
const OTHERS: [&str; 12] = [
    BEHIND,
    warpcc_watch::LOG_VARIABLE,
    warpcc_watch::HOLD_VARIABLE,
    warpcc_watch::ANNOUNCE_VARIABLE,
    "WARPCC_FOLDER",
    "WARPCC_PROMISED",
    "WARPCC_TOOLKITS",
    "WARPCC_FUZZ_TARGET",
    "WARPCC_COMMIT",
    "WARPCC_TUTORIAL",
    "WARPCC_HEADER",
    "WARPCC_DOCS",
];
const OF_TESTS: &str = "WARPCC_TEST_";

/// A variable that nothing reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariable {
    /// Its name.
    pub name: String,
    /// The variable that was probably meant.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is set, but nothing reads it",
            self.name.escape_debug()
        )?;
        match self.nearest {
            Some(near) => write!(f, "; did you mean {near}?"),
            None => Ok(()),
        }
    }
}

/// The unknown variables of `environment`.
pub fn unknown_variables(environment: &[(OsString, OsString)]) -> Vec<UnknownVariable> {
    let names = environment.iter().filter_map(|(name, _)| name.to_str());
    let ours = names.filter(|name| name.starts_with(PREFIX) && !is_known(name));
    ours.map(|name| UnknownVariable {
        name: name.to_owned(),
        nearest: nearest(name),
    })
    .collect()
}

/// The variables that users set.
fn of_users() -> impl Iterator<Item = &'static str> {
    let settings = Key::ALL.into_iter().map(Key::variable);
    settings.chain([FILE]).chain(warpcc_rtc::VARIABLES)
}

fn is_known(name: &str) -> bool {
    name.starts_with(OF_TESTS) || of_users().chain(OTHERS).any(|known| known == name)
}

fn nearest(name: &str) -> Option<&'static str> {
    let own = |name: &str| name.trim_start_matches(PREFIX).to_ascii_uppercase();
    let keyed_by = |known: &str| strsim::jaro_winkler(&own(name), &own(known));
    let best = of_users().max_by(|a, b| keyed_by(a).total_cmp(&keyed_by(b)));
    best.filter(|known| keyed_by(known) > 0.8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_named_with_the_one_that_was_meant() {
        let set = [
            "WARPCC_JBOS",
            "WARPCC_MAXSIZE",
            "WARPCC_BASEDIR",
            "WARPCC_RTC_CHACHE",
            "WARPCC_FLYING",
            "WARPCC_JOBS",
            "WARPCC_TEST_KEEP",
            "CCACHE_DIR",
        ];
        let set = set.map(|name| (name.into(), "1".into()));
        let found = unknown_variables(&set);
        let near: Vec<_> = found.iter().map(|unknown| unknown.nearest).collect();
        let expected = [
            Some("WARPCC_JOBS"),
            Some("WARPCC_MAX_SIZE"),
            Some("WARPCC_BASE_DIR"),
            Some("WARPCC_RTC_CACHE"),
            None,
        ];
        assert_eq!(near, expected, "{found:?}");
    }

    #[test]
    fn known_variables_are_the_documented_ones() {
        let page = include_str!("../../../../docs/configuration.md");
        let tables = page.lines().filter(|line| line.starts_with('|'));
        let words = tables.flat_map(|line| line.split('`'));
        let explained: Vec<&str> = words.filter(|word| word.starts_with(PREFIX)).collect();
        for name in &explained {
            let name = name.split('=').next().unwrap_or_default();
            assert!(is_known(name), "{name} is explained and not known");
        }
        for name in of_users().chain(OTHERS) {
            assert!(
                explained.contains(&name),
                "{name} is known and not explained"
            );
        }
    }
}
