//! The host compile starts on the stub that cicc announces before its end. The stub at cicc's end decides.

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::space::{TestSpace, Toolkit, make_dir};
use crate::toolchain::linked_toolkit;
use crate::{ONE, TWO};

const KERNEL: &str =
    "__global__ void k(int *x) { *x = 1; }\nvoid host(int *x) { k<<<1, 1>>>(x); }\n";

/// A space whose cicc is a script: it runs the real cicc, and then `after`, where `$stub` is the stub's path, and `watched` tells
/// whether warpcc runs it.
fn space(name: &str, after: &str) -> TestSpace {
    let mut space = TestSpace::with_toolkit(name, Toolkit::newest());
    space.write("case.cu", KERNEL);
    linked_toolkit(&space);
    let (real, own) = (space.toolkit.top(), space.beside("toolkit"));
    let (nvvm, bin) = (own.join("nvvm"), own.join("nvvm/bin"));
    fs::remove_file(&nvvm).expect("the link");
    make_dir(&bin);
    for item in fs::read_dir(real.join("nvvm")).expect("nvvm").flatten() {
        if item.file_name() != "bin" {
            symlink(item.path(), nvvm.join(item.file_name())).expect("linking nvvm");
        }
    }
    let cicc = real.join("nvvm/bin/cicc");
    space.script(
        "cicc",
        &format!(
            "#!/bin/sh\ntrap 'seen=1' USR1\n{} \"$@\" || exit\n\
             for word; do\n[ \"$before\" = --stub_file_name ] && stub=$word\nbefore=$word\ndone\n\
             watched() {{ case \"$LD_PRELOAD\" in *watch-*) true;; *) false;; esac; }}\n{after}\nexit 0\n",
            cicc.display()
        ),
    );
    fs::rename(space.work().join("cicc"), bin.join("cicc")).expect("the new cicc");
    space.toolkit.nvcc = space.beside("toolkit/bin/nvcc");
    space
}

/// Waits until [`agree`] says that the host compile has written its assembly, and ends with an error if that takes a minute. It may
/// not look for that file itself: then it would depend on it.
const WAIT: &str = "if watched; then case \"$*\" in\n\
    *compute_80*) ;;\n\
    *) tries=0\n\
    while [ -z \"$seen\" ]; do\n\
    sleep 0.1\ntries=$((tries + 1))\n\
    [ $tries -lt 600 ] || { echo 'no host compile' >&2; exit 9; }\n\
    done;;\n\
    esac; fi";

/// Compares with nvcc. Ends the wait of the last architecture's cicc when the host compile has written something.
#[track_caller]
fn agree(space: &TestSpace, line: &str) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if has_assembly(&space.beside("tmp")) {
                    end_wait(&space.beside("toolkit"));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let built = std::panic::catch_unwind(AssertUnwindSafe(|| space.agree(line)));
        is_over.store(true, Ordering::Relaxed);
        match built {
            Ok(built) => drop(built.demand_no_fallback()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
}

/// Whether there is an assembly text below the folder.
fn has_assembly(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let is_text = path.extension().is_some_and(|end| end == "s");
        is_text && fs::metadata(&path).is_ok_and(|file| file.len() > 0) || has_assembly(&path)
    })
}

/// Ends the wait of the script in the toolkit.
fn end_wait(toolkit: &Path) {
    let toolkit = toolkit.to_string_lossy();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let number = process.file_name().to_string_lossy().parse().ok();
        // A child that is not yet another program would die of the signal. It has no children.
        let is_shell = || {
            let children = process.path().join("task").join(process.file_name());
            fs::read(children.join("children")).is_ok_and(|text| !text.is_empty())
        };
        if words.starts_with("/bin/sh\0")
            && words.contains(toolkit.as_ref())
            && is_shell()
            && let Some(number) = number.and_then(Pid::from_raw)
        {
            // It may have ended by itself.
            _ = kill_process(number, Signal::USR1);
        }
    }
}

#[test]
fn the_host_compile_ends_before_cicc() {
    for line in [ONE, TWO] {
        agree(&space("early-stub", WAIT), line);
    }
}

#[test]
fn a_stub_that_grows_after_its_announcement() {
    let grow = "echo 'int grown = 1;' >> \"$stub\"";
    let space = space("early-stub-grows", grow);
    space.agree(ONE).demand_no_fallback();
    // The host compile has worked on the announced stub by then.
    let space = self::space("early-stub-late", &format!("{WAIT}\n{grow}"));
    agree(&space, TWO);
}

/// A stub that is remembered, and wrong, is replaced when the new one is announced.
#[test]
fn another_stub_than_last_time() {
    let space = space("early-stub-other", "");
    space.agree(ONE).demand_no_fallback();
    space.write("case.cu", &KERNEL.replace("int", "unsigned"));
    space.agree(ONE).demand_no_fallback();
}

/// cicc is done before cudafe++, but with a wrong module id, which is in its stub.
#[test]
fn a_stub_with_a_wrong_module_id() {
    // It is the longest step, so it starts before cudafe++ where only one runs at a time.
    let mut space = space("early-stub-id", "watched && sleep 2");
    space.set_env("WARPCC_JOBS", "1");
    for first in ["one", "two", "three"] {
        let text = format!(
            "int {first}() {{ return 1; }}\nstatic __device__ int hidden;\n\
             __global__ void k(int *x) {{ *x = hidden; }}\n\
             void host(int *x) {{ k<<<1, 1>>>(x); }}\n"
        );
        space.write("case.cu", &text);
        space
            .agree(&format!("-rdc=true {ONE}"))
            .demand_no_fallback();
    }
}
