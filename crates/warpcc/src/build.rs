//! Builds a call that missed: asks nvcc for its plan, runs the plan's steps, puts the outputs in place, stores the results.

mod abort_reason;
mod blame;
mod dry_run;
mod failure;
mod message_collector;
mod options;
mod plan;
mod publish;

use std::ffi::OsString;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use warpcc_engine::any_lines::OTHER_LINES;
use warpcc_engine::failure::OnFailure;
use warpcc_engine::held::HELD;
use warpcc_engine::states::{TaskState, TaskStates};
use warpcc_engine::{Children, Listener, Order, Run, RunOptions, execute};
use warpcc_plan::depfile::Rule;
use warpcc_plan::{TaskGraph, Tool, Unsupported};
use warpcc_report::record::Header;

pub use self::blame::{UNTRIED_RELEASE, WITHOUT_A_PLACE};
use self::dry_run::{DryRun, DryRunResult};
pub use self::dry_run::{REFUSED, REFUSED_BY_CLANG};
use self::failure::FailedBuild;
pub use self::failure::{FAILS_UNDER_CLANG, FAILS_UNDER_THREADS};
use self::message_collector::MessageCollector;
pub use self::options::{BuildListener, BuildOptions};
use self::plan::Plan;
use crate::direct::NotStored;
use crate::fetched_results::FetchedResults;
use crate::progress::RunProgress;
use crate::request::Request;
use crate::scratch::Scratch;
use crate::signals::Interrupt;
use crate::{place, standard_streams};

/// A tool writes or looks for a file next to its output (a side file). With warpcc such a file would be in the scratch
/// folder, and not where nvcc's user finds it.
pub const USES_SIDE_FILES: &str = "a tool uses files next to its output";

/// A command, such as a wrapper with a log, changes a file besides its outputs. Commands that run at the same time do that in
/// an order of chance, which only nvcc's own is.
pub const CHANGES_OTHER_FILES: &str =
    "with --threads, a command changes a file besides its outputs";

/// A finished build.
pub struct Built {
    /// nvcc's exit code.
    pub code: i32,
    /// The plan.
    pub graph: TaskGraph,
    /// The run of the plan.
    pub run: Run,
    /// Why the plan was run a second time, without overlaps.
    pub retried: Option<&'static str>,
    /// Why the whole call was not stored, and so will not be a direct hit next time.
    pub not_stored: Option<NotStored>,
    /// The headers that were read; empty where the call was not stored.
    pub headers: Vec<Header>,
}

