//! Kernels that other processes compile: the same results and errors, and nothing is lost with such a process.

mod misbehaving;
#[path = "../space/mod.rs"]
mod space;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use space::{Nvrtc, cache_in, get, open_compiler, request};
use warpcc_rtc::{
    BoardPlace, CacheSettings, CallLimits, CompileRequest, Error, Image, KernelCache, ManyOptions,
    Progress, Text, WorkerCommand, serve_compilations,
};

#[test]
#[ignore = "started by the others, as a process that compiles"]
fn compiles() {
    serve_compilations().expect("it was started by a test");
}

#[test]
#[ignore = "started by the others, as a process that answers with nonsense"]
fn talks_nonsense() {
    use std::os::fd::AsFd;
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let mut socket = std::os::unix::net::UnixStream::from(socket.expect("a socket"));
    socket.write_all(&[3, 0, 0, 0, 7, 7, 7]).expect("written");
    std::thread::park();
}

/// The command that starts this test in another process. Each adds its number to the file `started`.
fn worker(folder: &Path, test: &str) -> WorkerCommand {
    let script = "echo $$ >>\"$0\"; exec \"$@\"";
    let exe = std::env::current_exe().expect("a path");
    let words = ["-c", script].map(Into::into);
    let of_test = ["--ignored", "--exact", test, "--nocapture"].map(Into::into);
    let words = words.into_iter().chain([started_file(folder).into()]);
    WorkerCommand::new(
        "/bin/sh",
        words.chain([exe.into_os_string()]).chain(of_test),
    )
}

fn started_file(folder: &Path) -> PathBuf {
    folder.join("started")
}

/// The numbers of the processes that were started.
fn started(folder: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(started_file(folder)).unwrap_or_default();
    text.lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

fn options(folder: &Path, workers: Option<WorkerCommand>) -> ManyOptions {
    ManyOptions {
        threads: 4,
        budget: BoardPlace::At(folder.join("budget")),
        workers,
    }
}

/// Programs of `lines` kernels each: the compiler takes some milliseconds for each kernel.
fn kernels(count: usize, lines: usize) -> Vec<CompileRequest> {
    let one = |number: usize| {
        let text = (0..lines).map(|line| {
            format!("extern \"C\" __global__ void k{line}(int* x) {{ *x = {number}; }}\n")
        });
        request(&format!("k{number}"), &text.collect::<String>(), "sm_90")
    };
    (0..count).map(one).collect()
}

/// Everything but the folders, which differ.
fn described(result: &Result<Image, Error>) -> String {
    match result {
        Ok(image) => format!("{:?} {:?}", image.key, image.compiled),
        Err(Error::Compile(failure)) => {
            let mut failure = failure.clone();
            let saved = failure.saved.take().expect("a file");
            let text = std::fs::read_to_string(&saved).expect("the saved text");
            format!(
                "{failure} {:?} {:?} {text}",
                failure.place,
                saved.file_name()
            )
        }
        Err(error) => format!("{error:?}"),
    }
}

/// Kernels, texts that do not compile, and requests that are wrong.
fn all_kinds(folder: &Path) -> Vec<CompileRequest> {
    std::fs::write(folder.join("h.h"), "#define FROM_FILE 3\n").expect("a header");
    let mut all = kernels(16, 1);
    for (index, one) in all.iter_mut().enumerate() {
        match index % 8 {
            0 => one.target = "compute_90".parse().expect("a target"),
            1 => one.target = "lto_90".parse().expect("a target"),
            2 => {
                one.source = format!(
                    "#include \"h.h\"\n#include \"t.h\"\ntemplate<class T> __global__ void k(T* x) {{ *x = FROM_FILE + {index}; }}"
                )
                .into();
                one.headers.push(Text::new("t.h", "// a text"));
                one.include_folders.push(folder.to_path_buf());
                one.name_expressions.push("k<float>".into());
                one.name_expressions.push("k<int>".into());
            }
            3 => {
                one.source =
                    format!("\nint unused_{index}; __global__ void k() {{ oops; }}").into();
                one.file = Some("src/oops.cu".into());
            }
            4 => one.options.push("-lineinfo".into()),
            5 => one.options.push("--no-such-option".into()),
            6 => one.options.push("-DA=\0".into()),
            _ => one.name_expressions.push("k0".into()),
        }
    }
    all
}

#[test]
fn results_and_errors_are_those_of_threads() {
    for nvrtc in Nvrtc::all() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |name: &str, workers| {
            let settings = CacheSettings::in_folder(&folder.path().join(name));
            let cache = KernelCache::with(open_compiler(&nvrtc), settings, None);
            let requests = all_kinds(folder.path());
            let options = options(folder.path(), workers);
            let all = cache.get_many(&requests, &options, &CallLimits::default(), |_| true);
            assert_eq!(cache.remarks(), Vec::<String>::new(), "{}", nvrtc.version);
            (all, cache.counts())
        };
        let (threads, counted) = of("threads", None);
        let command = worker(folder.path(), "compiles");
        let (processes, counts) = of("processes", Some(command));
        assert!(!started(folder.path()).is_empty(), "no process was started");
        assert_eq!(counts, counted);
        for (one, other) in threads.iter().zip(&processes) {
            // 12.0 writes the number of the compiling thread into names of its own.
            if nvrtc.version != "12.0" || one.is_err() {
                assert_eq!(described(one), described(other), "NVRTC {}", nvrtc.version);
            }
            assert_eq!(one.is_ok(), other.is_ok());
        }
        assert!(threads.iter().filter(|one| one.is_err()).count() >= 6);
        gone(&started(folder.path()));
    }
}

