//! C programs against the library that was just built: compiled as C99 without a warning, and run on PyPI's NVRTCs.

mod built;

use std::path::Path;
use std::process::Command;

use built::{Built, Nvidia};

/// Compiles a program of `tests/c` and runs it in a folder of its own.
fn run(program: &str, nvidia: &Nvidia) -> String {
    let built = Built::new();
    let exe = built.compile(&format!("tests/c/{program}.c"), &[]);
    built.run(&exe, nvidia, &[])
}

#[test]
fn the_whole_path_works_from_c() {
    for nvidia in Nvidia::all() {
        let said = run("whole_path", &nvidia);
        assert!(
            said.contains(&format!("version: {}\n", nvidia.version)),
            "{said}"
        );
        // The wheel of 13.5 has headers in it, those before 13.3 cannot.
        let headers = if nvidia.version == "13.5" {
            "yes"
        } else {
            "no"
        };
        assert!(said.contains(&format!("headers: {headers}\n")), "{said}");
    }
}

#[test]
fn wrong_arguments_are_errors_that_name_them() {
    run("bad_input", &Nvidia::newest());
}

#[test]
fn threads_share_handles_and_keep_their_own_errors() {
    run("threads", &Nvidia::newest());
}

/// Builds the stand-in for the driver into the folder where the program's libraries are.
fn stand_in(built: &Built) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/stand_in_driver.c");
    let driver = built.folder().join("libcuda.so.1");
    built::succeed(
        Command::new("gcc")
            .args([
                "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
            ])
            .args(["-Wl,-soname,libcuda.so.1", "-o"])
            .args([&driver, &source]),
    );
    std::os::unix::fs::symlink(&driver, built.folder().join("libcuda.so")).expect("a link");
}

#[test]
fn functions_contexts_and_launches_reach_the_driver() {
    let built = Built::new();
    stand_in(&built);
    let exe = built.compile("tests/c/driver.c", &["-l:libcuda.so.1"]);
    built.run(&exe, &Nvidia::newest(), &[]);
}

#[test]
fn the_cost_of_a_hit_can_be_measured() {
    let built = Built::new();
    stand_in(&built);
    let exe = built.compile("examples/hit_cost.c", &["-O2"]);
    let said = built.run(&exe, &Nvidia::newest(), &["3"]);
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn headers_stand_alone_in_c_and_in_cpp() {
    let built = Built::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, header, standard) in [
        ("gcc", "warpcc_rtc.h", "-std=c99"),
        ("gcc", "warpcc_rtc.h", "-std=c17"),
        ("g++", "warpcc_rtc.h", "-std=c++11"),
        ("g++", "warpcc_rtc.hpp", "-std=c++17"),
        ("g++", "warpcc_rtc.hpp", "-std=c++20"),
    ] {
        let language = if compiler == "gcc" { "c" } else { "c++" };
        let source = built.folder().join("one.txt");
        std::fs::write(
            &source,
            format!("#include \"{header}\"\nint main(void) {{ return 0; }}\n"),
        )
        .expect("written");
        built::succeed(
            Command::new(compiler)
                .args([
                    standard,
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pedantic",
                    "-fsyntax-only",
                ])
                .arg("-I")
                .arg(root.join("include"))
                .args(["-x", language])
                .arg(&source),
        );
    }
}

/// A redis that ends with the test.
struct Redis {
    server: std::process::Child,
    port: u16,
}

impl Redis {
    fn start(folder: &Path) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.args(["--requirepass", "open-sesame", "--port", &port.to_string()]);
        command.arg("--dir").arg(folder);
        let quiet = command.stdout(std::process::Stdio::null());
        let server = quiet.spawn().expect("redis-server");
        let mut server = Self { server, port };
        let begin = std::time::Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.server.try_wait().expect("a child");
            assert!(ended.is_none(), "redis-server ended: {ended:?}");
            assert!(begin.elapsed().as_secs() < 60, "redis-server is silent");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

#[test]
fn machines_share_through_a_server() {
    let built = Built::new();
    let exe = built.compile("tests/c/machine.c", &[]);
    let redis = Redis::start(built.folder());
    let url = format!("redis://:open-sesame@127.0.0.1:{}/1", redis.port);
    // A busy machine must not make a good server slow.
    let patient = format!("{url}|timeout=100|connect-timeout=100|retry-after=3600");
    let on = |machine: &str, remote: &str| {
        let mut command = Command::new(&exe);
        Nvidia::newest().set(&mut command);
        command.env("LD_LIBRARY_PATH", built.folder());
        command
            .env("HOME", built.folder())
            .env("WARPCC_REMOTE", &patient);
        let folder = built.folder().join(machine);
        built::succeed(command.arg(folder).arg(remote))
    };
    let first = "disk 0, shared 0, made 3, waiting 0\n";
    assert_eq!(on("first", &patient), first);
    let nothing_made = "disk 0, shared 3, made 0, waiting 0\n";
    assert_eq!(on("second", &patient), nothing_made);
    // By the environment, which is not looked at where a text is given.
    assert_eq!(on("third", "-"), nothing_made);
    assert_eq!(
        on("second", "none"),
        "disk 3, shared 0, made 0, waiting 0\n"
    );
    drop(redis);
    // No server is there: the image is made here, its upload waits, and no message has a password in it.
    let said = on("fourth", &patient);
    let (counts, remarks) = said.split_once('\n').expect("lines");
    assert_eq!(counts, "disk 0, shared 0, made 3, waiting 1");
    assert!(
        remarks.contains("3 results wait to be uploaded to redis://")
            && !remarks.contains("open-sesame"),
        "{remarks}"
    );
    let nothing = on("second", &patient);
    assert!(nothing.starts_with("disk 3, shared 0, made 0"), "{nothing}");
}

#[test]
fn the_static_library_does_as_well() {
    let built = Built::new();
    let exe = built.compile_static("tests/c/bad_input.c");
    built.run(&exe, &Nvidia::newest(), &[]);
}