/// Builds what `request` asks for.
///
/// # Errors
/// Why plain nvcc has to carry out the call. Nothing was shown or put in place then.
pub fn build(
    request: &Request,
    options: &BuildOptions<'_>,
    scratch: &Scratch,
    interrupt: &Interrupt,
) -> Result<Built, Unsupported> {
    let private = match request.invocation.keeps {
        true => String::new(),
        false => scratch.keep_folder(),
    };
    let children = &interrupt.children;
    *interrupt
        .tokens
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = options.admission.tokens().cloned();
    let dry_run = DryRun {
        request,
        options,
        private: &private,
        scratch,
        children,
    };
    let dry_run = dry_run.run();
    wait_if_interrupted(children);
    let dry_run = dry_run?;
    let plan = Plan::make(&dry_run.transcript, &private, request, options)?;
    note_unfinished(&plan.graph, request, interrupt);
    let_clock_tick(options.started);
    let call = Building {
        request,
        options,
        scratch,
        interrupt,
        plan: &plan,
        dry_run: &dry_run,
    };
    let (mut done, fetched_results) = call.run()?;
    let side_file = call.side_file(&mut done);
    if done.run.code != 0 {
        done.run.code = failure::exit_code(&call.failed(&done), &fetched_results)?;
    }
    if let Some(side_file) = side_file {
        let reason = match done.run.code {
            0 => USES_SIDE_FILES,
            _ => failure::WITH_SIDE_FILES,
        };
        return Err(Unsupported::new(reason, side_file));
    }
    plan.remember(&done.graph, options);
    if let Some(folder) = options.save {
        publish::save(&done.graph, &done.run, folder, request);
    }
    if let Some(store) = options.store.filter(|_| options.writes_cache) {
        options.admission.keep(store);
    }
    let Done {
        graph,
        mut run,
        retried,
    } = done;
    run.seen.merge(&dry_run.seen);
    let stored = publish::publish(request, options, &graph, &run, interrupt)?;
    interrupt.messages.show();
    let (headers, not_stored) = match stored {
        Ok(headers) => (headers, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    Ok(Built {
        code: run.code,
        graph,
        run,
        retried,
        not_stored,
        headers,
    })
}

/// Everything that a run of the plan needs.
struct Building<'a> {
    request: &'a Request,
    options: &'a BuildOptions<'a>,
    scratch: &'a Scratch,
    interrupt: &'a Interrupt,
    plan: &'a Plan,
    dry_run: &'a DryRunResult,
}

/// A plan that was run to its end.
struct Done {
    graph: TaskGraph,
    run: Run,
    /// Why the plan was run a second time.
    retried: Option<&'static str>,
}

impl Building<'_> {
    /// Runs the plan. If overlapped steps or the cache may have caused a failure, runs nvcc's commands once more, without
    /// overlaps. The steps that succeeded are in the cache by then.
    fn run(&self) -> Result<(Done, FetchedResults), Unsupported> {
        let options = self.options;
        let remove = |path: &str| place::remove(&self.request.absolute(path));
        // The listener must not borrow all of `options`, which threads cannot share.
        let progress = options.progress;
        let show_progress = |graph: &TaskGraph, states: &TaskStates| {
            if let Some(progress) = progress {
                progress.update(progress_of(graph, states));
            }
        };
        let environment = self.environment();
        let mut run_options = RunOptions {
            remove: &remove,
            listener: progress.is_some().then_some(&show_progress as Listener<'_>),
            ..self.run_options(&environment)
        };
        let messages = &self.interrupt.messages;
        let mut collector = MessageCollector::new(&self.dry_run.transcript.messages, messages);
        let output_folder = self.scratch.path().join("out");
        let execute = |graph: &TaskGraph,
                       run_options: &RunOptions<'_>,
                       collector: &mut MessageCollector<'_>| {
            let run = execute(graph, run_options, &mut |finished| {
                if let Some(listener) = options.listener {
                    listener.finished(graph, finished, &output_folder);
                }
                collector.add(graph, finished);
            });
            if let Some(progress) = progress {
                progress.hide();
            }
            run
        };
        let mut graph = self.plan.graph.clone();
        let mut run = execute(&graph, &run_options, &mut collector);
        let mut retried = None;
        while let Some(why) = run.retry.filter(|_| !self.interrupt.children.is_closed()) {
            if retried.is_some() && !run_options.reads_cache {
                return Err(Unsupported::new("a plan that cannot be completed", why));
            }
            if why == HELD {
                if self.options.finishes_phase {
                    return Err(changes_other_files(&run));
                }
                run_options.order = Order::Sequential;
                retried = Some(why);
                graph = self.plan.plain.clone();
            } else if why == OTHER_LINES {
                run_options.lines_count = true;
                graph = self.plan.graph.clone();
            } else {
                run_options.reads_cache &=
                    retried.is_none() && why != warpcc_engine::artifact::LOST;
                retried = Some(why);
                graph = self.plan.plain.clone();
            }
            collector.start_rerun();
            run = execute(&graph, &run_options, &mut collector);
        }
        wait_if_interrupted(&self.interrupt.children);
        if let Some(message) = run.abort_reason.take() {
            return Err(abort_reason::counted_reason(message));
        }
        if collector.is_mixed() {
            return Err(Unsupported::new(standard_streams::MIXED, ""));
        }
        Ok((
            Done {
                graph,
                run,
                retried,
            },
            collector.fetched_results,
        ))
    }

    fn failed<'d>(&'d self, done: &'d Done) -> FailedBuild<'d> {
        FailedBuild {
            invocation: &self.request.invocation,
            graph: &done.graph,
            run: &done.run,
            store: self.options.store,
            finishes_phase: self.options.finishes_phase,
        }
    }

    fn run_options<'r>(&'r self, environment: &'r [(OsString, OsString)]) -> RunOptions<'r> {
        let (request, options) = (self.request, self.options);
        let finishes_phase = options.finishes_phase;
        let watch = self.dry_run.watch.as_deref();
        // No step may run that nvcc would not have started, where it could change the user's files: with `-keep` the tools
        // write intermediate files where the user finds them, and without the watch library nothing holds a command.
        let in_order = options.sequential
            || ((request.invocation.keeps || watch.is_none()) && !finishes_phase);
        RunOptions {
            remove: &|_| {},
            listener: None,
            directory: &request.directory,
            environment,
            path: request.variable("PATH"),
            path_map: &request.path_map,
            scratch: self.scratch.path(),
            store: options.store,
            reads_cache: options.reads_cache,
            upstream: options.upstream,
            writes_cache: options.writes_cache,
            watch,
            jobs: options.jobs,
            lines_count: self.lines_count(),
            order: match in_order {
                true => Order::Sequential,
                false => Order::Parallel,
            },
            on_failure: match finishes_phase {
                true => OnFailure::FinishPhase,
                false => OnFailure::Stop,
            },
            rule: rule(request),
            admission: Some(options.admission),
            executor: options.executor,
            terminal: request.terminal.as_ref(),
            children: &self.interrupt.children,
        }
    }

    /// Whether line numbers in intermediate files must be nvcc's, because somebody looks at these files.
    fn lines_count(&self) -> bool {
        let options = self.options;
        options.faithful || options.save.is_some() || options.listener.is_some()
    }

    /// The environment of nvcc's commands.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.request.environment.clone();
        for (name, value) in &self.dry_run.transcript.environment {
            environment.retain(|(n, _)| n != name.as_str());
            environment.push((name.into(), value.into()));
        }
        // A killed compiler leaves temporary files. There they are removed with the scratch folder.
        environment.retain(|(n, _)| n != "TMPDIR");
        environment.push(("TMPDIR".into(), self.scratch.path().join("tmp").into()));
        environment
    }

    /// A side file: one that a tool wrote or looked for next to its output.
    fn side_file(&self, done: &mut Done) -> Option<String> {
        let seen = done.run.seen.side_file.take();
        let is_watched = self.dry_run.watch.is_some();
        seen.or_else(|| match is_watched {
            true => None,
            false => publish::find_side_file(self.scratch, &done.graph, &done.run),
        })
    }
}

