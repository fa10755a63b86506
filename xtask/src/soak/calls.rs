//! Runs the commands of a call: with an nvcc that keeps its files, with warpcc, or with warpcc and an empty cache.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::by_chance;
use super::files_open;
use super::meeting;
use super::space::Space;
use super::tree;

/// The time after which a command is taken to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// How one command ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CallOutcome {
    pub(super) code: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs the lines one after the other with warpcc, each with an empty cache. Gives the ending of each, and warpcc's log.
pub(super) fn run_without_cache(
    space: &Space,
    lines: &[Vec<String>],
) -> io::Result<Vec<(CallOutcome, String)>> {
    let mut endings = Vec::new();
    for line in lines {
        tree::remove(&space.root.join("fresh"));
        let words = words_of_warpcc(space, line);
        let run = || finish(space, start(space, &words, "fresh", "fresh")?, "fresh");
        let ending = meeting::during(space, run)?;
        endings.push((ending, take_log(space, "fresh")));
        clear(&space.root.join("tmp"));
    }
    Ok(endings)
}

/// The log of a run of that name, which is removed.
fn take_log(space: &Space, name: &str) -> String {
    let log = space.root.join(format!("{name}.log"));
    let text = fs::read_to_string(&log).unwrap_or_default();
    _ = fs::remove_file(log);
    text
}

fn words_of_warpcc(space: &Space, line: &[String]) -> Vec<String> {
    let mut words = vec![
        space.warpcc.to_string_lossy().into_owned(),
        space.fill(&space.nvcc),
    ];
    words.extend(line.iter().map(|w| space.fill(w)));
    words
}

/// Runs the lines one after the other with an nvcc that keeps its files.
pub(super) fn run_nvcc(space: &Space, lines: &[Vec<String>]) -> io::Result<Vec<CallOutcome>> {
    let mut endings = Vec::new();
    for line in lines {
        let mut words = vec![space.fill(&space.nvcc)];
        if !line.iter().any(|word| names_files(word)) {
            let keep = space.root.join("keep");
            tree::remove(&keep);
            fs::create_dir_all(&keep)?;
            let keep = keep.to_string_lossy().into_owned();
            words.extend(["--keep".to_owned(), "--keep-dir".to_owned(), keep]);
        }
        words.extend(line.iter().map(|w| space.fill(w)));
        let run = || finish(space, start(space, &words, "nvcc", &space.cache)?, "nvcc");
        endings.push(meeting::during(space, run)?);
        clear(&space.root.join("tmp"));
    }
    Ok(endings)
}

/// Whether a call keeps its files in a folder of the caller's, or prints their names instead of making them.
fn names_files(word: &str) -> bool {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
    let of_these = ["keep", "save-temps", "dryrun"];
    name.is_some_and(|name| of_these.iter().any(|known| name.starts_with(known)))
}

/// Runs the lines at once. Gives the ending of each, and warpcc's log.
pub(super) fn run_warpcc(
    space: &Space,
    lines: &[Vec<String>],
) -> io::Result<Vec<(CallOutcome, String)>> {
    meeting::during(space, || run_at_once(space, lines))
}

fn run_at_once(space: &Space, lines: &[Vec<String>]) -> io::Result<Vec<(CallOutcome, String)>> {
    let mut running = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let name = format!("warpcc{at}");
        let words = words_of_warpcc(space, line);
        running.push((start(space, &words, &name, &space.cache)?, name));
    }
    let mut ended = Vec::new();
    for (child, name) in running {
        let ending = finish(space, child, &name)?;
        ended.push((ending, take_log(space, &name)));
    }
    Ok(ended)
}

/// Empties a folder.
pub(super) fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        tree::remove(&entry.path());
    }
}

