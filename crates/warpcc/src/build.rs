//! Builds a miss: dry run, graph, run, outputs in place, results stored.

mod accident;
mod dry_run;
mod hearing;
mod options;
mod plan;
mod publish;

use std::ffi::OsString;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use warpcc_engine::any_lines::OTHER_LINES;
use warpcc_engine::event::StepOutcome;
use warpcc_engine::failure::OnFailure;
use warpcc_engine::states::{TaskState, TaskStates};
use warpcc_engine::{Children, Listener, Order, Run, RunOptions, execute};
use warpcc_plan::depfile::Rule;
use warpcc_plan::{Arg, Step, TaskGraph, Tool, Unsupported};
use warpcc_report::record::Header;

pub use self::dry_run::REFUSED;
use self::dry_run::{DryRun, DryRunResult};
use self::hearing::Hearing;
pub use self::options::{BuildListener, BuildOptions};
use self::plan::Plan;
use crate::direct::NotKept;
use crate::doubt::{Doubt, FAILS_ON_OTHERS};
use crate::progress::RunProgress;
use crate::request::Request;
use crate::scratch::Scratch;
use crate::signals::Interrupt;
use crate::{place, standard_streams, threads};

/// Files that a tool makes or looks for next to its output. They are in the private folder, not where nvcc's user would
/// find them.
pub const STRAY: &str = "a tool uses files next to its output";

/// nvcc may then show more than the first failure. Which ones is a race, except where [`threads`] can tell.
pub const FAILS_UNDER_THREADS: &str = "a failing build with --threads";

/// We cannot see what a failing tool does to an old output: the private folder has none.
const FAILS_OVER_OLD: &str = "a failing step looks for its old output";

/// nvcc would have started only the first of the two steps.
const FAILS_OVER_FILE: &str = "a failing build wrote a file in two steps";

/// nvlink 11.8 has room for about 100 characters of a temporary file's name, and `TMPDIR` is longer here than nvcc's.
const FAILS_WITH_LTO: &str = "a failing device link with -dlto";

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
    /// Why the whole call will not hit next time, where it could not be stored.
    pub not_stored: Option<NotKept>,
    /// The headers that were read, where they are known.
    pub headers: Vec<Header>,
}