/// Why nvcc carries out a call with `--threads` whose commands change other files.
fn changes_other_files(run: &Run) -> Unsupported {
    let file = run.changed_file.as_ref();
    let file = file.map_or_else(String::new, |file| file.display().to_string());
    Unsupported::new(CHANGES_OTHER_FILES, file)
}

/// Notes the outputs that tools write in place. They are removed if the build is interrupted.
fn note_unfinished(graph: &TaskGraph, request: &Request, interrupt: &Interrupt) {
    let unfinished = interrupt.unfinished.lock();
    let mut unfinished = unfinished.unwrap_or_else(PoisonError::into_inner);
    let linked = graph.steps.iter().filter(|s| s.tool == Tool::HostLink);
    let written = linked.flat_map(|step| &step.writes);
    unfinished.extend(written.map(|&id| request.absolute(&graph.file(id).path)));
}

/// How far a run is.
fn progress_of(graph: &TaskGraph, states: &TaskStates) -> RunProgress {
    let mut progress = RunProgress {
        total: graph.steps.len(),
        ..RunProgress::default()
    };
    for (task, step) in graph.steps.iter().enumerate() {
        match states.get(task) {
            TaskState::Running => progress.running.push(match &step.arch {
                Some(arch) => format!("{} {arch}", step.tool.name()),
                None => step.tool.name().to_owned(),
            }),
            TaskState::Done | TaskState::Over => progress.done += 1,
            _ => {}
        }
    }
    progress
}

/// Waits until this process is older than one tick of the clock of file times. A file that a build system wrote just before
/// it called warpcc then has an older time than a file that changes while warpcc runs, so the two can be told apart.
fn let_clock_tick(started: SystemTime) {
    /// More than a tick of the kernel's file clock (10 ms at the slowest), as the manifest asks.
    const TICK: Duration = Duration::from_millis(11);
    if let Ok(age) = started.elapsed()
        && let Some(rest) = TICK.checked_sub(age)
    {
        std::thread::sleep(rest);
    }
}

/// Never returns after a signal: the signal's thread cleans up and ends the process.
fn wait_if_interrupted(children: &Children) {
    while children.is_closed() {
        std::thread::park();
    }
}

fn rule(request: &Request) -> Option<Rule> {
    let invocation = &request.invocation;
    invocation.depend.as_ref().map(|depend| Rule {
        target: depend.target.clone().or_else(|| invocation.output.clone()),
        folder: invocation.output_directory.clone(),
        skip_system: depend.skip_system,
        phony: depend.phony,
    })
}
