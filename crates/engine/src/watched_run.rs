//! Runs one step's command on this machine, and collects what was observed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_budget::Claim;
use warpcc_plan::{FileId, FileKind, Part, Step, Tool};
use warpcc_watch::{Observed, PathText};

use crate::conditions;
use crate::context::RunContext;
use crate::held;
use crate::located::Located;
use crate::own_name;
use crate::prefix_map;
use crate::process::{self, Ended};
use crate::relative_names::Misplaced;
use crate::relocate;
use crate::room;
use crate::scene::Scene;
use crate::slot_wait::SlotWait;
use crate::traced_inputs::TracedInputs;

/// Runs the step's command and returns its result with the observations. The user reads its messages.
///
/// # Errors
/// The command cannot be started.
pub fn run_tool(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    spliced: Option<&(FileId, PathBuf)>,
    wait: &mut SlotWait,
) -> io::Result<(Ended, TracedInputs)> {
    let (ended, mut seen) = run_watched(run, index, step, program, spliced, wait)?;
    note_private_names(run, &ended, &mut seen);
    let messages = [&ended.stdout, &ended.stderr];
    // nvcc's plan is made with --keep, which adds --create. fatbinary warns if the user's options have it too.
    let is_private = step.tool == Tool::Fatbinary && !run.graph.private.is_empty();
    if is_private && messages.iter().any(|text| !text.is_empty()) {
        seen.set_side_file("a message of fatbinary may be about an option that nvcc would not add");
    }
    Ok((ended, seen))
}

/// Notes whether the user would read the name of a file that nvcc has elsewhere.
fn note_private_names(run: &RunContext<'_>, ended: &Ended, seen: &mut TracedInputs) {
    let messages = [&ended.stdout, &ended.stderr];
    let is_shown = |text: &&Vec<u8>| own_name::is_shown(text, run.options.scratch);
    if messages.iter().any(is_shown) {
        seen.set_side_file("a message names a file of the scratch folder");
    }
}

/// Asks a compiler the question of a step's command line, as nvcc's shell does before it starts the step.
///
/// # Errors
/// The compiler cannot be started.
pub fn ask(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    compiler: &Located,
    question: &str,
) -> io::Result<(Ended, TracedInputs)> {
    let command = Command {
        program: compiler,
        args: &[OsString::from(question)],
        directory: run.options.directory,
        log: run.options.scratch.join(format!("watch-{index}-asked")),
    };
    let (ended, mut seen) = watch(run, index, step, &command, None)?;
    note_private_names(run, &ended, &mut seen);
    Ok((ended, seen))
}

/// Like [`run_tool`], for a command whose messages only warpcc reads.
///
/// # Errors
/// The command cannot be started.
pub fn run_watched(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    spliced: Option<&(FileId, PathBuf)>,
    wait: &mut SlotWait,
) -> io::Result<(Ended, TracedInputs)> {
    let args: Vec<OsString> = step
        .args
        .iter()
        .map(|arg| {
            let mut text = OsString::new();
            for part in &arg.0 {
                match part {
                    Part::Text(t) => text.push(t),
                    Part::File(id) => text.push(match spliced {
                        Some((assembly, path)) if assembly == id => path,
                        _ => run.artifacts.path(*id),
                    }),
                }
            }
            text
        })
        .collect();
    let args: Vec<OsString> = prefix_map::host_arguments(step, run.graph, run.options.path_map)
        .into_iter()
        .chain(args)
        .collect();
    let command = Command {
        program,
        args: &args,
        directory: relocate::directory(step, run.artifacts, run.options),
        log: run.options.scratch.join(format!("watch-{index}")),
    };
    let claim = wait.pass.as_mut().map(|pass| &*pass.claim());
    watch(run, index, step, &command, claim)
}

/// A command of a step.
struct Command<'a> {
    program: &'a Located,
    args: &'a [OsString],
    directory: &'a Path,
    /// Where the watch library writes.
    log: PathBuf,
}

