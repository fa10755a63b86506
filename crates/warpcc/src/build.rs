//! A miss: dry run, graph, run, outputs in place, results kept.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use warpcc_budget::Kind;
use warpcc_budget::costs::Measured;
use warpcc_cache::{DiskStore, Expected, KeyVariants, Upstream};
use warpcc_engine::Admission;
use warpcc_engine::admission::Entry;
use warpcc_engine::compiler_cache;
use warpcc_engine::conditions;
use warpcc_engine::failure::OnFailure;
use warpcc_engine::process;
use warpcc_engine::relocate::NO_PREFIX_MAP;
use warpcc_engine::room;
use warpcc_engine::states::{TaskState, TaskStates};
use warpcc_engine::traced_inputs::{Scene, Seen};
use warpcc_engine::{Children, Executor, Finished, Listener, Order, Run, RunOptions, execute};
use warpcc_plan::depfile::Rule;
use warpcc_plan::overlap;
use warpcc_plan::relocate::relocate;
use warpcc_plan::{FileKind, PlanFile, Step, TaskGraph, Tool, Transcript, Unsupported};
use warpcc_report::record::Header;

use crate::dates::Texts;
use crate::direct::NotKept;
use crate::doubt::{Doubt, FAILS_ON_OTHERS};
use crate::outputs::{self, Outputs};
use crate::report::progress::{Progress, Standing};
use crate::request::Request;
use crate::said::Streams;
use crate::scratch::Scratch;
use crate::signals::Interrupt;
use crate::{direct, module_ids, place, standard_streams, threads};

/// nvcc's own verdict on a command line, not a shortcoming of ours: counted as a failed call.
pub const REFUSED: &str = "nvcc refuses the command line";

/// What a tool makes or looks for beside its output is in the private folder where nobody finds it.
pub const STRAY: &str = "a tool works with files beside its output";

/// nvcc may show more than the first failure then; what, is a race ([`threads`] knows where it is not).
pub const FAILS_UNDER_THREADS: &str = "a failing build with --threads";

/// How a build is to be done.
pub struct BuildOptions<'a> {
    /// The cache, if it can be used.
    pub store: Option<&'a DiskStore>,
    /// Whether results may come from it.
    pub reads_cache: bool,
    /// Whether results may go into it.
    pub writes_cache: bool,
    /// The shared caches behind it.
    pub upstream: Option<&'a dyn Upstream>,
    /// The keys of the whole call.
    pub keys: &'a KeyVariants,
    /// At most this many tasks of this call at a time.
    pub jobs: usize,
    /// The machine's budget.
    pub admission: &'a Admission<'a>,
    /// Other machines, if there are any.
    pub executor: Option<&'a dyn Executor>,
    /// One at a time, in nvcc's order.
    pub sequential: bool,
    /// Exactly nvcc's commands: nothing overlapped, nothing started early.
    pub faithful: bool,
    /// This program, and those that started it.
    pub ourselves: &'a [PathBuf],
    /// When this process began.
    pub started: SystemTime,
    /// Where each command's files are to be copied.
    pub save: Option<&'a Path>,
    /// Who looks at each command's files as soon as it has ended.
    pub listener: Option<&'a dyn BuildListener>,
    /// The line on the terminal, if somebody asked for it.
    pub progress: Option<&'a Progress>,
}

/// Looks on while a plan runs.
pub trait BuildListener {
    /// A command has ended. In sequential order the next one has not begun, and what it wrote is
    /// still as it wrote it. Outputs of the call are in `aside` until the plan has ended.
    fn finished(&self, graph: &TaskGraph, finished: &Finished, aside: &Path);
}