#[test]
fn nothing_is_started_for_what_is_there_or_for_a_few() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = worker(folder.path(), "compiles");
    let options = options(folder.path(), Some(command));
    let requests = kernels(20, 1);
    let at = |path: &str| cache_in(&folder.path().join(path));
    let many = |cache: &KernelCache, requests: &[CompileRequest]| {
        let all = cache.get_many(requests, &options, &CallLimits::default(), |_| true);
        assert!(all.iter().all(Result::is_ok));
    };
    many(&at("few"), &requests[..2]);
    for one in &requests {
        get(&at("all"), one);
    }
    let cache = at("all");
    many(&cache, &requests);
    many(&cache, &requests);
    assert_eq!(started(folder.path()), Vec::<u32>::new());
}

#[test]
fn a_process_that_is_killed_costs_no_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(&folder.path().join("cache"));
    let options = options(folder.path(), Some(worker(folder.path(), "compiles")));
    let requests = kernels(24, 20);
    let kill = |_: &Progress<'_>| {
        for process in started(folder.path()) {
            signal("KILL", process);
        }
        true
    };
    let all = cache.get_many(&requests, &options, &CallLimits::default(), kill);
    for (one, request) in all.iter().zip(&requests) {
        let expected = get(&cache_in(&folder.path().join("alone")), request);
        let one = one.as_ref().expect("compiled");
        assert_eq!(one.compiled, expected.compiled);
    }
    let remarks = cache.remarks();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("signal: 9"), "{remarks:?}");
    gone(&started(folder.path()));
}

#[test]
fn what_is_no_such_program_costs_no_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = WorkerCommand::new("/nowhere/program", ["an argument"]);
    let script = |text: &str| WorkerCommand::new("/bin/sh", ["-c", text]);
    for (index, (command, why)) in [
        (missing, "/nowhere/program does not start: No such file"),
        (
            script("echo 'no such option' >&2; exit 3"),
            "exit status: 3: no such option",
        ),
        (script("exit 0"), "exit status: 0"),
        (worker(folder.path(), "talks_nonsense"), "not understood"),
    ]
    .into_iter()
    .enumerate()
    {
        let cache = cache_in(&folder.path().join(index.to_string()));
        let options = options(folder.path(), Some(command));
        let all = cache.get_many(&kernels(12, 1), &options, &CallLimits::default(), |_| true);
        assert!(all.iter().all(Result::is_ok));
        let remarks = cache.remarks();
        assert!(
            remarks.len() == 1 && remarks[0].contains(why),
            "{remarks:?}"
        );
    }
    gone(&started(folder.path()));
}

