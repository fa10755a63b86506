//! Files that real compilers and linkers look for are logged, and their output stays the same.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use support::{Bench, has};
use warpcc_watch::{LogError, PathText, read_log};

#[test]
fn candidates_before_the_header_found_are_missing() {
    let bench = Bench::new();
    bench
        .file("a.c", "#include <x.h>\n")
        .file("d1/y.h", "")
        .file("d2/y.h", "")
        .file("d3/x.h", "int x;\n");
    let seen = bench.watch("gcc -E -Id1 -Id2 -Id3 a.c -o a.i");
    assert!(
        has(&seen.missing, "d1/x.h") && has(&seen.missing, "d2/x.h"),
        "{seen:?}"
    );
    assert!(
        has(&seen.read, "d3/x.h") && has(&seen.read, "a.c") && has(&seen.written, "a.i"),
        "{seen:?}"
    );
    assert!(!has(&seen.missing, "d3/x.h"));
    assert_eq!(seen.processes.len(), 2, "{:?}", seen.processes);
    assert!(seen.processes[1].ends_with("cc1"));
    assert!(
        seen.libraries
            .keys()
            .any(|path| path.ends_with("libc.so.6"))
    );
    assert!(
        !seen
            .libraries
            .keys()
            .any(|path| path.starts_with(bench.dir.path())),
        "the library names itself"
    );
}

#[test]
fn has_include_of_nothing_is_missing() {
    let bench = Bench::new();
    bench
        .file("a.cpp", "#if __has_include(<nope.h>)\n#error\n#endif\n")
        .file("d/y.h", "");
    let seen = bench.watch("g++ -E -Id a.cpp -o a.i");
    assert!(
        has(&seen.missing, "d/nope.h") && has(&seen.missing, "/usr/include/nope.h"),
        "{seen:?}"
    );
}

#[test]
fn the_assembler_reads_what_is_included_in_binary() {
    let bench = Bench::new();
    bench
        .file("a.c", "__asm__(\".incbin \\\"blob\\\"\");\n")
        .file("blob", "bytes");
    let seen = bench.watch("gcc -c a.c -o a.o");
    assert!(
        has(&seen.read, "blob") && has(&seen.written, "a.o"),
        "{seen:?}"
    );
    assert!(
        seen.processes
            .iter()
            .any(|path| path.ends_with("x86_64-linux-gnu-as") || path.ends_with("as"))
    );
}

#[test]
fn a_link_is_logged_as_spelled() {
    let bench = Bench::new();
    bench
        .file("a.c", "#include \"link.h\"\n")
        .file("real.h", "");
    std::os::unix::fs::symlink("real.h", bench.path("link.h")).unwrap();
    let seen = bench.watch("gcc -E a.c -o a.i");
    assert!(
        has(&seen.read, "link.h") && !has(&seen.read, "real.h"),
        "{seen:?}"
    );
}

#[test]
fn outputs_are_the_same_with_and_without() {
    let bench = Bench::new();
    bench.file(
        "a.cpp",
        "#include <vector>\n#warning here\nint f(std::vector<int> v) { int u; return v[0]; }\n",
    );
    let plain = bench.plain("g++ -Wall -O1 -g -c a.cpp -o a.o");
    let object = std::fs::read(bench.path("a.o")).unwrap();
    std::fs::remove_file(bench.path("a.o")).unwrap();
    let watched = bench
        .watched("g++ -Wall -O1 -g -c a.cpp -o a.o")
        .output()
        .unwrap();
    assert_eq!(bench.log_of("g++").untracked, None);
    assert_eq!(
        (plain.status, plain.stdout, plain.stderr),
        (watched.status, watched.stdout, watched.stderr)
    );
    assert_eq!(object, std::fs::read(bench.path("a.o")).unwrap());
    // And when they fail.
    bench.file("b.c", "#include <nope.h>\n");
    let plain = bench.plain("gcc -c b.c");
    let watched = bench.watched("gcc -c b.c").output().unwrap();
    assert_eq!(
        (plain.status, plain.stdout, plain.stderr),
        (watched.status, watched.stdout, watched.stderr)
    );
    assert!(has(&bench.log_of("gcc").missing, "/usr/include/nope.h"));
}

