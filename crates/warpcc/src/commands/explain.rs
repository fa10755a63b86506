//! `warpcc explain`: runs a command one step at a time, and explains what happens.
//!
//! Runs nvcc's own plan, without overlaps and without the cache, to show what nvcc does. The call's outputs are made as usual.
//! Intermediate files are in the scratch folder, and are examined after each step. If the plan is not understood, the command
//! fails.

use std::cell::RefCell;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use warpcc_engine::{Finished, StepOutcome};
use warpcc_explain::text::{Form, Tint};
use warpcc_explain::{Explanation, Recorder, StepRun, markdown, page, text};
use warpcc_path_map::BaseDirs;
use warpcc_plan::{FileId, FileKind, TaskGraph};

use super::build_timeline::timeline_of;
use super::graph;
use super::nvcc::{find_nvcc, refuse_other_programs, split_compiler};
use super::output::{self, write_file};
use crate::build::{self, BuildListener};
use crate::bypass::Bypass;
use crate::call_record::CallRecorder;
use crate::config::Config;
use crate::log::Log;
use crate::process_context::ProcessContext;
use crate::request::Request;
use crate::resources::CallId;
use crate::session::{Call, CallOptions, Session};

const NOTE: &str = "\
Examples:
  warpcc explain nvcc -c kernel.cu -o kernel.o | less
  warpcc explain --brief nvcc -c kernel.cu           which steps are there?
  warpcc explain --step ptxas nvcc -c kernel.cu      what does this one do?
  warpcc explain --html explain.html nvcc -rdc=true a.cu b.cu -o program
  warpcc explain --json nvcc -ptx kernel.cu > explain.json

The command runs as usual, and its output is made. Exit code: nvcc's own; 2 with a message
that begins with `warpcc:` when the command cannot be explained, or a page cannot be written.";

/// The width for a terminal of unknown width, a pipe or a file.
const USUAL_WIDTH: usize = 100;
/// The widest lines: wider ones are hard to read.
const WIDEST: usize = 120;