/// Builds what `request` asks for.
///
/// # Errors
/// Whatever makes plain nvcc the better choice; nothing was shown or put in place then.
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
    let dry = DryRun {
        request,
        options,
        private: &private,
        scratch,
        children,
    };
    let dry = dry.run();
    wait_if_interrupted(children);
    let dry = dry?;
    let plan = Plan::make(&dry.transcript, &private, request, options)?;
    note_unfinished(&plan.graph, request, interrupt);
    let_clock_tick(options.started);
    let call = Building {
        request,
        options,
        scratch,
        interrupt,
        plan: &plan,
        dry: &dry,
    };
    let (mut done, doubt) = call.run()?;
    if done.run.code != 0 {
        done.run.code = call.failed(&done, &doubt)?;
    } else if let Some(stray) = call.stray(&mut done) {
        return Err(Unsupported::new(STRAY, stray));
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
    run.seen.merge(&dry.seen);
    let kept = publish::publish(request, options, &graph, &run, interrupt)?;
    interrupt.messages.show();
    let (headers, not_stored) = match kept {
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
    dry: &'a DryRunResult,
}

/// A plan that was run to its end.
struct Done {
    graph: TaskGraph,
    run: Run,
    /// Why the plan was run a second time.
    retried: Option<&'static str>,
}

impl Building<'_> {
    /// Runs the plan. After a failure that overlaps or the cache may have caused, runs nvcc's commands without overlaps: the
    /// steps that succeeded are in the cache by then.
    fn run(&self) -> Result<(Done, Doubt), Unsupported> {
        let options = self.options;
        let remove = |path: &str| place::remove(&self.request.absolute(path));
        // Other threads use only this part of `options`.
        let progress = options.progress;
        let tell = |graph: &TaskGraph, states: &TaskStates| {
            if let Some(progress) = progress {
                progress.update(standing(graph, states));
            }
        };
        let environment = self.environment();
        let mut setting = RunOptions {
            remove: &remove,
            listener: progress.is_some().then_some(&tell as Listener<'_>),
            ..self.run_options(&environment)
        };
        let messages = &self.interrupt.messages;
        let mut hearing = Hearing::new(&self.dry.transcript.messages, messages);
        let aside = self.scratch.path().join("out");
        let execute = |graph: &TaskGraph, setting: &RunOptions<'_>, hearing: &mut Hearing<'_>| {
            let run = execute(graph, setting, &mut |finished| {
                if let Some(listener) = options.listener {
                    listener.finished(graph, finished, &aside);
                }
                hearing.take(graph, finished);
            });
            if let Some(progress) = progress {
                progress.rest();
            }
            run
        };
        let mut graph = self.plan.graph.clone();
        let mut run = execute(&graph, &setting, &mut hearing);
        let mut retried = None;
        while let Some(why) = run.retry.filter(|_| !self.interrupt.children.is_closed()) {
            if retried.is_some() && !setting.reads_cache {
                return Err(Unsupported::new("a plan that cannot be completed", why));
            }
            if why == OTHER_LINES {
                setting.lines_count = true;
                graph = self.plan.graph.clone();
            } else {
                setting.reads_cache &= retried.is_none() && why != warpcc_engine::artifact::LOST;
                retried = Some(why);
                graph = self.plan.plain.clone();
            }
            hearing.begin_again();
            run = execute(&graph, &setting, &mut hearing);
        }
        wait_if_interrupted(&self.interrupt.children);
        if let Some(accident) = run.accident.take() {
            return Err(accident::reason(accident));
        }
        if hearing.is_mixed() {
            return Err(Unsupported::new(standard_streams::MIXED, ""));
        }
        Ok((
            Done {
                graph,
                run,
                retried,
            },
            hearing.doubt,
        ))
    }

    /// Whether the commands that run at once with a failing one run to their end, as under nvcc's `--threads`. Not with an
    /// observer, who wants each command in its turn.
    fn finishes_phase(&self) -> bool {
        let options = self.options;
        self.request.invocation.threads
            && !options.sequential
            && options.listener.is_none()
            && options.save.is_none()
    }

    fn run_options<'r>(&'r self, environment: &'r [(OsString, OsString)]) -> RunOptions<'r> {
        let (request, options) = (self.request, self.options);
        let finishes_phase = self.finishes_phase();
        // Kept files are written where the user finds them: nothing may run that nvcc would not have started.
        let in_order = options.sequential || (request.invocation.keeps && !finishes_phase);
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
            watch: self.dry.watch.as_deref(),
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

    /// Whether line numbers in intermediate files count, because these files are looked at, too.
    fn lines_count(&self) -> bool {
        let options = self.options;
        options.faithful || options.save.is_some() || options.listener.is_some()
    }

    /// The environment of nvcc's commands.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.request.environment.clone();
        for (name, value) in &self.dry.transcript.environment {
            environment.retain(|(n, _)| n != name.as_str());
            environment.push((name.into(), value.into()));
        }
        // A killed compiler's temporary files are removed with the private folder.
        environment.retain(|(n, _)| n != "TMPDIR");
        environment.push(("TMPDIR".into(), self.scratch.path().join("tmp").into()));
        environment
    }

    /// The exit code of a build that failed as it would fail with nvcc.
    ///
    /// # Errors
    /// Only nvcc knows how it fails.
    fn failed(&self, done: &Done, doubt: &Doubt) -> Result<i32, Unsupported> {
        if doubt.is_justified(self.options.store) {
            return Err(Unsupported::new(FAILS_ON_OTHERS, ""));
        }
        if let Some(path) = &done.run.unmet_output {
            return Err(Unsupported::new(FAILS_OVER_OLD, path.display().to_string()));
        }
        // A step that was ended may have emptied what an earlier one wrote.
        if let Some(path) = &done.run.contested_file {
            return Err(Unsupported::new(
                FAILS_OVER_FILE,
                path.display().to_string(),
            ));
        }
        let is_lto = |step: &Step| {
            let mut words = step.args.iter().filter_map(Arg::as_text);
            step.tool == Tool::Nvlink && words.any(|word| word == "-dlto")
        };
        let mut tasks = done.run.tasks.iter();
        if tasks.any(|task| {
            matches!(task.outcome, StepOutcome::Failed(_)) && is_lto(&done.graph.steps[task.step])
        }) {
            return Err(Unsupported::new(FAILS_WITH_LTO, ""));
        }
        let invocation = &self.request.invocation;
        if !invocation.threads {
            return Ok(done.run.code);
        }
        let count = invocation.thread_count.filter(|_| self.finishes_phase());
        match count {
            Some(count) if threads::is_certain(&done.graph, &done.run.tasks, count) => {
                Ok(threads::EXIT_CODE)
            }
            _ => Err(Unsupported::new(FAILS_UNDER_THREADS, "")),
        }
    }

    /// A file that a tool made or looked for next to its output.
    fn stray(&self, done: &mut Done) -> Option<String> {
        let seen = done.run.seen.stray.take();
        let is_watched = self.dry.watch.is_some();
        seen.or_else(|| match is_watched {
            true => None,
            false => publish::left_beside(self.scratch, &done.graph, &done.run),
        })
    }
}

/// Notes the outputs that tools write in place, for a build that is interrupted.
fn note_unfinished(graph: &TaskGraph, request: &Request, interrupt: &Interrupt) {
    let unfinished = interrupt.unfinished.lock();
    let mut unfinished = unfinished.unwrap_or_else(PoisonError::into_inner);
    let linked = graph.steps.iter().filter(|s| s.tool == Tool::HostLink);
    let written = linked.flat_map(|step| &step.writes);
    unfinished.extend(written.map(|&id| request.absolute(&graph.file(id).path)));
}

/// How far a run is, in words for the terminal.
fn standing(graph: &TaskGraph, states: &TaskStates) -> RunProgress {
    let mut standing = RunProgress {
        total: graph.steps.len(),
        ..RunProgress::default()
    };
    for (task, step) in graph.steps.iter().enumerate() {
        match states.get(task) {
            TaskState::Running => standing.running.push(match &step.arch {
                Some(arch) => format!("{} {arch}", step.tool.name()),
                None => step.tool.name().to_owned(),
            }),
            TaskState::Done | TaskState::Over => standing.done += 1,
            _ => {}
        }
    }
    standing
}

/// Waits until a change made before this process began shows an older time than anything that
/// happens from now on. A file that a build system wrote just before it called us then counts as
/// settled, and only one that changes while we run does not.
fn let_clock_tick(started: SystemTime) {
    /// More than a tick of the kernel's file clock (10 ms at the slowest), as the manifest asks.
    const TICK: Duration = Duration::from_millis(11);
    if let Ok(age) = started.elapsed()
        && let Some(rest) = TICK.checked_sub(age)
    {
        std::thread::sleep(rest);
    }
}

/// After a signal there is nothing more to do: its thread cleans up and ends the process.
fn wait_if_interrupted(children: &Children) {
    while children.is_closed() {
        std::thread::park();
    }
}

fn rule(request: &Request) -> Option<Rule> {
    let invocation = &request.invocation;
    invocation.depend.as_ref().map(|depend| Rule {
        target: depend
            .target
            .clone()
            .or_else(|| invocation.output.clone())
            .unwrap_or_default(),
        folder: invocation.output_directory.clone(),
        skip_system: depend.skip_system,
        phony: depend.phony,
    })
}
