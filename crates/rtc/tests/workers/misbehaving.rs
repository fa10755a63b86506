//! Processes that compile, and do what no such process should do: they cost no kernel, no memory, and no deadline.

use std::path::Path;

use warpcc_rtc::{CallLimits, ManyOptions, WorkerCommand};

use crate::space::cache_in;
use crate::{gone, kernels, options, started, started_file};

/// The command of a process that adds its number to the file `started`, and then runs `script`. Its standard input is the socket.
fn shell(folder: &Path, script: &str) -> WorkerCommand {
    let script = format!("echo $$ >>\"$0\"; {script}");
    let words = ["-c", script.as_str()].map(Into::into);
    WorkerCommand::new("/bin/sh", words.into_iter().chain([started_file(folder)]))
}

/// Compiles twelve kernels with such a process, and returns the remarks.
fn remarks_with(folder: &Path, options: &ManyOptions) -> Vec<String> {
    let cache = cache_in(&folder.join("cache"));
    let all = cache.get_many(&kernels(12, 1), options, &CallLimits::default(), |_| true);
    assert!(all.iter().all(Result::is_ok));
    assert!(!started(folder).is_empty(), "no process was started");
    gone(&started(folder));
    cache.remarks()
}

#[test]
fn what_comes_in_place_of_a_greeting_is_refused_at_once() {
    for script in [
        // Signs of life without end.
        "exec cat /dev/zero >&0",
        // The beginning of a message of 170 MB.
        "exec yes @@@ >&0",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = options(folder.path(), Some(shell(folder.path(), script)));
        let remarks = remarks_with(folder.path(), &options);
        assert!(
            remarks.len() == 1 && remarks[0].contains("not understood"),
            "{script}: {remarks:?}"
        );
    }
}

#[test]
fn what_a_process_prints_takes_little_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "yes 2>/dev/null; stat -L -c %s /proc/self/fd/2 >\"$0.size\"; exit 3";
    let options = options(folder.path(), Some(shell(folder.path(), script)));
    let remarks = remarks_with(folder.path(), &options);
    assert!(
        remarks.len() == 1 && remarks[0].contains("exit status: 3"),
        "{remarks:?}"
    );
    let size = std::fs::read_to_string(folder.path().join("started.size")).expect("a size");
    let size: u64 = size.trim().parse().expect("a number");
    assert!(size <= 64 << 10, "{size}");
}