/// Starts the line with warpcc, sends a signal to warpcc after some milliseconds, and waits until its tools have ended.
pub(super) fn run_killed(
    space: &Space,
    signal: &str,
    milliseconds: u64,
    line: &[String],
) -> io::Result<()> {
    let words = words_of_warpcc(space, line);
    let mut command = command(space, &words, "killed", &space.cache)?;
    command.process_group(0);
    meeting::during(space, || {
        let mut child = spawn(command)?;
        std::thread::sleep(Duration::from_millis(milliseconds));
        let group = child.id();
        in_shell(&format!("kill -{signal} {group}"))?;
        let began = Instant::now();
        while child.try_wait()?.is_none() || in_shell(&format!("kill -0 -{group}"))? {
            if began.elapsed() > PATIENCE {
                in_shell(&format!("kill -KILL -{group}"))?;
                child.wait()?;
                return Err(io::Error::other(format!(
                    "signal {signal} does not end a call"
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    })?;
    clear(&space.root.join("tmp"));
    // Its private folders may be elsewhere. A later call of the same command would remove them.
    let elsewhere = space
        .environment()
        .remove("TMPDIR")
        .map(|folder| space.path(&folder));
    for entry in elsewhere
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("warpcc-") && name.ends_with("-builds") {
            tree::remove(&entry.path());
        }
    }
    Ok(())
}

/// Whether this line of a shell succeeds.
fn in_shell(line: &str) -> io::Result<bool> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).stderr(Stdio::null());
    Ok(shell.status()?.success())
}

fn start(space: &Space, words: &[String], name: &str, cache: &str) -> io::Result<Child> {
    spawn(command(space, words, name, cache)?)
}

fn spawn(mut command: Command) -> io::Result<Child> {
    let _quiet = files_open::no_file_open();
    command.spawn()
}

fn command(space: &Space, words: &[String], name: &str, cache: &str) -> io::Result<Command> {
    let (program, args) = (&words[0], &words[1..]);
    let limits = space.limits.iter();
    let limits = limits.map(|(option, value)| format!("ulimit -{option} {value} && "));
    let umask = space.umask.iter().map(|mask| format!("umask {mask} && "));
    let first: String = umask.chain(limits).collect();
    let mut command = if first.is_empty() {
        Command::new(program)
    } else {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{first}exec \"$@\""), "sh", program]);
        shell
    };
    command
        .args(args)
        .current_dir(space.fill(&space.folder))
        .env_clear()
        .envs(space.environment())
        .env("WARPCC_DIR", space.root.join(cache))
        .env("WARPCC_LOG", space.root.join(format!("{name}.log")))
        .env("XDG_CONFIG_HOME", space.root.join("home"))
        .stdin(Stdio::null())
        .stdout(File::create(space.root.join(format!("{name}.out")))?)
        .stderr(File::create(space.root.join(format!("{name}.err")))?);
    if let Some(guard) = &space.without {
        command.env("WARPCC_TEST_UNSOUND", guard);
    }
    Ok(command)
}

fn finish(space: &Space, mut child: Child, name: &str) -> io::Result<CallOutcome> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(CallOutcome {
                code: 124,
                stderr: b"hangs\n".to_vec(),
                ..CallOutcome::default()
            });
        }
        std::thread::sleep(pause);
        pause = (pause * 5 / 4).min(Duration::from_millis(4));
    };
    Ok(CallOutcome {
        code: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: fs::read(space.root.join(format!("{name}.out")))?,
        stderr: fs::read(space.root.join(format!("{name}.err")))?,
    })
}

/// How two endings differ. In a race the lines may come in any order.
pub(super) fn differences(
    space: &Space,
    want: &CallOutcome,
    got: &CallOutcome,
    is_race: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    if want.code != got.code {
        found.push(format!("exit code {} with nvcc, {}", want.code, got.code));
    }
    for (name, want, got) in [
        ("stdout", &want.stdout, &got.stdout),
        ("stderr", &want.stderr, &got.stderr),
    ] {
        let plain = |bytes: &[u8]| by_chance::without_names(&space.root, bytes);
        let (want, got) = (plain(want), plain(got));
        let is_same = want == got || is_race && in_order(&want) == in_order(&got);
        if !is_same {
            found.push(format!(
                "{name}: nvcc `{}`, warpcc `{}`",
                want.trim(),
                got.trim()
            ));
        }
    }
    found
}

/// The lines, sorted, so that a race does not change their order.
fn in_order(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
