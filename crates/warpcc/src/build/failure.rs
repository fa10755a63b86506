//! Decides with which exit code a failed build ends, or why plain nvcc has to run: it may fail in another way, or not at all.

use warpcc_cache::DiskStore;
use warpcc_engine::Run;
use warpcc_engine::event::StepOutcome;
use warpcc_plan::{Arg, Invocation, Step, TaskGraph, Tool, Unsupported};

use super::blame;
use crate::fetched_results::{FETCHED_RESULT_FAILS, FetchedResults};
use crate::threads;

/// A tool of a failing build writes or looks for a file next to its output. The next build of the call may have no error, so
/// it may not do that.
pub(super) const WITH_SIDE_FILES: &str = "a failing step uses files next to its output";

/// nvcc may then print the messages of more than one failed command. Which ones depends on timing, except where [`threads`]
/// can tell.
pub const FAILS_UNDER_THREADS: &str = "a failing build with --threads";

/// The output has an old version. A failing tool may change or remove it, and warpcc cannot see how: the tool writes to the
/// scratch folder, where there is no old version.
const WITH_OLD_OUTPUT: &str = "a failing step looks for its old output";

/// nvlink 11.8 fails if a temporary file's path has more than about 100 characters, and the `TMPDIR` that warpcc sets is
/// longer than the user's.
const WITH_LTO: &str = "a failing device link with -dlto";

/// clang removes the results of a command that failed, and has messages of its own about some commands.
pub const FAILS_UNDER_CLANG: &str = "a failing build with clang";

/// A build whose run has failed.
pub(super) struct FailedBuild<'a> {
    pub(super) invocation: &'a Invocation,
    pub(super) graph: &'a TaskGraph,
    pub(super) run: &'a Run,
    pub(super) store: Option<&'a DiskStore>,
    /// Whether commands that ran when another one failed were not ended, as under nvcc's `--threads`.
    pub(super) finishes_phase: bool,
}

/// The exit code of a failed build, where nvcc would fail with the same messages and files.
///
/// # Errors
/// Why plain nvcc has to run: it may fail in another way, or not at all.
pub(super) fn exit_code(
    failed: &FailedBuild<'_>,
    fetched_results: &FetchedResults,
) -> Result<i32, Unsupported> {
    let FailedBuild { graph, run, .. } = failed;
    if failed.invocation.is_of_clang {
        return Err(Unsupported::new(FAILS_UNDER_CLANG, ""));
    }
    if fetched_results.remove_after_failure(failed.store) {
        return Err(Unsupported::new(FETCHED_RESULT_FAILS, ""));
    }
    if let Some(path) = &run.unmet_output {
        return Err(Unsupported::new(
            WITH_OLD_OUTPUT,
            path.display().to_string(),
        ));
    }
    let is_lto = |step: &Step| {
        let mut words = step.args.iter().filter_map(Arg::as_text);
        step.tool == Tool::Nvlink && words.any(|word| word == "-dlto")
    };
    let mut tasks = run.tasks.iter();
    if tasks.any(|task| {
        matches!(task.outcome, StepOutcome::Failed(_)) && is_lto(&graph.steps[task.step])
    }) {
        return Err(Unsupported::new(WITH_LTO, ""));
    }
    blame::check(graph, &run.tasks)?;
    let invocation = failed.invocation;
    if !invocation.threads {
        return Ok(run.code);
    }
    let count = invocation.thread_count.filter(|_| failed.finishes_phase);
    match count {
        Some(count) if threads::is_certain(graph, &run.tasks, count) => Ok(threads::EXIT_CODE),
        _ => Err(Unsupported::new(FAILS_UNDER_THREADS, "")),
    }
}