/// What a build came to.
pub struct Built {
    /// nvcc's exit code.
    pub code: i32,
    /// The plan.
    pub graph: TaskGraph,
    /// What ran.
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
    let keeps = request.invocation.keeps;
    let private = if keeps {
        String::new()
    } else {
        scratch.keep_folder()
    };
    let mut watch = options
        .store
        .filter(|_| options.writes_cache && warpcc_watch::available())
        .and_then(|store| install_watch(store, scratch));
    let children = &interrupt.children;
    *interrupt
        .tokens
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = options.admission.tokens().cloned();
    let dry = dry_run(
        request,
        options,
        &private,
        watch.as_deref(),
        scratch,
        children,
    );
    wait_if_interrupted(children);
    let (mut transcript, dry_seen) = dry?;
    // On a file system mounted noexec the loader refuses the library, and would say so in every
    // tool's messages.
    let told = transcript.messages.len();
    transcript.messages.retain(|m| !m.starts_with(NOT_LOADED));
    let dry_seen = if transcript.messages.len() == told {
        dry_seen
    } else {
        watch = None;
        Seen::unwatched("the loader refuses the watch library")
    };
    let mut plain = TaskGraph::build(&transcript, &private)?;
    decide_on_outputs(request, &plain)?;
    if !keeps && let Some(file) = between_steps(request, &plain) {
        return Err(Unsupported::new(
            "an intermediate file outside the private folder",
            file,
        ));
    }
    if !request.roots.is_empty() {
        relocate(&mut plain, &|path| request.roots.fixed(path).into_owned());
    }
    let mut graph = plain.clone();
    let id_subject = overlap::module_id_subject(&graph);
    if !options.faithful && !options.sequential {
        overlap::split_host_compile(&mut graph);
        if let (Some(store), Some(subject)) = (options.store, &id_subject)
            && let Some(id) = module_ids::recall(store, subject)
        {
            overlap::predict_module_id(&mut graph, &id);
        }
        if let (Some(store), Some(subject)) = (options.store, &id_subject)
            && let Some(stub) = module_ids::recall_stub(store, subject, &graph)
        {
            overlap::predict_stub(&mut graph, &stub);
        } else if has_idle_cores(&graph, options) {
            overlap::make_stub_early(&mut graph);
        }
    }
    let remove = |path: &str| place::remove(&request.absolute(path));
    let mut environment = request.environment.clone();
    for (name, value) in &transcript.environment {
        environment.retain(|(n, _)| n != name.as_str());
        environment.push((name.into(), value.into()));
    }
    // What a killed compiler leaves behind goes with the private folder.
    environment.retain(|(n, _)| n != "TMPDIR");
    environment.push(("TMPDIR".into(), scratch.path().join("tmp").into()));
    {
        let mut in_place = interrupt
            .unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let linked = graph.steps.iter().filter(|s| s.tool == Tool::HostLink);
        in_place.extend(
            linked
                .flat_map(|s| &s.writes)
                .map(|&id| request.absolute(&graph.file(id).path)),
        );
    }
    // Somebody who looks on wants each command in its turn.
    let finishes_phase = request.invocation.threads
        && !options.sequential
        && options.listener.is_none()
        && options.save.is_none();
    // Only this of `options` is looked at from other threads.
    let progress = options.progress;
    let tell = |graph: &TaskGraph, states: &TaskStates| {
        if let Some(progress) = progress {
            progress.update(standing(graph, states));
        }
    };
    let mut setting = RunOptions {
        remove: &remove,
        listener: options.progress.is_some().then_some(&tell as Listener<'_>),
        directory: &request.directory,
        environment: &environment,
        path: request.variable("PATH"),
        roots: &request.roots,
        scratch: scratch.path(),
        store: options.store,
        reads_cache: options.reads_cache,
        upstream: options.upstream,
        writes_cache: options.writes_cache,
        watch: watch.as_deref(),
        jobs: options.jobs,
        // Kept files are written where the user finds them: nothing may run that nvcc would not have started.
        order: if options.sequential || (keeps && !finishes_phase) {
            Order::Sequential
        } else {
            Order::Parallel
        },
        on_failure: if finishes_phase {
            OnFailure::FinishPhase
        } else {
            OnFailure::Stop
        },
        rule: rule(request),
        admission: Some(options.admission),
        executor: options.executor,
        terminal: request.terminal.as_ref(),
        children,
    };
    let mut retried = None;
    // Until the end nvcc may have to do it all, and would say it all again.
    let mut first = Streams::default();
    for message in &transcript.messages {
        first.stderr.extend_from_slice(message.as_bytes());
        first.stderr.push(b'\n');
    }
    interrupt.said.begin(&first);
    let_clock_tick(options.started);
    let mut doubt = Doubt::default();
    let (is_one, mut is_mixed) = (standard_streams::are_one(), false);
    let mut hear = |graph: &TaskGraph, doubt: &mut Doubt, finished: &Finished| {
        // In which order a tool says two things, it alone knows.
        is_mixed |= is_one && !finished.stdout.is_empty() && !finished.stderr.is_empty();
        if !(doubt.concerns(graph, finished) || is_mixed) {
            interrupt.said.hear(finished);
        }
    };
    let look = |graph: &TaskGraph, finished: &Finished| {
        if let Some(listener) = options.listener {
            listener.finished(graph, finished, &scratch.path().join("out"));
        }
    };
    let mut run = execute(&graph, &setting, &mut |finished| {
        look(&graph, finished);
        hear(&graph, &mut doubt, finished)
    });
    let rest = || options.progress.inspect(|progress| progress.rest());
    rest();
    // Everything that did work out is in the cache by now. Without overlaps and without taking
    // results from the cache there is nothing left that could go wrong this way.
    let mut reads_cache = options.reads_cache;
    while let Some(why) = run.retry.filter(|_| !children.is_closed()) {
        if retried.is_some() && !reads_cache {
            return Err(Unsupported::new("a plan that does not work out", why));
        }
        reads_cache &= retried.is_none() && why != warpcc_engine::artifact::LOST;
        retried = Some(why);
        graph = plain.clone();
        interrupt.said.begin(&first);
        doubt.begin_again();
        setting.reads_cache = reads_cache;
        run = execute(&graph, &setting, &mut |finished| {
            look(&graph, finished);
            hear(&graph, &mut doubt, finished)
        });
        rest();
    }
    wait_if_interrupted(children);
    if let Some(accident) = run.accident.take() {
        if accident.ends_with(NO_PREFIX_MAP) {
            return Err(Unsupported::new(NO_PREFIX_MAP, ""));
        }
        if accident.contains(process::STOOD_STILL) {
            return Err(stood_still(accident));
        }
        if accident.contains(compiler_cache::CHOOSES) {
            return Err(Unsupported::new(compiler_cache::CHOOSES, ""));
        }
        if accident.contains(room::NO_ROOM) || accident.contains(room::READS_INPUT) {
            return Err(hindered(&accident));
        }
        return Err(Unsupported::new("a command ended abnormally", accident));
    }
    if is_mixed {
        return Err(Unsupported::new(standard_streams::MIXED, ""));
    }
    if run.code != 0 && doubt.is_justified(options.store) {
        return Err(Unsupported::new(FAILS_ON_OTHERS, ""));
    }
    // Under -t nvcc runs what it started to its end and shows more than the first failure.
    if run.code != 0 && request.invocation.threads {
        let count = request.invocation.thread_count.filter(|_| finishes_phase);
        if !count.is_some_and(|count| threads::is_certain(&graph, &run.tasks, count)) {
            return Err(Unsupported::new(FAILS_UNDER_THREADS, ""));
        }
        run.code = threads::EXIT_CODE;
    }
    if run.code == 0 {
        let seen = run.seen.stray.take();
        let unseen = || {
            watch
                .is_none()
                .then(|| left_beside(scratch, &graph, &run))?
        };
        if let Some(stray) = seen.or_else(unseen) {
            return Err(Unsupported::new(STRAY, stray));
        }
    }
    if let (Some(store), Some(subject)) =
        (options.store.filter(|_| options.writes_cache), &id_subject)
    {
        module_ids::remember(store, subject, &graph);
        module_ids::remember_stub(store, subject, &graph);
    }
    if let Some(folder) = options.save {
        save(&graph, &run, folder, request);
    }
    if let Some(store) = options.store.filter(|_| options.writes_cache) {
        options.admission.keep(store);
    }
    run.seen.merge(&dry_seen);
    let streams = interrupt.said.so_far();
    let kept = finish(request, options, &graph, &run, &streams, interrupt)?;
    interrupt.said.show();
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

/// A file that one step writes and another reads, that the command line does not ask for, and that is not in the private
/// folder: nvcc puts it where it wants (`--objdir-as-tempdir`).
fn between_steps<'g>(request: &Request, graph: &'g TaskGraph) -> Option<&'g str> {
    let outputs = request.invocation.outputs();
    let is_asked_for = |path: &str| outputs.iter().any(|output| output.path == path);
    let mut read = graph.steps.iter().flat_map(|step| &step.reads);
    let outside = read.find(|&&id| {
        let file = graph.file(id);
        file.kind == FileKind::Output && file.writer.is_some() && !is_asked_for(&file.path)
    });
    outside.map(|&id| graph.file(id).path.as_str())
}

