//! Finds settings and variables with which every call misses or is bypassed.

use warpcc_report::doctor::Finding;

use super::finding::warning;
use super::variables::variable;
use crate::config::{Config, Setting, unknown_variables};
use crate::log::Log;
use crate::process_context::ProcessContext;

pub(super) fn check(config: &Config, context: &ProcessContext, findings: &mut Vec<Finding>) {
    let switches: [(&str, &Setting<bool>, &str); 3] = [
        (
            "disable",
            &config.disable,
            "warpcc only starts nvcc: nothing is parallel and nothing comes from the cache",
        ),
        (
            "recache",
            &config.recache,
            "stored results are ignored: every call is built again",
        ),
        (
            "readonly",
            &config.readonly,
            "nothing new is stored, and nothing is recorded for `warpcc report`",
        ),
    ];
    for (name, setting, why) in switches {
        if setting.value {
            findings.push(warning(
                format!("{name} is set ({})", setting.source),
                why,
                &format!(
                    "unset WARPCC_{}, or take it out of the settings file",
                    name.to_uppercase()
                ),
            ));
        }
    }
    if let Err(why) = Log::new(config.log.value.clone()).try_to_open() {
        findings.push(warning(
            format!("the log cannot be written ({})", config.log.source),
            &why,
            "name a file in a folder that exists and that you may write to",
        ));
    }
    for unknown in unknown_variables(&context.environment) {
        findings.push(warning(
            unknown.to_string(),
            "the intended setting keeps its default",
            "correct its name; `warpcc config` shows all settings",
        ));
    }
    for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
        let Some(value) = variable(context, name) else {
            continue;
        };
        let value = value.to_string_lossy();
        for word in value.split_whitespace() {
            if let Some(why) = suspicion(word) {
                findings.push(warning(
                    format!("{name} has {word}"),
                    why,
                    &format!("take {word} out of {name}"),
                ));
            }
        }
    }
}

/// The problem with a flag that is added to every call's command line.
fn suspicion(word: &str) -> Option<&'static str> {
    let option = word.split_once('=').map_or(word, |(option, _)| option);
    if ["-time", "--time"].contains(&option) {
        return Some("a timed call has to run, so nothing comes from the cache");
    }
    if ["-E", "--preprocess", "-dryrun", "--dryrun", "-M", "-MM"].contains(&option) {
        return Some("no call makes an object, and none is cached");
    }
    let temporary = ["/tmp/", "/var/tmp/", "/dev/shm/"]
        .iter()
        .any(|folder| word.contains(folder));
    let isolated = word.contains("pip-build-env-") || word.contains("pip-req-build-");
    (temporary || isolated)
        .then_some("if the folder's name changes, every call is a different one and misses")
}

#[cfg(test)]
mod tests {
    use super::suspicion;

    #[test]
    fn flags_that_spoil_the_cache() {
        for word in [
            "-time",
            "--time=t.csv",
            "-I/tmp/pip-build-env-x1/include",
            "-DX=/tmp/a",
        ] {
            assert!(suspicion(word).is_some(), "{word}");
        }
        for word in ["-O3", "-I/usr/include", "-DTIME=-time", "--timeout"] {
            assert!(suspicion(word).is_none(), "{word}");
        }
    }
}
