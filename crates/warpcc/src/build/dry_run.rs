//! Runs nvcc's dry run: which commands nvcc would run, and which files and variables it looked at to decide that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use warpcc_budget::CommandKind;
use warpcc_budget::costs::Measured;
use warpcc_cache::{DiskStore, ExpectedFile};
use warpcc_engine::Children;
use warpcc_engine::admission::Applicant;
use warpcc_engine::known_programs::KnownPrograms;
use warpcc_engine::process::{self, Ended};
use warpcc_engine::room;
use warpcc_engine::scene::Scene;
use warpcc_engine::traced_inputs::TracedInputs;
use warpcc_plan::{Transcript, Unsupported};

use super::abort_reason::{hung_step, missing_resource};
use super::options::BuildOptions;
use crate::request::Request;
use crate::scratch::Scratch;

/// nvcc rejects the command line. The call is counted as failed, because warpcc is not the reason.
pub const REFUSED: &str = "nvcc refuses the command line";
/// The same of clang.
pub const REFUSED_BY_CLANG: &str = "clang refuses the command line";

/// The beginning of the message that the dynamic loader prints if it cannot preload a library.
const NOT_LOADED: &str = "ERROR: ld.so: object";

/// The name under which the cost of dry runs is remembered.
const DRY_RUN: &str = "dry run";
/// The dry run's task number. No step of a plan has this number.
const DRY_RUN_TASK: usize = usize::MAX;

/// nvcc's warnings about the `-t 1` and the `--keep-dir` that warpcc adds after the user's own ones.
const THREADS_REDEFINED: &str = "nvcc warning : incompatible redefinition for option 'threads', the last value of this option was used";
const FOLDER_REDEFINED: &str = "nvcc warning : incompatible redefinition for option 'keep-dir', the last value of this option was used";

/// A dry run of one call.
pub(super) struct DryRun<'a> {
    pub(super) request: &'a Request,
    pub(super) options: &'a BuildOptions<'a>,
    /// The folder for nvcc's intermediate files; empty where the user keeps them.
    pub(super) private: &'a str,
    pub(super) scratch: &'a Scratch,
    pub(super) children: &'a Children,
}

/// The result of a dry run.
pub(super) struct DryRunResult {
    pub(super) transcript: Transcript,
    pub(super) seen: TracedInputs,
    /// The path of the watch library; `None` where it cannot be used.
    pub(super) watch: Option<PathBuf>,
}

