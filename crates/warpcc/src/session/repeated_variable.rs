//! Finds a variable that the environment has twice, with two values. A C program may pass such an environment on. nvcc, the
//! shell that it starts and its tools then take different values, and warpcc could give them only one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The reason for bypassing such a call.
pub const REPEATED_VARIABLE: &str = "a variable with two values";

/// The first such variable.
pub fn repeated_variable(environment: &[(OsString, OsString)]) -> Option<&OsStr> {
    let mut values = BTreeMap::new();
    environment
        .iter()
        .find(|(name, value)| *values.entry(name).or_insert(value) != value)
        .map(|(name, _)| name.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_values_of_one_name_count() {
        let found = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.into(), v.into())).collect();
            repeated_variable(&pairs).map(OsStr::to_owned)
        };
        assert_eq!(found(&[("A", "1"), ("B", "1"), ("A", "1")]), None);
        let two = [("A", "1"), ("B", "2"), ("A", "1"), ("B", "3")];
        assert_eq!(found(&two), Some("B".into()));
    }
}