/// `warpcc explain`.
#[derive(Debug, Args)]
#[command(after_help = NOTE)]
pub struct ExplainArgs {
    /// Write one HTML page that needs no network and no other file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write Markdown
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
    /// Write JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Use the terminal's colours
    #[arg(long)]
    pub color: bool,
    /// One line for each step
    #[arg(long, conflicts_with_all = ["html", "markdown", "json", "step"])]
    pub brief: bool,
    /// This step alone, by its number, or those of a tool
    #[arg(long, value_name = "NUMBER|TOOL", conflicts_with_all = ["html", "markdown", "json"])]
    pub step: Option<String>,
    /// The nvcc to use
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub nvcc: Option<PathBuf>,
    /// The command, with or without the compiler's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(required = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// Runs the command and prints its explanation. Gives nvcc's exit code.
///
/// # Errors
/// No nvcc, a command with nothing to explain, a plan that is not understood, a page that cannot be
/// written.
pub fn run(args: &ExplainArgs, config: &Config, context: ProcessContext) -> anyhow::Result<i32> {
    refuse_other_programs(&args.args, &context)?;
    let (named, rest) = split_compiler(&args.args);
    let nvcc = find_nvcc(args.nvcc.as_deref().or(named), config, &context)?;
    let call_id = CallId::find(config);
    // Without a cache no step hits, and nothing is stored or recorded.
    let recorder = CallRecorder::new(&nvcc, rest, &context, None, config, &call_id);
    let call = Call {
        context: &context,
        recorder: &recorder,
        log: &Log::new(config.log.value.clone()),
    };
    // Without base folders, the files are exactly nvcc's.
    let session = match Session::prepare(&nvcc, rest, &BaseDirs::default(), call) {
        Ok(session) => session,
        Err(Bypass::Plain(reason)) => bail!(
            "there is nothing to explain: nvcc does this alone ({reason}); give it a source and an \
             output, as in `warpcc explain nvcc -c kernel.cu`"
        ),
        Err(why) => bail!("this command cannot be explained: {why}"),
    };
    // Find out now whether the page can be written, and not after a minute of compiling.
    for path in [&args.html, &args.markdown].into_iter().flatten() {
        write_file(path, |_| Ok(()))?;
    }
    let (explanation, picture) = explain_steps(&session)?;
    if let Some(path) = &args.html {
        write_file(path, |out| page::write(&explanation, Some(&picture), out))?;
    }
    if let Some(path) = &args.markdown {
        write_file(path, |out| {
            markdown::write(&explanation, markdown::Detail::Everything, 2, out)
        })?;
    }
    if args.json {
        output::print(|out| {
            serde_json::to_writer_pretty(&mut *out, &explanation)?;
            writeln!(out)
        })?;
    } else if args.html.is_none() && args.markdown.is_none() {
        let form = Form {
            width: width(),
            tint: if args.color {
                Tint::Colours
            } else {
                Tint::Plain
            },
        };
        print_text(args, &explanation, form)?;
    }
    Ok(explanation.exit_code)
}

/// Prints all of it, a line for each step, or one step.
fn print_text(args: &ExplainArgs, explanation: &Explanation, form: Form) -> anyhow::Result<()> {
    let Some(step) = &args.step else {
        output::print(|out| match args.brief {
            true => text::write_brief(explanation, form, out),
            false => text::write(explanation, form, out),
        })?;
        return Ok(());
    };
    let mut shown = Vec::new();
    if !text::write_step(explanation, step, form, &mut shown)? {
        bail!(
            "the command has no step `{step}`: there are {}, and `--brief` lists them",
            explanation.steps.len()
        );
    }
    output::print(|out| out.write_all(&shown))?;
    Ok(())
}

/// How wide the terminal is on which the explanation is read.
fn width() -> usize {
    if !output::is_terminal() {
        return USUAL_WIDTH;
    }
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(USUAL_WIDTH, |size| {
        match usize::from(size.ws_col) {
            0 => USUAL_WIDTH,
            columns => columns.min(WIDEST),
        }
    })
}

/// Builds the call. Gives the explanation, and a drawing of the steps.
fn explain_steps(session: &Session<'_>) -> anyhow::Result<(Explanation, String)> {
    let request = &session.request;
    let words = std::iter::once(request.nvcc.as_os_str()).chain(request.args.iter().map(|a| &**a));
    let listener = Listener {
        request,
        recorder: RefCell::new(Recorder::new(warpcc_explain::ObservedCall {
            command: words.map(|w| w.to_string_lossy().into_owned()).collect(),
            directory: request.directory.display().to_string(),
        })),
    };
    let call_options = CallOptions {
        looks_up: false,
        may_use_cluster: false,
        jobs: NonZeroUsize::new(1),
        sequential: true,
        faithful: true,
        save: None,
        listener: Some(&listener),
        progress: None,
    };
    let mut timeline = None;
    let code = session.complete(&call_options, |request, (built, wall)| {
        timeline = Some(timeline_of(request, built, wall));
    });
    let code = match code {
        Ok(code) => code,
        Err(Bypass::Unsupported(why)) if why.reason == build::REFUSED => {
            bail!(
                "this command cannot be explained: nvcc refuses it; run it without `warpcc \
                   explain` to see why"
            );
        }
        Err(Bypass::Unsupported(why)) if why.reason == build::FAILS_UNDER_THREADS => bail!(
            "this command fails, and with -t it cannot be explained: leave -t out, the steps run \
             one at a time anyway"
        ),
        Err(why) => bail!("this command cannot be explained: {why}"),
    };
    let timeline = timeline.context("the command was not run")?;
    let mut drawing = Vec::new();
    graph::write_svg(&timeline, &mut drawing).context("the steps cannot be drawn")?;
    Ok((
        listener.recorder.into_inner().finish(code),
        String::from_utf8_lossy(&drawing).into_owned(),
    ))
}

/// Looks at what each step wrote, before the next one starts.
struct Listener<'a> {
    request: &'a Request,
    recorder: RefCell<Recorder>,
}

impl Listener<'_> {
    fn bytes(&self, graph: &TaskGraph, id: FileId, aside: &Path) -> Option<Vec<u8>> {
        let file = graph.file(id);
        let in_place = self.request.absolute(&file.path);
        // Most outputs are in the scratch folder until the run has ended. Others are written in place.
        let aside = aside.join(id.0.to_string()).join(file.name());
        let path: &Path = match file.kind {
            FileKind::Output if aside.is_file() => &aside,
            _ => &in_place,
        };
        // Reading a device or a pipe may never end.
        path.is_file().then(|| std::fs::read(path).ok()).flatten()
    }
}

impl BuildListener for Listener<'_> {
    fn finished(&self, graph: &TaskGraph, finished: &Finished, aside: &Path) {
        let mut recorder = self.recorder.borrow_mut();
        if !recorder.has_plan() {
            recorder.plan(graph, &mut |path| {
                std::fs::read(self.request.absolute(path)).ok()
            });
        }
        let took = finished
            .finished
            .saturating_sub(finished.started)
            .saturating_sub(finished.waited);
        let observed = StepRun {
            outcome: match finished.outcome {
                StepOutcome::Ran | StepOutcome::Hit => warpcc_explain::CommandOutcome::Ran,
                StepOutcome::Failed(code) => warpcc_explain::CommandOutcome::Failed(code),
                StepOutcome::Skipped => warpcc_explain::CommandOutcome::Skipped,
            },
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&finished.stderr).into_owned(),
        };
        recorder.step(graph, finished.step, observed, &mut |id| {
            self.bytes(graph, id, aside)
        });
    }
}
