//! Processes of every kind: static, killed, many at once, shells; and what a program asks besides files.

use std::path::Path;

use warpcc_watch::{LogError, read_log};

use crate::support::{Bench, has};

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

/// The hooks cannot see what another C library in the same process does, and a library that audits may change everything.
#[test]
fn other_namespaces_are_noticed() {
    let bench = Bench::new();
    bench.file("l.c", "int value(void) { return 7; }\n");
    let main = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        int main(int count, char **words) {\n\
        void *library = dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW);\n\
        return library ? ((int (*)(void))dlsym(library, \"value\"))() : 1; }\n";
    bench.file("m.c", main);
    let audit = "unsigned la_version(unsigned version) { return version; }\n";
    bench.file("a.c", audit);
    for words in [
        "gcc -shared -fPIC l.c -o l.so",
        "gcc -shared -fPIC a.c -o a.so",
        "gcc m.c -o m -ldl",
    ] {
        assert!(bench.plain(words).status.success(), "{words}");
    }
    let mut by_name = bench.watched("./m ./l.so");
    assert_eq!(
        by_name.status().unwrap().code(),
        Some(7),
        "the library is used"
    );
    let untracked = bench.log_of("./m").untracked.unwrap_or_default();
    assert!(untracked.contains("another namespace"), "{untracked}");
    std::fs::remove_file(bench.path("log")).unwrap();
    let mut audited = bench.watched("ls");
    audited.env("LD_AUDIT", bench.path("a.so"));
    assert!(audited.status().unwrap().success());
    let untracked = bench.log_of("ls").untracked.unwrap_or_default();
    assert!(untracked.contains("audits"), "{untracked}");
}

/// musl calls constructors without arguments. A program that ended there would change the result of a script that goes on.
#[test]
fn a_program_with_another_c_library_works_and_is_noticed() {
    let bench = Bench::new();
    bench.file(
        "m.c",
        "#include <stdio.h>\nint main(void) { return puts(\"here\") < 0; }\n",
    );
    let made = bench.plain("musl-gcc m.c -o m");
    assert!(made.status.success(), "{made:?}");
    let output = bench.watched("./m").output().unwrap();
    assert_eq!(output.stdout, b"here\n", "{output:?}");
    let untracked = bench.log_of("./m").untracked.unwrap_or_default();
    assert!(untracked.contains("another C library"), "{untracked}");
}
