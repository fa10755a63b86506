//! A job of GitHub's: its steps, and what GitHub does between them: variables, the path, a cache that is restored and saved.

use std::fs;
use std::path::{Path, PathBuf};

use warpcc_testkit::github_cache::GithubCache;

use super::shell;
use crate::space::{Program, TestSpace, remove_tree};

/// One step of GitHub's: its text, and what it runs.
pub(super) struct Step {
    pub(super) text: String,
    script: Option<String>,
}

/// The steps of a file, by the dashes of their list.
pub(super) fn steps(file: &str) -> Vec<Step> {
    let (_, list) = file.split_once("steps:\n").expect("steps");
    let indent = list.len() - list.trim_start_matches(' ').len();
    let dash = format!("{}- ", " ".repeat(indent));
    let mut texts: Vec<String> = Vec::new();
    for line in list.lines() {
        match texts.last_mut() {
            Some(text) if !line.starts_with(&dash) => *text += &format!("{line}\n"),
            _ => texts.push(format!("{line}\n")),
        }
    }
    let of_text = |text: String| {
        let script = text.split_once(" run: ").map(|(_, script)| {
            let block = script.strip_prefix("|\n").unwrap_or(script);
            let lines = block.lines().map(str::trim_start);
            lines.collect::<Vec<_>>().join("\n")
        });
        Step { text, script }
    };
    texts.into_iter().map(of_text).collect()
}

/// The state that GitHub keeps between the steps of one run.
pub(super) struct Run<'a> {
    pub(super) temporary: PathBuf,
    event: &'static str,
    service: &'a GithubCache,
}

impl<'a> Run<'a> {
    /// A job in the folder that a runner empties before each. The Python environment alone stays: to make it is most of
    /// the time of a job, and the first job has shown that it is made where there is none.
    pub(super) fn new(
        space: &mut TestSpace,
        event: &'static str,
        service: &'a GithubCache,
    ) -> Self {
        let temporary = space.beside("runner");
        fs::create_dir_all(&temporary).expect("a folder");
        for item in fs::read_dir(&temporary).expect("a folder").flatten() {
            if item.file_name() != "warpcc-venv" {
                remove_tree(&item.path());
            }
        }
        for (variable, file) in [
            ("RUNNER_TEMP", ""),
            ("GITHUB_ENV", "env"),
            ("GITHUB_PATH", "path"),
            ("GITHUB_STEP_SUMMARY", "summary"),
        ] {
            let file = temporary.join(file);
            space.set_env(variable, file.display().to_string().trim_end_matches('/'));
        }
        space.set_env("GITHUB_EVENT_NAME", event);
        // Each job begins with what the runner sets.
        for name in ["WARPCC_REMOTE", "WARPCC_REMOTE_READONLY"] {
            space.unset_env(name);
        }
        let action = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        space.set_env("GITHUB_ACTION_PATH", &action.display().to_string());
        Self {
            temporary,
            event,
            service,
        }
    }

    /// Sets the variables and the path that earlier steps left for later ones.
    fn apply(&self, space: &mut TestSpace) {
        let read = |name: &str| fs::read_to_string(self.temporary.join(name)).unwrap_or_default();
        for line in read("env").lines() {
            let (name, value) = line.split_once('=').expect("NAME=VALUE");
            space.set_env(name, value);
        }
        for folder in read("path").lines() {
            let bash = Program::Other("bash".into(), Vec::new());
            let args = ["-c".to_owned(), "printf %s \"$PATH\"".to_owned()];
            let path = String::from_utf8_lossy(&space.run(&bash, &args).stdout).into_owned();
            space.set_env("PATH", &format!("{folder}:{path}"));
        }
        drop(fs::remove_file(self.temporary.join("path")));
    }

    /// Runs one step; `saved` is the cache that GitHub keeps.
    pub(super) fn step(&self, space: &mut TestSpace, step: &Step, saved: &Path) {
        let kept = self.temporary.join("warpcc");
        let (from, to) = match &step.text {
            text if text.contains("actions/github-script@") => {
                // What GitHub gives to actions is there for later steps.
                for (name, value) in self.service.variables() {
                    assert!(text.contains(name), "{text}");
                    space.set_env(name, &value);
                }
                return;
            }
            text if text.contains("actions/cache/restore@") => (saved, kept.as_path()),
            text if text.contains("actions/cache/save@") => (kept.as_path(), saved),
            _ => {
                if let Some(script) = &step.script {
                    shell(space, script);
                }
                return self.apply(space);
            }
        };
        assert!(
            step.text.contains("path: ${{ runner.temp }}/warpcc\n"),
            "{}",
            step.text
        );
        let of_reviewed = step.text.contains("github.event_name != 'pull_request'");
        assert_eq!(of_reviewed, to == saved, "only saving depends on the event");
        if from.is_dir() && !(of_reviewed && self.event == "pull_request") {
            let copy = format!(
                "rm -rf '{0}'; cp -a '{1}' '{0}'",
                to.display(),
                from.display()
            );
            shell(space, &copy);
        }
    }
}
