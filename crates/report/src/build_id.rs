//! Finds the build that a call belongs to, from the processes above it.
//!
//! All calls that one outermost build tool started are one build. If `pip` runs `setup.py`, which
//! runs `ninja`, that is the `pip`. The search stays within one session, and ends at an interactive
//! shell, so that two commands typed one after the other are two builds. A call without a build tool
//! is a build of its own.

use xxhash_rust::xxh3::Xxh3;

mod proc;

pub use proc::Ancestry;

/// Calls without a build share the log of their session, whose name begins with this.
pub(crate) const ALONE: &str = "alone";

/// A process above ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's clock ticks since the machine did.
    pub started: u64,
    /// Its session's number.
    pub session: u32,
    /// Its name as the kernel has it: at most 15 bytes.
    pub name: String,
    /// Its command line.
    pub args: Vec<String>,
}

/// A build, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildId {
    /// The ID in every record of the build, which `--build` takes.
    pub id: String,
    /// The command line of the tool that drives it, where there is one.
    pub driver: Option<String>,
    /// The log with its records: a plain file name without an ending.
    pub log: String,
}

/// Shells. A shell is interactive unless its arguments name a script or a command.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash"];

/// Programs that drive builds, whatever their arguments.
const DRIVERS: [&str; 22] = [
    "ninja",
    "ninja-build",
    "samu",
    "make",
    "gmake",
    "pip",
    "pip3",
    "uv",
    "pipx",
    "poetry",
    "hatch",
    "pdm",
    "tox",
    "nox",
    "conda-build",
    "bazel",
    "bazelisk",
    "buck2",
    "meson",
    "scons",
    "cargo",
    "xmake",
];

/// Modules of Python that drive builds: `python -m pip`.
const MODULES: [&str; 7] = ["pip", "build", "uv", "tox", "nox", "poetry", "hatch"];

/// The build that a call belongs to.
///
/// `ancestors` are the processes above, the nearest first, `own` is ours, `boot` tells one run
/// of the machine from another, and `given` is what the caller of warpcc said
/// (`WARPCC_BUILD_ID`), which wins.
pub fn identify(own: &Process, ancestors: &[Process], boot: &str, given: Option<&str>) -> BuildId {
    let within = ancestors
        .iter()
        .take_while(|process| process.session == own.session && !is_typed_into(process));
    let driver = within.filter_map(|process| Some((process, driver_name(process)?)));
    let driver = driver.last();
    let command = driver.as_ref().map(|(process, _)| command_of(process));
    if let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) {
        return BuildId {
            id: given.to_owned(),
            driver: command,
            log: log_name(given),
        };
    }
    if let Some((process, name)) = driver {
        let id = format!("{name}-{:010x}", hash_of(process, boot) >> 24);
        return BuildId {
            log: log_name(&id),
            id,
            driver: command,
        };
    }
    let session = Process {
        pid: own.session,
        // The oldest visible process of the session distinguishes sessions with the same number.
        started: ancestors
            .iter()
            .filter(|process| process.session == own.session)
            .map(|process| process.started)
            .min()
            .unwrap_or(own.started),
        ..Process::default()
    };
    let alone = ALONE;
    BuildId {
        id: format!("{alone}-{:010x}", hash_of(own, boot) >> 24),
        driver: None,
        log: format!("{alone}-{:010x}", hash_of(&session, boot) >> 24),
    }
}

/// What drove a build, for people: its tool's command line, or that it had no tool. `None` if only the ID is known, which
/// the user has chosen.
pub fn origin<'a>(id: &str, driver: Option<&'a str>) -> Option<&'a str> {
    let is_alone = id.starts_with(&format!("{ALONE}-"));
    driver.or_else(|| is_alone.then_some("a call without a build tool"))
}

impl Process {
    /// A number that no other call has, in whatever run of a machine. It has 53 bits, so that
    /// JavaScript's numbers hold it.
    pub fn invocation_id(&self, boot: &str) -> u64 {
        hash_of(self, boot) >> 11
    }
}

