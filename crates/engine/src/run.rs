//! The main loop: take the ready task with the longest way to go, give it to a thread, note how
//! it ended, hand on its diagnostics in nvcc's order.
//!
//! On a failure nvcc stops at the first failing command of its order. So does this: tasks after
//! the first failure are ended, tasks before it run on, because one of them may fail as well and
//! nvcc would have shown that one. Under `--threads` whole phases take the place of tasks ([`OnFailure`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime};

use warpcc_cache::{DiskStore, Roots, Upstream};
use warpcc_plan::depfile::Rule;
use warpcc_plan::{TaskGraph, Tool};

use warpcc_plan::overlap::{Assumed, Expected};

use crate::admission::{self, Admission};
use crate::artifact::{Artifacts, LOST};
use crate::beside::Beside;
use crate::conditions::Place;
use crate::event::{Finished, Outcome};
use crate::executor::Executor;
use crate::failure::OnFailure;
use crate::process::Children;
use crate::remote_exec;
use crate::states::{TaskState, TaskStates};
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
    pub roots: &'a Roots,
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
            roots: self.roots,
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
    let clock = Instant::now();
    let began = SystemTime::now();
    let results = (!graph.private.is_empty()).then(|| options.scratch.join("out"));
    let artifacts = Artifacts::new(graph, options.store, options.directory, results.as_deref());
    let worker = Worker {
        graph,
        options,
        artifacts: &artifacts,
        clock,
        tools: task::Tools::default(),
        elsewhere: remote_exec::Elsewhere::default(),
        beside: Beside::new(),
    };
    let expected = |task: usize| expected(graph, options, task);
    let mut states = TaskStates::new(graph, options.order == Order::Sequential, expected);
    let mut ended: BTreeMap<usize, (Finished, Seen)> = BTreeMap::new();
    let rank = |task: usize| options.on_failure.rank(graph, task);
    let in_order = options.on_failure == OnFailure::Stop;
    // The rank of the first failure.
    let mut failed = usize::MAX;
    let mut accident = artifacts.prepare().err().map(|e| e.to_string());
    let mut retry = None;
    let mut open: Vec<&Assumed> = graph.assumed.iter().collect();
    let mut discarded = None;
    let mut pointless = None;
    let mut shown = 0;
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
                && let Some(task) = states.next()
            {
                states.advance(task, TaskState::Running);
                running += 1;
                let sender = send.clone();
                let worker = &worker;
                let priority = states.priority(task);
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
                    states.advance(task, TaskState::Ready);
                    break;
                }
                let _ = send.send((task, work_or_report(worker, task, priority)));
            }
            if running == 0 {
                break;
            }
            if let Some(listener) = options.listener {
                listener(graph, &states);
            }
            let Ok((task, result)) = receive.recv() else {
                break;
            };
            running -= 1;
            let (finished, seen) = result.unwrap_or_else(|error| {
                if discarded == Some(task) || pointless == Some(task) {
                    // Ended by us.
                } else if let Some(why) = [task::NOT_SPLICED, LOST]
                    .into_iter()
                    .find(|why| error.to_string() == *why)
                {
                    retry.get_or_insert(why);
                } else if rank(task) <= failed {
                    accident = Some(format!("{}: {error}", graph.steps[task].tool));
                }
                (Finished::new(task, Outcome::Failed(1)), Seen::default())
            });
            if pointless == Some(task) {
                pointless = None;
                continue;
            }
            if graph.steps[task].tool == Tool::EarlyStub
                && matches!(finished.outcome, Outcome::Failed(_))
            {
                // The real cicc will say what is wrong, or that nothing is.
                states.advance(task, TaskState::Waiting);
                continue;
            }
            let guessed = open
                .iter()
                .any(|a| a.redo.is_some_and(|(step, _)| step == task));
            if discarded == Some(task) {
                // It worked on an assumption that has been corrected meanwhile.
                discarded = None;
                states.advance(task, TaskState::Ready);
                continue;
            }
            if matches!(finished.outcome, Outcome::Failed(_)) && guessed {
                // Perhaps only because of what it assumed: it waits for the truth.
                states.advance(task, TaskState::Waiting);
                continue;
            }
            if matches!(finished.outcome, Outcome::Failed(_)) {
                states.advance(task, TaskState::Over);
                if rank(task) < failed {
                    failed = rank(task);
                    states.cut(|other| rank(other) > failed);
                    options
                        .children
                        .kill(|other| other < graph.steps.len() && rank(other) > failed);
                }
            } else {
                states.advance(task, TaskState::Done);
                let (decided, undecided) = open
                    .iter()
                    .partition(|a| graph.steps[task].writes.contains(&a.file));
                let decided: Vec<&Assumed> = decided;
                open = undecided;
                for assumed in decided {
                    let held = artifacts
                        .confirms(assumed.file, &assumed.expected)
                        .unwrap_or(false);
                    if let Expected::SameAs(early, step) = assumed.expected
                        && states.get(step) != TaskState::Done
                    {
                        // The real one came first, from the cache.
                        options.children.kill(|other| other == step);
                        pointless = (states.get(step) == TaskState::Running).then_some(step);
                        if artifacts.correct(assumed.file, early).is_err() {
                            retry = Some("the stub is not the remembered one");
                        }
                        ended.insert(
                            step,
                            (Finished::new(step, Outcome::Skipped), Seen::default()),
                        );
                        states.advance(step, TaskState::Done);
                        continue;
                    }
                    let Some((step, stand_in)) = assumed.redo else {
                        if !held {
                            retry = Some("the module id is not the remembered one");
                        }
                        continue;
                    };
                    // Nothing that needs `step` has started: that needs this task as well.
                    match states.get(step) {
                        _ if !held && artifacts.correct(assumed.file, stand_in).is_err() => {
                            retry = Some("the stub is not the remembered one");
                        }
                        TaskState::Waiting if states.is_free(step) => {
                            states.advance(step, TaskState::Ready);
                        }
                        TaskState::Running if !held => {
                            discarded = Some(step);
                            options.children.kill(|other| other == step);
                        }
                        TaskState::Done if !held => {
                            ended.remove(&step);
                            states.advance(step, TaskState::Ready);
                        }
                        _ => {}
                    }
                }
            }
            // After an accident nvcc does everything itself: nobody wants the rest.
            if retry.is_some() || accident.is_some() {
                failed = 0;
                states.stop();
                options.children.kill(|_| true);
                continue;
            }
            ended.insert(task, (finished, seen));
            while let Some((finished, _)) = ended.get(&shown)
                && in_order
                && shown <= failed
                && open.is_empty()
            {
                each(finished);
                shown += 1;
            }
        }
    });
    // nvcc would not have started them any more.
    worker.beside.undo(|task| rank(task) > failed);
    if retry.is_none() && accident.is_none() {
        let failing = ended.values().map(|(finished, _)| finished);
        let failing = failing.filter(|f| matches!(f.outcome, Outcome::Failed(_)));
        for finished in failing.filter(|f| rank(f.step) <= failed) {
            worker.take_away_outputs(finished.step);
        }
    }
    // A failure before the command that would have confirmed an assumption depends on none.
    while let Some((finished, _)) = ended.get(&shown)
        && in_order
        && shown <= failed
        && retry.is_none()
        && accident.is_none()
    {
        each(finished);
        shown += 1;
    }
    if !in_order && retry.is_none() {
        let counts = ended.values().map(|(finished, _)| finished);
        counts.filter(|f| rank(f.step) <= failed).for_each(each);
    }
    let mut run = Run {
        code: 0,
        tasks: Vec::with_capacity(graph.steps.len()),
        seen: Seen::default(),
        began,
        outputs: Vec::new(),
        retry,
        accident,
    };
    if run.retry.is_some() {
        return run;
    }
    for (i, step) in graph.steps.iter().enumerate() {
        let finished = match ended.remove(&i) {
            Some((finished, seen)) if rank(i) <= failed => {
                run.seen.merge(&seen);
                finished
            }
            _ => Finished::new(i, Outcome::Skipped),
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
    if let Some(admission) = options.admission.filter(|_| run.code == 0) {
        // What it would take with nobody else on the machine: measured where it ran.
        let took = |task: usize| match run.tasks[task].outcome {
            Outcome::Ran => run.tasks[task].busy_millis(),
            _ => expected(task),
        };
        admission.learn_whole(TaskStates::new(graph, false, took).longest());
    }
    run
}