#[test]
fn the_linker_passes_by_directories_without_the_library() {
    let bench = Bench::new();
    bench
        .file("main.cpp", "int f(); int main() { return f(); }\n")
        .file("foo.cpp", "int f() { return 0; }\n");
    bench.file("a/none", "").file("b/none", "");
    for words in [
        "g++ -c main.cpp",
        "g++ -c foo.cpp",
        "ar rc b/libfoo.a foo.o",
    ] {
        assert!(bench.plain(words).status.success());
    }
    let seen = bench.watch("g++ main.o -L a -L b -lfoo -o main");
    assert!(
        has(&seen.missing, "a/libfoo.so") && has(&seen.missing, "a/libfoo.a"),
        "{seen:?}"
    );
    assert!(
        has(&seen.missing, "b/libfoo.so") && has(&seen.read, "b/libfoo.a"),
        "{seen:?}"
    );
    assert!(has(&seen.written, "main"));
    assert!(
        seen.libraries
            .keys()
            .any(|path| path.ends_with("liblto_plugin.so")),
        "dlopen is seen at the end"
    );
}

#[test]
fn a_static_program_is_noticed() {
    let bench = Bench::new();
    bench.file("s.c", "int main(void) { return 0; }\n");
    if !bench.plain("gcc -static s.c -o s").status.success() {
        return; // No static C library here.
    }
    assert!(bench.watched("./s").status().unwrap().success());
    assert!(!bench.path("log").exists(), "it cannot log");
    assert_eq!(
        read_log(b"", Path::new("/"), &|_| false),
        Err(LogError::Empty)
    );
    for words in ["sh -c ./s;true", "sh -c exec<TAB>./s", "env ./s"] {
        let words: Vec<String> = words
            .split(' ')
            .map(|word| word.replace("<TAB>", "\t"))
            .collect();
        let mut command = bench.watched(&words[0]);
        assert!(command.args(&words[1..]).status().unwrap().success());
        let untracked = bench.log_of(&words[0]).untracked.unwrap_or_default();
        assert!(
            untracked.contains("could not be watched"),
            "{words:?}: {untracked}"
        );
        std::fs::remove_file(bench.path("log")).unwrap();
    }
}

#[test]
fn a_killed_process_is_noticed() {
    let bench = Bench::new();
    let status = bench.watched("sh -c").arg("kill -9 $$").status().unwrap();
    assert!(!status.success());
    assert!(
        bench
            .log_of("sh")
            .untracked
            .is_some_and(|why| why.contains("did not finish"))
    );
}

#[test]
fn files_a_killed_process_was_about_to_make_are_known() {
    let bench = Bench::new();
    assert!(bench.command("mkfifo pipe").status().unwrap().success());
    // There is no reader: the process stays in `open` until it is killed.
    let mut writer = bench.watched("dd if=/dev/null of=pipe").spawn().unwrap();
    let began = std::time::Instant::now();
    let unfinished = loop {
        std::thread::sleep(Duration::from_millis(5));
        let log = std::fs::read(bench.path("log")).unwrap_or_default();
        if log.ends_with(b"pipe\n") {
            break true;
        }
        if began.elapsed() > Duration::from_secs(60) {
            break false;
        }
    };
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(unfinished, "it did not say what it is about to do");
    let observed = bench.log_of("dd");
    let unfinished: Vec<_> = observed.unfinished.iter().collect();
    assert_eq!(unfinished, [&PathText::from(Path::new("pipe"))]);
    assert!(observed.written.is_empty());
    // A program that ends normally has made the file, and logs that, or could not.
    let after = bench.watch("dd if=/dev/null of=other");
    assert!(after.unfinished.is_empty());
    assert!(after.written.contains_key(OsStr::new("other")));
}