/// A file in the private folder that no plan has: for a run that was not watched.
fn left_beside(scratch: &Scratch, graph: &TaskGraph, run: &Run) -> Option<String> {
    let planned = graph.files.iter().map(|file| OsStr::new(file.name()));
    let made = run.outputs.iter().filter_map(|(now, _)| now.file_name());
    let known: BTreeSet<&OsStr> = planned.chain(made).collect();
    let files = ["out", "k"]
        .into_iter()
        .filter_map(|folder| fs::read_dir(scratch.path().join(folder)).ok());
    let mut files = files.flatten().flatten().map(|entry| entry.path());
    let ours = |path: &Path| path.extension().is_some_and(|ending| ending == "s");
    let left = files.find(|path| {
        let name = path.file_name().unwrap_or_default();
        path.is_file() && !known.contains(name) && !ours(path)
    });
    left.map(|path| format!("{} is made too", path.display()))
}

/// Leaves a call to nvcc whose outputs are not plain files. Nothing has been written yet.
fn decide_on_outputs(request: &Request, graph: &TaskGraph) -> Result<(), Unsupported> {
    let mut outputs = Outputs::of(request)?;
    for file in graph.files.iter().filter(|f| f.kind == FileKind::Output) {
        let writer = file.writer.map(|at| graph.steps[at].tool);
        let kind = outputs::Kind::of(writer == Some(Tool::HostLink));
        outputs.decide(&request.absolute(&file.path), kind)?;
    }
    // nvcc removes these, whatever they are.
    let mut removed = Outputs::of(request)?;
    for path in graph.steps.iter().flat_map(|step| &step.removes) {
        removed.decide(&request.absolute(path), outputs::Kind::Data)?;
    }
    Ok(())
}