/// The name of a build's log: the id itself where it is a plain name, or else part of it and
/// its hash.
pub(crate) fn log_name(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let is_plain = id.len() <= 80 && !id.starts_with('.') && id.chars().all(plain);
    // A given id must not pass for the log of a session.
    if is_plain && !id.starts_with(ALONE) {
        return id.to_owned();
    }
    let kept: String = id.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let kept = &kept[..kept.len().min(40)];
    format!(
        "id-{kept}-{:016x}",
        xxhash_rust::xxh3::xxh3_64(id.as_bytes())
    )
}

fn hash_of(process: &Process, boot: &str) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&process.pid.to_le_bytes());
    hasher.update(&process.started.to_le_bytes());
    hasher.update(boot.as_bytes());
    hasher.digest()
}

fn command_of(process: &Process) -> String {
    let mut words = process.args.iter();
    let program = words
        .next()
        .map_or(process.name.as_str(), |word| base(word));
    let mut command = program.to_owned();
    for word in words {
        if command.len() + word.len() > 300 {
            command.push_str(" …");
            break;
        }
        command.push(' ');
        command.push_str(word);
    }
    command
}

/// The kind of build tool that a process is; `None` if it is not one.
fn driver_name(process: &Process) -> Option<&'static str> {
    let mut args = process.args.iter().map(String::as_str);
    let program = args.next().map_or(process.name.as_str(), base);
    let args: Vec<&str> = args.collect();
    if let Some(known) = known_driver(program) {
        return Some(known);
    }
    if program == "cmake" {
        // CMake runs the compiler when it configures, and that is part of the same build.
        return Some("cmake");
    }
    // The server of Bazel names itself after the workspace.
    if process.name.starts_with("bazel(") {
        return Some("bazel");
    }
    if is_python(program) {
        return python_driver(&args);
    }
    None
}

fn known_driver(program: &str) -> Option<&'static str> {
    if let Some(known) = DRIVERS.iter().find(|known| **known == program) {
        return Some(known);
    }
    // `pip3.12`, as distributions install it.
    let version = program.strip_prefix("pip3.")?;
    version.bytes().all(|b| b.is_ascii_digit()).then_some("pip")
}

fn is_python(program: &str) -> bool {
    let Some(version) = program
        .strip_prefix("python")
        .or(program.strip_prefix("pypy"))
    else {
        return false;
    };
    version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Python's words up to the script or module that it runs, and what that is.
fn python_driver(args: &[&str]) -> Option<&'static str> {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match *word {
            "-m" => {
                let module = words.next()?;
                let name = module.split('.').next()?;
                return MODULES.iter().find(|known| **known == name).copied();
            }
            "-W" | "-X" => {
                words.next();
            }
            "-c" => return None,
            word if word.starts_with('-') => {}
            script => return script_driver(base(script)),
        }
    }
    None
}

/// A script that Python runs: `setup.py`, or a tool that is installed as one.
fn script_driver(script: &str) -> Option<&'static str> {
    match script {
        "setup.py" => Some("setup.py"),
        // How pip calls a project's build back end.
        "_in_process.py" | "in_process.py" => Some("pip"),
        "__main__.py" => None,
        name => known_driver(name),
    }
}

/// Whether it is an interactive shell: one without a script and without a command.
fn is_typed_into(process: &Process) -> bool {
    let mut args = process.args.iter().map(String::as_str);
    let program = args.next().map_or(process.name.as_str(), base);
    // A login shell's name begins with a dash.
    let name = program.strip_prefix('-').unwrap_or(program);
    if !SHELLS.contains(&name) {
        return false;
    }
    for word in args {
        if word == "-i" {
            return true;
        }
        let is_option = word.starts_with('-') || word.starts_with('+');
        if !is_option {
            return false;
        }
        // `-c`, also among other letters as in `-ec`.
        if !word.starts_with("--") && word.contains('c') {
            return false;
        }
    }
    true
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