impl DryRun<'_> {
    /// Asks nvcc for its plan.
    ///
    /// # Errors
    /// nvcc refuses the command line, cannot be started, or prints what is not understood.
    pub(super) fn run(&self) -> Result<DryRunResult, Unsupported> {
        let watch = self.install_watch();
        let log = self.scratch.path().join("watch-dryrun");
        let watching = watch.as_deref().and_then(|library| {
            let inherited = self.request.variable("LD_PRELOAD");
            warpcc_watch::environment(library, &log, inherited).ok()
        });
        let environment = self.environment(watching.as_ref().map_or(&[], |set| &set[..]));
        let (output, began) = self.start(&environment)?;
        let mut transcript = self.read(output)?;
        let seen = match (watch.as_deref(), watching) {
            (Some(library), Some(_)) => self.seen(&log, library, began)?,
            _ => TracedInputs::unwatched("the watch library cannot be used here"),
        };
        // From a file system mounted noexec the loader cannot load the library, and each tool would print its complaint.
        let before = transcript.messages.len();
        transcript.messages.retain(|m| !m.starts_with(NOT_LOADED));
        let is_refused = transcript.messages.len() != before;
        let (seen, watch) = match is_refused {
            true => (
                TracedInputs::unwatched("the loader refuses the watch library"),
                None,
            ),
            false => (seen, watch),
        };
        Ok(DryRunResult {
            transcript,
            seen,
            watch,
        })
    }

    /// Puts the watch library where the tools can load it. Usually this is a folder of the cache, once for all builds. It is
    /// the scratch folder where the cache's folder may not or cannot be written, or its path cannot be in `LD_PRELOAD`. Where
    /// nothing is stored it is needed, too: it ends commands that would change other files before their turn.
    fn install_watch(&self) -> Option<PathBuf> {
        if !warpcc_watch::available() {
            return None;
        }
        let store: Option<&DiskStore> = self.options.store;
        let written = store.filter(|_| self.options.writes_cache);
        let in_cache = written.and_then(|store| crate::watch_folder::in_cache(store.root()));
        let in_scratch = self.scratch.path().join(crate::scratch::WATCH);
        [in_cache, Some(in_scratch)]
            .into_iter()
            .flatten()
            .find_map(|folder| {
                if !warpcc_watch::can_preload_from(&folder) {
                    return None;
                }
                fs::create_dir_all(&folder).ok()?;
                warpcc_watch::install(&folder).ok()
            })
    }

    fn args(&self) -> Vec<OsString> {
        let mut args = self.request.args.clone();
        if self.request.invocation.is_of_clang {
            args.push("-###".into());
            return args;
        }
        args.push("--dryrun".into());
        // With several threads nvcc prints the commands in an order that varies. With one thread the commands are the same,
        // and warpcc runs them in parallel itself.
        if self.request.invocation.threads {
            args.extend(["-t".into(), "1".into()]);
        }
        if !self.private.is_empty() {
            args.extend(["--keep".into(), "--keep-dir".into()]);
            args.push(self.private.trim_end_matches('/').into());
        }
        args
    }

    fn environment(&self, watching: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let mut environment = self.request.environment.clone();
        let mut set = |name: &OsStr, value: OsString| {
            environment.retain(|(n, _)| n != name);
            environment.push((name.to_owned(), value));
        };
        for (name, value) in watching {
            set(name, value.clone());
        }
        let value = crate::fallback::behind_value(self.options.ourselves);
        set(OsStr::new(crate::config::BEHIND), value);
        // nvcc makes temporary files even for a dry run.
        set(OsStr::new("TMPDIR"), self.temporary().into());
        environment
    }

    /// The folder for temporary files of the dry run.
    fn temporary(&self) -> PathBuf {
        self.scratch.path().join("tmp")
    }

    /// Runs the dry run within the machine's budget. Also gives its start time.
    fn start(
        &self,
        environment: &[(OsString, OsString)],
    ) -> Result<(Ended, SystemTime), Unsupported> {
        let (request, admission) = (self.request, self.options.admission);
        let label = request.invocation.inputs.join(" ");
        let entry = Applicant {
            name: DRY_RUN,
            kind: CommandKind::DryRun,
            // The whole call waits for the dry run.
            priority_ms: admission.expect_whole(),
            label: label.rsplit('/').next().unwrap_or(&label),
            tag: DRY_RUN_TASK as u64,
            ..Applicant::default()
        };
        let cannot_start = |why: String| Unsupported::new("nvcc cannot be started", why);
        let mut pass = self
            .children
            .waiting(DRY_RUN_TASK, |cancel| admission.enter(&entry, cancel))
            .map_err(|e| cannot_start(e.to_string()))?;
        let spec = process::ProcessSpec {
            program: &request.nvcc,
            name: &request.nvcc.to_string_lossy(),
            args: &self.args(),
            environment,
            directory: &request.directory,
            // clang decides in its dry run whether messages have colours, and how wide they are.
            terminal: request
                .terminal
                .as_ref()
                .filter(|_| request.invocation.is_of_clang),
            output_on_terminal: true,
            claim: Some(pass.claim()),
        };
        let (clock, began) = (Instant::now(), SystemTime::now());
        let output = self.children.run(DRY_RUN_TASK, &spec).map_err(|error| {
            let why = error.to_string();
            match why {
                why if why.contains(process::HUNG) => hung_step(why),
                why if why.contains(room::READS_INPUT) => missing_resource(&why),
                why => cannot_start(why),
            }
        })?;
        let measured = Measured {
            input_bytes: 0,
            millis: u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX),
            peak_kib: output.peak_kib,
        };
        admission.learn(DRY_RUN, CommandKind::DryRun, measured);
        Ok((output, began))
    }

    /// Reads the plan from nvcc's output.
    fn read(&self, output: Ended) -> Result<Transcript, Unsupported> {
        if let Some(signal) = output.signal {
            return Err(Unsupported::new(
                "a command ended abnormally",
                format!("nvcc --dryrun: ended by signal {signal}"),
            ));
        }
        if output.code != 0 {
            let reason = match self.request.invocation.is_of_clang {
                true => REFUSED_BY_CLANG,
                false => REFUSED,
            };
            return Err(Unsupported::new(reason, ""));
        }
        if !output.stdout.is_empty() {
            return Err(Unsupported::new(
                "unknown dry-run line",
                String::from_utf8_lossy(&output.stdout),
            ));
        }
        let text = String::from_utf8(output.stderr)
            .map_err(|_| Unsupported::new("an argument that is not UTF-8", "dry run"))?;
        let invocation = &self.request.invocation;
        if invocation.is_of_clang {
            let temporary = format!("{}/", self.temporary().display());
            return Transcript::of_clang(&text, &temporary, self.private);
        }
        let mut transcript = Transcript::parse(&text)?;
        for (is_ours, warning) in [
            (invocation.threads, THREADS_REDEFINED),
            (
                invocation.names_keep_dir() && !self.private.is_empty(),
                FOLDER_REDEFINED,
            ),
        ] {
            let messages = &mut transcript.messages;
            let ours = messages.iter().rposition(|m| m == warning);
            if let Some(ours) = ours.filter(|_| is_ours) {
                messages.remove(ours);
            }
        }
        Ok(transcript)
    }

    /// The files and variables that nvcc looked at.
    fn seen(
        &self,
        log: &Path,
        library: &Path,
        began: SystemTime,
    ) -> Result<TracedInputs, Unsupported> {
        let request = self.request;
        let Ok(bytes) = fs::read(log) else {
            return Ok(TracedInputs::unwatched(
                "the watch library cannot be used here",
            ));
        };
        let known = KnownPrograms::new(self.options.store);
        let asks_by_name = |executable: &Path| known.asks_by_name(executable, false);
        let observed = match warpcc_watch::read_log(&bytes, &request.nvcc, &asks_by_name) {
            Ok(observed) => observed,
            Err(error) => return Ok(TracedInputs::unwatched(&error.to_string())),
        };
        // nvcc looks at the paths of its outputs. They are no inputs.
        let outputs = request.invocation.outputs().into_iter();
        let outputs: Vec<PathBuf> = outputs.map(|o| request.absolute(&o.path)).collect();
        let is_output = |path: &Path| outputs.contains(&request.directory.join(path));
        let scene = Scene {
            placed_later: &[],
            scratch: self.scratch.path(),
            directory: &request.directory,
            library,
            path: request.variable("PATH"),
            known: &known,
            began,
            own: &is_output,
            planned: &is_output,
            writes: &[],
        };
        let mut seen = TracedInputs::from_log(observed, &scene);
        if let Some(why) = &seen.hindered {
            return Err(missing_resource(why));
        }
        seen.expect(&request.nvcc, ExpectedFile::default());
        Ok(seen)
    }
}
