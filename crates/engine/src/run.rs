//! Runs a graph: gives the tasks that the `schedule` chooses to threads, and puts together what came of them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime};

use warpcc_cache::{DiskStore, Upstream};
use warpcc_path_map::{PathMap, WorkDir};
use warpcc_plan::depfile::Rule;
use warpcc_plan::overlap::Assumed;
use warpcc_plan::{FileId, TaskGraph};

use crate::admission::{self, Admission};
use crate::artifact::Artifacts;
use crate::beside::Beside;
use crate::conditions::Place;
use crate::event::{Finished, Outcome};
use crate::executor::Executor;
use crate::failure::OnFailure;
use crate::process::Children;
use crate::remote_exec;
use crate::schedule::{Effects, End, Schedule};
use crate::states::TaskStates;
use crate::task::{self, Worker};
use crate::terminal::Terminal;
use crate::traced_inputs::Seen;

/// In which order tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As soon as their inputs are there.
    Parallel,
    /// One at a time, in nvcc's order.
    Sequential,
}

/// Is told where every task of a graph is, each time that something has changed.
pub type Listener<'a> = &'a (dyn Fn(&TaskGraph, &TaskStates) + Sync);

/// Everything a run needs to know.
pub struct RunOptions<'a> {
    /// The user's working directory, in which every command runs.
    pub directory: &'a Path,
    /// The whole environment of the commands.
    pub environment: &'a [(OsString, OsString)],
    /// `PATH` as the user has it. nvcc puts folders of its own before it.
    pub path: Option<&'a OsStr>,
    /// Folders whose names enter neither keys nor results; usually none.
    pub path_map: &'a PathMap,
    /// A private folder for logs and results, absolute.
    pub scratch: &'a Path,
    /// The cache, if there is one to use.
    pub store: Option<&'a DiskStore>,
    /// Whether results may be taken from it.
    pub reads_cache: bool,
    /// Stores elsewhere, to be asked where it has nothing, and told of what is new.
    pub upstream: Option<&'a dyn Upstream>,
    /// Whether results may be put into it.
    pub writes_cache: bool,
    /// The watch library, if it can be used.
    pub watch: Option<&'a Path>,
    /// At most this many tasks at a time.
    pub jobs: usize,
    /// Order of the tasks.
    pub order: Order,
    /// What a failure ends.
    pub on_failure: OnFailure,
    /// What the dependency filter writes.
    pub rule: Option<Rule>,
    /// The machine's budget, if tasks are to wait for their turn.
    pub admission: Option<&'a Admission<'a>>,
    /// Other machines that may run tasks, if there are any.
    pub executor: Option<&'a dyn Executor>,
    /// The terminal that diagnostics go to, if they do.
    pub terminal: Option<&'a Terminal>,
    /// Who looks on, if somebody does.
    pub listener: Option<Listener<'a>>,
    /// Removes a file of the user's that is in the way, as nvcc does right before a command.
    pub remove: &'a (dyn Fn(&str) + Sync),
    /// The children, so that a signal can end them.
    pub children: &'a Children,
}

impl RunOptions<'_> {
    /// Where conditions are looked at.
    pub fn place(&self) -> Place<'_> {
        Place {
            environment: self.environment,
            directory: self.directory,
            path_map: self.path_map,
        }
    }

    /// The working directory with its path map.
    pub fn work_dir(&self) -> WorkDir<'_> {
        WorkDir {
            directory: self.directory,
            path_map: self.path_map,
        }
    }

    /// Whether nvcc, and not the user, has put a folder into the `PATH` of the commands.
    pub fn is_nvccs_folder(&self, folder: &Path) -> bool {
        let (Some(all), Some(users)) = (self.variable("PATH"), self.path) else {
            return false;
        };
        let own = all
            .as_encoded_bytes()
            .strip_suffix(users.as_encoded_bytes());
        let own = OsStr::from_bytes(own.unwrap_or_default());
        std::env::split_paths(own).any(|of_nvcc| self.directory.join(of_nvcc) == folder)
    }

    /// A variable of the commands' environment, the last one where there are several.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_os_str())
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    /// nvcc's exit code.
    pub code: i32,
    /// Every task, in plan order.
    pub tasks: Vec<Finished>,
    /// What all of them saw, hits by what they saw when they ran.
    pub seen: Seen,
    /// When the first command was started.
    pub began: SystemTime,
    /// Final outputs: where they are now, where they belong.
    pub outputs: Vec<(PathBuf, PathBuf)>,
    /// Set when the graph's overlaps did not work out: nothing was put in place, and the same plan
    /// without them is to be run.
    pub retry: Option<&'static str>,
    /// Set when a tool ended by a signal or could not be started: not a compiler's verdict.
    pub accident: Option<String>,
}

/// Milliseconds that a task will take, waiting not counted.
fn expected(graph: &TaskGraph, options: &RunOptions<'_>, task: usize) -> u64 {
    let step = &graph.steps[task];
    let kind = admission::kind_of(step.tool);
    match options.admission {
        Some(admission) => {
            let name = admission::name_of(step, graph);
            admission.expect(&name, kind, 0).millis
        }
        None => kind.usual_millis(),
    }
}

/// Does a task. A panic, a mistake of ours, is an accident like others: the loop learns of it, and the call goes to nvcc.
fn work_or_report(
    worker: &Worker<'_>,
    task: usize,
    priority: u64,
) -> std::io::Result<(Finished, Seen)> {
    // Nothing of a broken-off task is looked at any more: the run is given up.
    let work = std::panic::AssertUnwindSafe(|| worker.work(task, priority));
    std::panic::catch_unwind(work)
        .unwrap_or_else(|_| Err(std::io::Error::other("a mistake in warpcc")))
}