#[test]
fn many_processes_share_a_log() {
    let bench = Bench::new();
    for number in 0..40 {
        bench.file(
            &format!("{number}.c"),
            "#include <stdlib.h>\n#include <stdio.h>\n",
        );
    }
    let script = "i=0; while [ $i -lt 40 ]; do gcc -E $i.c -o $i.i & i=$((i+1)); done; wait";
    let status = bench.watched("sh -c").arg(script).status().unwrap();
    assert!(status.success());
    let seen = bench.log_of("sh");
    assert_eq!(seen.untracked, None);
    assert_eq!(seen.processes.len(), 81);
    assert!((0..40).all(|number| has(&seen.read, format!("{number}.c"))));
}

#[test]
fn the_users_preloaded_library_still_works() {
    let bench = Bench::new();
    bench.file("u.c", "#include <stdlib.h>\n__attribute__((constructor)) void f(void) { setenv(\"U\", \"here\", 1); }\n");
    assert!(
        bench
            .plain("gcc -shared -fPIC u.c -o u.so")
            .status
            .success()
    );
    let users = bench.path("u.so");
    let output = bench
        .watched_with("sh -c", Some(users.as_os_str()))
        .arg("env | grep ^U=")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "U=here\n");
    assert!(has(&bench.log_of("sh").libraries, users));
}

#[test]
fn a_shell_that_moves_makes_paths_absolute() {
    let bench = Bench::new();
    bench
        .file("sub/a.c", "#include \"b.h\"\n")
        .file("sub/b.h", "");
    let mut command = bench.watched("sh -c");
    let status = command
        .arg("cd sub && gcc -E a.c -o a.i; read x < b.h; cat nope; true")
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    let seen = bench.log_of("sh");
    assert_eq!(seen.untracked, None);
    let sub = bench.dir.path().canonicalize().unwrap().join("sub");
    assert!(
        has(&seen.read, sub.join("b.h")) && has(&seen.missing, sub.join("nope")),
        "{seen:?}"
    );
}

#[test]
fn a_search_along_the_path_is_logged() {
    let bench = Bench::new();
    bench.file("p1/none", "");
    let path = format!("{}:/usr/bin:/bin", bench.path("p1").display());
    let status = bench
        .watched("env true")
        .env("PATH", path)
        .status()
        .unwrap();
    assert!(status.success());
    let seen = bench.log_of("env");
    assert!(
        has(&seen.missing, bench.path("p1/true")) && has(&seen.read, "/usr/bin/true"),
        "{seen:?}"
    );
    // A failed search leaves the process as it was.
    std::fs::remove_file(bench.path("log")).unwrap();
    assert_eq!(
        bench
            .watched("env no-such-program")
            .output()
            .unwrap()
            .status
            .code(),
        Some(127)
    );
    let seen = bench.log_of("env");
    assert!(
        seen.untracked.is_none() && has(&seen.missing, "/usr/bin/no-such-program"),
        "{seen:?}"
    );
}

#[test]
fn a_log_that_cannot_be_written_harms_nobody() {
    let bench = Bench::new();
    bench.file("a.c", "int x;\n");
    let mut command = bench.watched("gcc -c a.c -o a.o");
    let output = command
        .env("WARPCC_WATCH_LOG", "/nonexistent/log")
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert!(bench.path("a.o").exists());
}