/// How far a run is, in words for the terminal.
fn standing(graph: &TaskGraph, states: &TaskStates) -> Standing {
    let mut standing = Standing {
        total: graph.steps.len(),
        ..Standing::default()
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

/// Puts the watch library where the tools can load it: in the cache, once for all builds; or, where
/// the cache's folder cannot be written or the loader cannot be told its path, in the private folder.
fn install_watch(store: &DiskStore, scratch: &Scratch) -> Option<PathBuf> {
    let kept = crate::watch_folder::in_cache(store.root());
    let own = scratch.path().join("watch");
    [kept, Some(own)].into_iter().flatten().find_map(|folder| {
        if !warpcc_watch::can_preload_from(&folder) {
            return None;
        }
        fs::create_dir_all(&folder).ok()?;
        warpcc_watch::install(&folder).ok()
    })
}

/// Whether a front end more would cost nobody anything: several architectures, a core for each
/// and to spare that no other call uses or waits for, and no other load on the machine.
fn has_idle_cores(graph: &TaskGraph, options: &BuildOptions<'_>) -> bool {
    let ciccs = graph.steps.iter().filter(|s| s.tool == Tool::Cicc).count();
    if ciccs < 2 || options.jobs < ciccs + 2 {
        return false;
    }
    let load = fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next().and_then(|l| l.parse::<f64>().ok()));
    // Who is not a warpcc is seen in the load alone. It is a minute's average: what this build's own predecessor left
    // is in it.
    options.admission.idle_slots() >= ciccs as u64 + 2
        && load.is_none_or(|load| load < options.jobs as f64 * 0.75)
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

/// Puts the outputs in place, and stores the whole call when it succeeded.
fn finish(
    request: &Request,
    options: &BuildOptions<'_>,
    graph: &TaskGraph,
    run: &Run,
    streams: &Streams,
    interrupt: &Interrupt,
) -> Result<Result<Vec<Header>, NotKept>, Unsupported> {
    let mut kept = Ok(Vec::new());
    if run.code == 0
        && options.writes_cache
        && let Some(store) = options.store
    {
        let now_at = |file: &PlanFile| {
            let plan = file.path.as_str();
            let mut made = run.outputs.iter();
            let made = made.find(|(_, name)| name.as_os_str() == plan);
            made.map_or_else(|| request.absolute(plan), |(now, _)| now.clone())
        };
        let mut outputs = Vec::new();
        for file in graph.files.iter().filter(|f| f.kind == FileKind::Output) {
            let writer = file.writer.map(|at| graph.steps[at].tool);
            outputs.push(direct::Made {
                now: now_at(file),
                plan: file.path.clone(),
                lists_files: writer == Some(Tool::FilterDependencies),
            });
        }
        let made_by = |wanted: &dyn Fn(&Step) -> bool| -> Vec<PathBuf> {
            let steps = graph.steps.iter().filter(|step| wanted(step));
            let files = steps.flat_map(|step| &step.writes);
            files.map(|&id| now_at(graph.file(id))).collect()
        };
        kept = direct::keep(
            (store, options.upstream),
            request,
            options.keys,
            run,
            &outputs,
            &Texts {
                preprocessed: &made_by(&|step| step.tool == Tool::Preprocess),
                made_unseen: &made_by(&|step| step.preprocesses_unseen(graph)),
                args: &request.args,
                began: run.began,
            },
            (&streams.stdout, &streams.stderr),
        );
    }
    for (now, plan) in &run.outputs {
        if now.exists() {
            let to = request.directory.join(plan);
            place::place(now, &to, &interrupt.unfinished).map_err(|e| {
                Unsupported::new(
                    "an output cannot be written",
                    format!("{}: {e}", plan.display()),
                )
            })?;
        }
    }
    Ok(kept)
}

/// A step that hangs is told, for nobody would find out: nvcc does it alone, perhaps in no time.
fn stood_still(why: String) -> Unsupported {
    crate::log::warn(&format!("{why}; nvcc runs instead"));
    Unsupported::new("a step stood still", why)
}

/// A tool met what it would not have met under nvcc.
fn hindered(why: &str) -> Unsupported {
    let reason = match why.contains(room::READS_INPUT) {
        true => room::READS_INPUT,
        false => room::NO_ROOM,
    };
    Unsupported::new(reason, why)
}

/// How the dynamic loader begins when it cannot preload a library.
const NOT_LOADED: &str = "ERROR: ld.so: object";

/// The dry run, in what is remembered of costs.
const DRY_RUN: &str = "dry run";
/// Its number among the tasks of a call: no step of a plan has it.
const DRY_RUN_TASK: usize = usize::MAX;

/// What nvcc says to our `-t 1` after the user's own.
const REDEFINED: &str = "nvcc warning : incompatible redefinition for option 'threads', the last value of this option was used";

/// After a signal there is nothing more to do: its thread cleans up and ends the process.
fn wait_if_interrupted(children: &Children) {
    while children.is_closed() {
        std::thread::park();
    }
}

fn dry_run(
    request: &Request,
    options: &BuildOptions<'_>,
    private: &str,
    watch: Option<&Path>,
    scratch: &Scratch,
    children: &Children,
) -> Result<(Transcript, Seen), Unsupported> {
    let log = scratch.path().join("watch-dryrun");
    let mut args = request.args.clone();
    args.push("--dryrun".into());
    // A plan for threads is printed in the order in which they took the commands: another one each
    // time. The plan for one thread has the same commands, and we have threads of our own.
    if request.invocation.threads {
        args.extend(["-t".into(), "1".into()]);
    }
    if !private.is_empty() {
        args.extend(["--keep".into(), "--keep-dir".into()]);
        args.push(private.trim_end_matches('/').into());
    }
    let watching = watch.and_then(|library| {
        warpcc_watch::environment(library, &log, request.variable("LD_PRELOAD")).ok()
    });
    let mut environment = request.environment.clone();
    let mut set = |name: OsString, value: OsString| {
        environment.retain(|(n, _)| *n != name);
        environment.push((name, value));
    };
    for (name, value) in watching.clone().into_iter().flatten() {
        set(name, value);
    }
    set(
        crate::config::BEHIND.into(),
        crate::fallback::behind(options.ourselves),
    );
    // nvcc makes temporary files even for a dry run.
    set("TMPDIR".into(), scratch.path().join("tmp").into());
    let order = process::Order {
        program: &request.nvcc,
        name: &request.nvcc.to_string_lossy(),
        args: &args,
        environment: &environment,
        directory: &request.directory,
        terminal: None,
        claim: None,
    };
    let label = request.invocation.inputs.join(" ");
    let entry = Entry {
        name: DRY_RUN,
        kind: Kind::DryRun,
        // All of the call comes behind it.
        priority_ms: options.admission.expect_whole(),
        label: label.rsplit('/').next().unwrap_or(&label),
        tag: DRY_RUN_TASK as u64,
        ..Entry::default()
    };
    let mut pass = children
        .waiting(DRY_RUN_TASK, |cancel| {
            options.admission.enter(&entry, cancel)
        })
        .map_err(|e| Unsupported::new("nvcc cannot be started", e.to_string()))?;
    let order = process::Order {
        claim: Some(pass.claim()),
        ..order
    };
    let (clock, began) = (Instant::now(), SystemTime::now());
    let output = children.run(DRY_RUN_TASK, &order).map_err(|error| {
        let why = error.to_string();
        match why {
            why if why.contains(process::STOOD_STILL) => stood_still(why),
            why if why.contains(room::READS_INPUT) => hindered(&why),
            why => Unsupported::new("nvcc cannot be started", why),
        }
    })?;
    let measured = Measured {
        input_bytes: 0,
        millis: u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX),
        peak_kib: output.peak_kib,
    };
    options.admission.learn(DRY_RUN, Kind::DryRun, measured);
    drop(pass);
    if let Some(signal) = output.signal {
        return Err(Unsupported::new(
            "a command ended abnormally",
            format!("nvcc --dryrun: ended by signal {signal}"),
        ));
    }
    if output.code != 0 {
        return Err(Unsupported::new(REFUSED, ""));
    }
    if !output.stdout.is_empty() {
        return Err(Unsupported::new(
            "unknown dry-run line",
            String::from_utf8_lossy(&output.stdout),
        ));
    }
    let text = String::from_utf8(output.stderr)
        .map_err(|_| Unsupported::new("an argument that is not UTF-8", "dry run"))?;
    let mut transcript = Transcript::parse(&text)?;
    if request.invocation.threads
        && let Some(ours) = transcript.messages.iter().rposition(|m| m == REDEFINED)
    {
        transcript.messages.remove(ours);
    }
    let known = |executable: &Path| conditions::asks_by_name(executable, false);
    // nvcc looks what stands where its outputs go.
    let outputs = request.invocation.outputs();
    let is_output = |path: &Path| {
        let path = request.directory.join(path);
        outputs
            .iter()
            .any(|output| request.absolute(&output.path) == path)
    };
    let seen = match (watching, fs::read(&log)) {
        (Some(_), Ok(bytes)) => match warpcc_watch::read_log(&bytes, &request.nvcc, &known) {
            Ok(observed) => {
                let scene = Scene {
                    scratch: scratch.path(),
                    directory: &request.directory,
                    library: watch.unwrap_or(Path::new("")),
                    path: request.variable("PATH"),
                    began,
                    own: &is_output,
                    writes: &[],
                };
                let mut seen = Seen::from_log(observed, &scene);
                if let Some(why) = &seen.hindered {
                    return Err(hindered(why));
                }
                seen.expect(&request.nvcc, Expected::default());
                seen
            }
            Err(error) => Seen::unwatched(&error.to_string()),
        },
        _ => Seen::unwatched("the watch library cannot be used here"),
    };
    Ok((transcript, seen))
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

/// Copies every command's files into a folder with its number, as fast_nvcc's `--save` does.
fn save(graph: &TaskGraph, run: &Run, folder: &Path, request: &Request) {
    for (number, step) in graph.steps.iter().enumerate() {
        let into = folder.join(number.to_string());
        if let Err(error) = fs::create_dir_all(&into) {
            crate::log::warn(&format!("cannot save to {}: {error}", into.display()));
            return;
        }
        for &id in &step.writes {
            let file = graph.file(id);
            let now = run
                .outputs
                .iter()
                .find(|(_, plan)| plan.as_os_str() == file.path.as_str());
            let now = now.map_or_else(|| request.absolute(&file.path), |(now, _)| now.clone());
            if now.exists()
                && let Err(error) = fs::copy(&now, into.join(file.name()))
            {
                crate::log::warn(&format!("cannot save {}: {error}", now.display()));
            }
        }
    }
}