/// Runs `graph`; `each` gets the tasks in plan order as soon as everything before them is done,
/// to show their diagnostics.
pub fn execute(
    graph: &TaskGraph,
    options: &RunOptions<'_>,
    each: &mut dyn FnMut(&Finished),
) -> Run {
    let began = SystemTime::now();
    let results = (!graph.private.is_empty()).then(|| options.scratch.join("out"));
    let artifacts = Artifacts::new(graph, options.store, options.directory, results.as_deref());
    let worker = Worker {
        graph,
        options,
        artifacts: &artifacts,
        clock: Instant::now(),
        tools: task::Tools::default(),
        elsewhere: remote_exec::Elsewhere::default(),
        beside: Beside::new(),
    };
    let effects = OnFiles {
        artifacts: &artifacts,
        children: options.children,
    };
    let expected = |task: usize| expected(graph, options, task);
    let in_plan_order = options.order == Order::Sequential;
    let states = TaskStates::new(graph, in_plan_order, expected);
    let mut schedule = Schedule::new(graph, options.on_failure, states, &effects);
    if let Err(error) = artifacts.prepare() {
        schedule.give_up(error.to_string());
    }
    run_all(&worker, &mut schedule, each);
    // nvcc would not have started them any more.
    worker.beside.undo(|task| !schedule.counts(task));
    for task in schedule.failures() {
        worker.take_away_outputs(task);
    }
    schedule.show_rest(each);
    let run = collect(graph, &artifacts, schedule.end(), began);
    if let Some(admission) = options
        .admission
        .filter(|_| run.code == 0 && run.retry.is_none())
    {
        // What it would take with nobody else on the machine: measured where it ran.
        let took = |task: usize| match run.tasks[task].outcome {
            Outcome::Ran => run.tasks[task].busy_millis(),
            _ => expected(task),
        };
        admission.learn_whole(TaskStates::new(graph, false, took).longest());
    }
    run
}

/// What the schedule does to files and processes.
struct OnFiles<'a> {
    artifacts: &'a Artifacts<'a>,
    children: &'a Children,
}

impl Effects for OnFiles<'_> {
    fn confirms(&self, assumed: &Assumed) -> bool {
        let confirmed = self.artifacts.confirms(assumed.file, &assumed.expected);
        confirmed.unwrap_or(false)
    }

    fn correct(&self, actual: FileId, assumed: FileId) -> bool {
        self.artifacts.correct(actual, assumed).is_ok()
    }

    fn kill(&self, which: &dyn Fn(usize) -> bool) {
        self.children.kill(which);
    }
}

/// Gives each ready task to a thread, and each result to the schedule, until nothing runs any more.
fn run_all(worker: &Worker<'_>, schedule: &mut Schedule<'_>, each: &mut dyn FnMut(&Finished)) {
    let options = worker.options;
    // What goes to other machines is beside what may run here.
    let abroad = options.executor.map_or(0, |e| e.slots().size());
    let jobs = options.jobs.max(1).saturating_add(abroad);
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel::<(usize, std::io::Result<(Finished, Seen)>)>();
        let mut running = 0;
        // Closed when the loop is over.
        let _looking = options.admission.map(|admission| {
            let (looking, done) = mpsc::channel();
            let (board, children) = (admission.board(), options.children);
            let watch = move || admission::watch_memory(board, children, &done);
            // Without the thread nobody makes room for others.
            drop(thread::Builder::new().spawn_scoped(scope, watch));
            looking
        });
        loop {
            while running < jobs
                && let Some((task, priority)) = schedule.start()
            {
                running += 1;
                let sender = send.clone();
                let work = move || {
                    let result = work_or_report(worker, task, priority);
                    // The receiver outlives every worker: it counts them.
                    let _ = sender.send((task, result));
                };
                if thread::Builder::new().spawn_scoped(scope, work).is_ok() {
                    continue;
                }
                // There are as many threads as there may be: it waits for one of ours, or is done here and now.
                if running > 1 {
                    running -= 1;
                    schedule.put_back(task);
                    break;
                }
                let _ = send.send((task, work_or_report(worker, task, priority)));
            }
            if running == 0 {
                break;
            }
            if let Some(listener) = options.listener {
                listener(worker.graph, schedule.states());
            }
            let Ok((task, result)) = receive.recv() else {
                break;
            };
            running -= 1;
            schedule.ended(task, result);
            schedule.show(each);
        }
    });
}

/// Puts together what the run came to.
fn collect(graph: &TaskGraph, artifacts: &Artifacts<'_>, mut end: End, began: SystemTime) -> Run {
    let mut run = Run {
        code: 0,
        tasks: Vec::with_capacity(graph.steps.len()),
        seen: Seen::default(),
        began,
        outputs: Vec::new(),
        retry: end.retry,
        accident: end.accident,
    };
    if run.retry.is_some() {
        return run;
    }
    for (i, step) in graph.steps.iter().enumerate() {
        let finished = match end.tasks.remove(&i) {
            Some((finished, seen)) => {
                run.seen.merge(&seen);
                finished
            }
            None => Finished::new(i, Outcome::Skipped),
        };
        match &finished.outcome {
            Outcome::Failed(code) => run.code = *code,
            Outcome::Ran | Outcome::Hit => {
                for &id in step.writes.iter().filter(|&&id| artifacts.is_elsewhere(id)) {
                    run.outputs.push((
                        artifacts.path(id).to_owned(),
                        PathBuf::from(&graph.file(id).path),
                    ));
                }
            }
            Outcome::Skipped => {}
        }
        run.tasks.push(finished);
    }
    run
}