/// With a toolkit at hand: `WARPCC_TEST_NVCC=/usr/local/cuda/bin/nvcc cargo test -p warpcc-watch`.
#[test]
fn the_tools_of_nvcc_are_seen() {
    let Some(nvcc) = std::env::var_os("WARPCC_TEST_NVCC") else {
        return;
    };
    let bench = Bench::new();
    bench.file(
        "x.cu",
        "#include <math.h>\n__global__ void k(float *p) { *p = sinf(*p); }\n",
    );
    let nvcc: &OsStr = &nvcc;
    let seen = bench.watch(&format!("{} -rdc=true -c x.cu -o x.o", nvcc.display()));
    // Not libdevice.10.bc: cicc 13 carries it inside and opens no file for it (strace agrees).
    for file in ["x.cu", "cuda_runtime.h", "nvcc.profile"] {
        assert!(
            seen.read.keys().any(|path| path.ends_with(file)),
            "{file}: {:?}",
            seen.read
        );
    }
    for tool in ["cicc", "ptxas", "cudafe++", "fatbinary", "cc1plus"] {
        assert!(
            seen.processes.iter().any(|path| path.ends_with(tool)),
            "{tool}: {:?}",
            seen.processes
        );
    }
    let seen = bench.watch(&format!("{} -dlink x.o -o y.o", nvcc.display()));
    assert!(
        seen.processes.iter().any(|path| path.ends_with("nvlink")) && has(&seen.read, "x.o"),
        "{seen:?}"
    );
}

#[test]
fn looks_listings_and_servers_are_logged() {
    let bench = Bench::new();
    bench.file("notes", "four").file("d/name", "");
    let seen = bench.watch("/usr/bin/stat notes");
    let looked = seen.looked.iter().find(|(path, _)| path.ends_with("notes"));
    assert_eq!(looked.map(|(_, told)| told.size), Some(4), "{seen:?}");
    let modified = std::fs::metadata(bench.path("notes")).unwrap();
    let modified = modified.modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    let told = looked.map(|(_, told)| told.mtime_ns);
    assert_eq!(told, i64::try_from(since.as_nanos()).ok());

    bench.file("ask.c", ASKING);
    bench.watch("gcc ask.c -o ask");
    let seen = bench.watch("./ask");
    let listed = seen.listed.iter().any(|path| path.ends_with("d"));
    assert!(listed, "{seen:?}");
    assert!(has(&seen.looked, "notes"), "{seen:?}");
    assert_eq!(seen.asked_directory.len(), 1, "{seen:?}");
    std::fs::remove_file(bench.path("log")).unwrap();
    let talking = bench.watched("./ask talk").output().unwrap();
    assert!(talking.status.success(), "{talking:?}");
    let untracked = bench.log_of("./ask").untracked.unwrap();
    assert!(untracked.ends_with("it talked to a server"), "{untracked}");
}

/// Looks at a file, lists a folder by its descriptor, asks where it is, and on request talks to a server.
const ASKING: &str = r#"
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
int main(int count, char **words) {
    struct stat at;
    char where[4096];
    int bad = fstatat(AT_FDCWD, "notes", &at, 0) || at.st_size != 4;
    bad |= !fdopendir(open("d", O_RDONLY)) || !getcwd(where, sizeof where);
    struct sockaddr_un server = {AF_UNIX, "/nowhere"};
    if (count > 1) connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&server, sizeof server);
    return bad;
}
"#;

#[test]
fn a_program_that_has_environ_is_known_by_its_symbols() {
    let bench = Bench::new();
    bench
        .file(
            "asks.c",
            "char *getenv(const char *); int main(void) { return getenv(\"A_NAME\") != 0; }",
        )
        .file(
            "walks.c",
            "extern char **environ; int main(void) { return !environ[0]; }",
        );
    // The tools of CUDA 13.0 and before are linked as `sysv`.
    for style in ["sysv", "gnu", "both"] {
        for kind in ["-no-pie", "-no-pie -fPIC", "-pie -fPIE", "-rdynamic"] {
            for (name, has_environ) in [("asks", false), ("walks", true)] {
                let line = format!("gcc {kind} -Wl,--hash-style={style} {name}.c -o ./{name}");
                assert!(bench.plain(&line).status.success(), "{line}");
                let seen = bench.watch(&format!("./{name}"));
                assert_eq!(
                    seen.have_environ.contains(&bench.path(name)),
                    has_environ,
                    "{line}: {seen:?}"
                );
            }
        }
    }
}