#[test]
fn another_nvrtc_than_the_callers_is_not_used() {
    for (change, why) in [
        ("replaced", "it has loaded another NVRTC"),
        ("removed", "NVRTC (libnvrtc.so) cannot be used"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("library");
        std::fs::create_dir(&library).expect("a folder");
        let original = open_compiler(&Nvrtc::newest());
        let name = format!("libnvrtc-builtins.so.{}", original.version());
        let builtins = library.join(&name);
        // A file of its own: the linker would take a link for the library that is loaded already.
        for from in [
            original.library(),
            &original.library().with_file_name(&name),
        ] {
            let to = library.join(from.file_name().expect("a name"));
            std::fs::copy(from, to).expect("copied");
        }
        let settings = CacheSettings::in_folder(&folder.path().join("cache"));
        let compiler = warpcc_rtc::Compiler::open(&library).expect("NVRTC");
        let cache = KernelCache::with(compiler, settings, None);
        let requests = kernels(12, 1);
        // The files are hashed before they change.
        get(&cache, &requests[0]);
        let copy = folder.path().join("copy");
        match change {
            "replaced" => {
                std::fs::copy(&builtins, &copy).expect("copied");
                std::fs::rename(&copy, &builtins).expect("replaced");
            }
            _ => std::fs::remove_dir_all(&library).expect("removed"),
        }
        let options = options(folder.path(), Some(worker(folder.path(), "compiles")));
        let all = cache.get_many(&requests, &options, &CallLimits::default(), |_| true);
        let failed = all.iter().filter_map(|one| one.as_ref().err());
        assert_eq!(failed.map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
        let remarks = cache.remarks();
        assert!(
            remarks.len() == 1 && remarks[0].contains(why),
            "{remarks:?}"
        );
    }
}

#[test]
fn a_listener_ends_the_processes_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(&folder.path().join("cache"));
    let options = options(folder.path(), Some(worker(folder.path(), "compiles")));
    let requests = kernels(24, 20);
    let enough = |told: &Progress<'_>| told.done < 3;
    let all = cache.get_many(&requests, &options, &CallLimits::default(), enough);
    let cancelled = |one: &&Result<Image, Error>| matches!(one, Err(Error::Cancelled { .. }));
    let count = all.iter().filter(cancelled).count();
    assert!(count >= 16, "{count}");
    assert!(all.iter().all(|one| one.is_ok() || cancelled(&one)));
    assert_eq!(cache.remarks(), Vec::<String>::new());
    gone(&started(folder.path()));
    // What was cancelled is compiled by the next call.
    let again = cache.get_many(&requests, &options, &CallLimits::default(), |_| true);
    assert!(again.iter().all(Result::is_ok));
    assert_eq!(cache.counts().made, 24);
}

#[test]
#[ignore = "started by the next, as a process that asks for kernels"]
fn asks() {
    let folder = std::env::var_os("WARPCC_TEST_FOLDER").expect("a folder");
    let folder = Path::new(&folder);
    let cache = cache_in(&folder.join("cache"));
    let options = options(folder, Some(worker(folder, "compiles")));
    cache.get_many(&kernels(24, 200), &options, &CallLimits::default(), |_| {
        true
    });
}

#[test]
fn no_process_outlives_the_one_that_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut asking = Command::new(std::env::current_exe().expect("a path"))
        .args(["--ignored", "--exact", "asks", "--nocapture"])
        .env("WARPCC_TEST_FOLDER", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("it starts");
    until("a process is started", || {
        assert!(asking.try_wait().expect("a child").is_none(), "it ended");
        !started(folder.path()).is_empty()
    });
    asking.kill().expect("killed");
    asking.wait().expect("a child");
    let processes = started(folder.path());
    until("they ended", || !processes.iter().any(|one| is_alive(*one)));
}

/// Fails if a process is still there, or was not waited for.
fn gone(processes: &[u32]) {
    for process in processes {
        let there = Path::new("/proc").join(process.to_string()).exists();
        assert!(!there, "process {process} is left behind");
    }
}

/// Whether a process runs. Nobody may wait for one whose parent was killed.
fn is_alive(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}

fn signal(name: &str, process: u32) {
    // It may have ended.
    let kill = ["-s", name, &process.to_string()].map(str::to_owned);
    let status = Command::new("kill")
        .args(kill)
        .stderr(Stdio::null())
        .status();
    status.expect("kill");
}

fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < Duration::from_secs(60), "not yet: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
