//! Runs one command in a test's folder with a known environment, and returns its outcome without a judgement.

use super::TestSpace;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// How a command ended and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Exit code as a shell shows it: 128 + signal for a death by signal.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// Standard error as text, for messages.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output and then standard error, as text.
    pub fn text(&self) -> String {
        self.stdout_text() + &self.stderr_text()
    }
}

/// The program, and the words before a case's arguments.
#[derive(Clone, Debug)]
pub enum Program {
    /// The real nvcc, and nothing else.
    Nvcc,
    /// The real nvcc with `--keep --keep-dir DIR`, the reference of every comparison.
    NvccKeep(PathBuf),
    /// `warpcc /path/to/nvcc`.
    Launcher,
    /// Any program with its first arguments.
    Other(PathBuf, Vec<String>),
}

impl TestSpace {
    /// The path of the binary under test. `WARPCC_TEST_BIN` stands another in its
    /// place, to try the harness itself against plain nvcc.
    pub fn warpcc() -> PathBuf {
        std::env::var_os("WARPCC_TEST_BIN").map_or_else(
            || PathBuf::from(env!("CARGO_BIN_EXE_warpcc")),
            PathBuf::from,
        )
    }

    /// A command in the work folder with this space's environment, not yet started.
    pub fn command(&self, program: &Program, args: &[String]) -> Command {
        let mut command = match program {
            Program::Nvcc => Command::new(&self.toolkit.nvcc),
            Program::NvccKeep(dir) => {
                super::make_dir(dir);
                let mut command = Command::new(&self.toolkit.nvcc);
                command.arg("--keep").arg("--keep-dir").arg(dir);
                command
            }
            Program::Launcher => {
                let mut command = Command::new(Self::warpcc());
                command.arg(&self.toolkit.nvcc);
                command
            }
            Program::Other(path, first) => {
                let mut command = Command::new(path);
                command.args(first);
                command
            }
        };
        command
            .args(args)
            .current_dir(self.work().join(&self.stand_in));
        self.dress(&mut command);
        command
    }

    /// The environment of every command. Cleared first: a CPATH or NVCC_APPEND_FLAGS
    /// of the developer's shell would change results.
    pub fn dress(&self, command: &mut Command) {
        command.env_clear().stdin(Stdio::null());
        for name in ["PATH", "HOME", "USER"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("LC_ALL", "C.UTF-8")
            .env("TMPDIR", self.tmp())
            .env("WARPCC_DIR", self.cache())
            // Slots of its own, so that neither other tests nor the user's builds hold it up.
            .env("WARPCC_RUNTIME_DIR", self.beside("board"))
            // No settings file of the developer's either.
            .env("XDG_CONFIG_HOME", self.beside("config"));
        for (name, value) in &self.env {
            command.env(name, self.fill(value));
        }
    }

    /// Run to the end.
    pub fn run(&self, program: &Program, args: &[String]) -> Outcome {
        finish(self.command(program, args))
    }

    /// Run warpcc itself, as in `warpcc stats --json`.
    pub fn warpcc_with(&self, args: &[&str]) -> Outcome {
        let args: Vec<String> = args.iter().map(|&a| a.to_owned()).collect();
        self.run(&Program::Other(Self::warpcc(), Vec::new()), &args)
    }

    /// The JSON that such a command prints.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        let outcome = self.warpcc_with(args);
        serde_json::from_slice(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}", outcome.stderr_text()))
    }

    /// Split a case's line as a shell would and put this space's paths into it.
    pub fn words(&self, line: &str) -> Vec<String> {
        shlex::split(line)
            .unwrap_or_else(|| panic!("unbalanced quotes in {line:?}"))
            .iter()
            .map(|word| self.fill(word))
            .collect()
    }

    /// `{toolkit}`, `{work}` and `{beside}` in a case's arguments and variables.
    pub fn fill(&self, text: &str) -> String {
        text.replace("{toolkit}", &self.toolkit.top().to_string_lossy())
            .replace("{work}", &self.work().to_string_lossy())
            .replace("{beside}", &self.root.to_string_lossy())
    }
}

/// Run a prepared command to its end.
pub fn finish(mut command: Command) -> Outcome {
    let program: OsString = command.get_program().to_owned();
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("starting {}: {e}", program.to_string_lossy()));
    Outcome {
        code: output
            .status
            .code()
            .unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0)),
        stdout: output.stdout,
        stderr: output.stderr,
    }
}