fn watch(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    command: &Command<'_>,
    claim: Option<&Claim>,
) -> io::Result<(Ended, TracedInputs)> {
    let Command {
        program,
        directory,
        log,
        ..
    } = command;
    let watching = run.options.watch.and_then(|library| {
        warpcc_watch::environment(library, log, run.options.variable("LD_PRELOAD")).ok()
    });
    let mut environment = run.options.environment.to_vec();
    own_temporary_folder(&mut environment, &run.options.scratch.join("tmp"), index)?;
    if let Some(extra) = &watching {
        let is_ours = |name: &OsString| {
            name == warpcc_watch::HOLD_VARIABLE
                || name == warpcc_watch::ANNOUNCE_VARIABLE
                || extra.iter().any(|(ours, _)| ours == name)
        };
        environment.retain(|(name, _)| !is_ours(name));
        environment.extend(extra.iter().cloned());
        environment.extend(held::variable(run, step));
        let announces = (run.announcement).and_then(|announcement| announcement.variable(index));
        environment.extend(announces.cloned());
    }
    let spec = process::ProcessSpec {
        program: &program.path,
        name: &program.called,
        args: command.args,
        environment: &environment,
        directory,
        terminal: run.options.terminal,
        output_on_terminal: false,
        claim,
    };
    let began = SystemTime::now();
    let ended = run.options.children.run(index, &spec)?;
    let seen = if watching.is_some() {
        let mut seen = read_log(run, log, (index, step), &program.path, (began, &ended));
        if *directory != run.options.directory {
            seen = seen.inside(directory);
        }
        seen
    } else {
        TracedInputs::unwatched("the watch library cannot be used here")
    };
    if let Some(why) = seen.hindered.as_ref().filter(|_| ended.by_us.is_none()) {
        return Err(io::Error::other(why.clone()));
    }
    let fails = ended.code != 0 && ended.by_us.is_none();
    if room::is_full(run.options.scratch) || (fails && room::lacks_processes()) {
        return Err(io::Error::other(room::NO_ROOM));
    }
    Ok((ended, seen))
}

/// Gives a step a folder of its own for temporary files, below the one of the call. nvcc's commands run one after another, so a
/// wrapper may use the same name in this folder each time; here they run at the same time.
fn own_temporary_folder(
    environment: &mut [(OsString, OsString)],
    of_call: &Path,
    step: usize,
) -> io::Result<()> {
    let is_it = |(name, value): &&mut (OsString, OsString)| name == "TMPDIR" && **value == *of_call;
    if let Some((_, value)) = environment.iter_mut().find(is_it) {
        let folder = of_call.join(step.to_string());
        fs::create_dir_all(&folder)?;
        *value = folder.into();
    }
    Ok(())
}

fn read_log(
    run: &RunContext<'_>,
    log: &Path,
    (index, step): (usize, &Step),
    program: &Path,
    (began, ended): (SystemTime, &Ended),
) -> TracedInputs {
    let Ok(bytes) = fs::read(log) else {
        return TracedInputs::unwatched("a process could not be watched");
    };
    let _ = fs::remove_file(log);
    let known = |executable: &Path| run.known.asks_by_name(executable, false);
    let Ok(mut observed) = warpcc_watch::read_log(&bytes, program, &known) else {
        return TracedInputs::unwatched("a watch log is incomplete");
    };
    if observed.processes.is_empty() {
        return TracedInputs::unwatched("a process could not be watched");
    }
    if ended.by_us.is_some() {
        observed.unfinished = None;
    }
    name_what_walkers_look_for(run, &mut observed);
    let files = step.reads.iter().chain(&step.writes);
    let planned = files.filter(|&&id| run.graph.file(id).kind != FileKind::External);
    let own: BTreeSet<PathText> = planned
        .flat_map(|&id| [run.artifacts.path(id), Path::new(&run.graph.file(id).path)])
        .flat_map(|path| [path.into(), run.options.directory.join(path).into()])
        .collect();
    let is_own = |path: &Path| own.contains(path.as_os_str());
    let is_planned = |path: &Path| {
        let steps = run.graph.steps.iter();
        let mut files = steps.flat_map(|step| step.reads.iter().chain(&step.writes));
        files.any(|&id| {
            let named = Path::new(&run.graph.file(id).path);
            path == run.artifacts.path(id) || path == run.options.directory.join(named)
        })
    };
    let writes = step.writes.iter().map(|&id| run.artifacts.path(id));
    let elsewhere = (step.writes.iter()).filter(|&&id| run.artifacts.is_elsewhere(id));
    let placed_later = elsewhere.map(|&id| run.options.directory.join(&run.graph.file(id).path));
    let scene = Scene {
        writes: &writes.collect::<Vec<_>>(),
        placed_later: &placed_later.collect::<Vec<_>>(),
        scratch: run.options.scratch,
        directory: run.options.directory,
        library: run.options.watch.unwrap_or(Path::new("")),
        path: run.options.path,
        known: &run.known,
        began,
        own: &is_own,
        planned: &is_planned,
    };
    run.side_files.note(index, &observed, &scene);
    let misplaced = Misplaced::find(run, step, &observed);
    let hindered = held::reason(run, step, &observed);
    let mut seen = TracedInputs::from_log(observed, &scene);
    seen.hindered = hindered.or(seen.hindered);
    misplaced.note(&mut seen);
    seen
}

/// A program of NVIDIA's that walks over all variables has asked by name, if it is known which ones it looks for.
fn name_what_walkers_look_for(run: &RunContext<'_>, observed: &mut Observed) {
    let Observed {
        have_environ,
        variables,
        ..
    } = observed;
    have_environ.retain(|program| {
        let has_name = run.known.is_nvidias(program, false);
        let content = has_name.then(|| run.tool_content(program));
        let Some(names) = content.flatten().and_then(conditions::looks_for) else {
            return true;
        };
        let asked = variables.entry(program.clone()).or_default();
        asked.extend(names.iter().map(OsString::from));
        false
    });
}
