//! Starts and stops buildbox-casd, a real Remote Execution API server, on a free port of the loopback interface.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server that ends with this value.
pub struct Casd {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

/// Where `cargo xtask test` has put it.
fn program() -> Option<PathBuf> {
    let program = std::env::var_os("WARPCC_TEST_CASD").map(PathBuf::from)?;
    assert!(
        program.exists(),
        "WARPCC_TEST_CASD: no {}",
        program.display()
    );
    Some(program)
}

impl Casd {
    /// One with an empty store; `None`, with a message, where the machine has no casd.
    pub fn start() -> Option<Self> {
        Self::start_as(&["--jobs=2".to_owned()])
    }

    /// A worker of a cluster: one action at a time, with the blobs and the action cache of the server at `front`.
    pub fn start_worker(front: &str) -> Option<Self> {
        let front = front.replace("grpc://", "http://");
        Self::start_as(&[
            "--jobs=1".to_owned(),
            format!("--cas-remote={front}"),
            format!("--ac-remote={front}"),
        ])
    }

    fn start_as(manner: &[String]) -> Option<Self> {
        let Some(program) = program() else {
            say("skipped: WARPCC_TEST_CASD is not set; `cargo xtask test` sets it");
            return None;
        };
        let folder = tempfile::tempdir_in(place()).expect("a folder for casd");
        // Another process may take the port between our check and casd's start.
        for _ in 0..5 {
            let port = free_port();
            let mut child = spawn(&program, folder.path(), port, manner);
            if listens(&mut child, port) {
                return Some(Self {
                    child,
                    port,
                    folder,
                });
            }
        }
        let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        panic!("casd does not start: {log}");
    }

    /// As `WARPCC_REMOTE` and `WARPCC_EXECUTOR` name it.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }

    /// Whether it holds blobs by now.
    pub fn has_work(&self) -> bool {
        let blobs = self.folder.path().join("store/cas/objects");
        fs::read_dir(blobs).is_ok_and(|folders| folders.count() > 4)
    }

    /// Ends it, as a crash does.
    pub fn kill(&mut self) {
        let group = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // Its runners too; it is not there any more where this fails.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Casd {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            say(&format!("casd said: {log}"));
        }
    }
}

/// Memory, where there is enough: ten thousand files that casd syncs take a busy disk 15 s.
pub fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let is_large = rustix::fs::statvfs(memory).is_ok_and(|s| s.f_bavail * s.f_frsize > 2 << 30);
    if is_large {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Says it in the test's output.
#[expect(clippy::print_stderr, reason = "for a reader of the test's output")]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn spawn(program: &Path, folder: &Path, port: u16, manner: &[String]) -> Child {
    let beside = program.parent().expect("a folder");
    let log = File::create(folder.join("log")).expect("a log");
    let mut command = Command::new(program);
    command
        .arg(format!("--bind=127.0.0.1:{port}"))
        .args([
            "--quota-high=4G",
            "--reserved=64M",
            "--cache-failures=false",
        ])
        .args(manner)
        .arg(format!(
            "--buildbox-run={}",
            beside.join("buildbox-run").display()
        ))
        .arg("--runner-arg=--staging-mode=copy-or-link");
    for (from, to) in [
        ("/usr", "/usr"),
        ("/usr/lib", "/lib"),
        ("/usr/lib64", "/lib64"),
        ("/usr/bin", "/bin"),
    ] {
        command.arg(format!("--runner-arg=--ro-bind-mount={from}:{to}"));
    }
    command
        .arg(folder.join("store"))
        .env("PATH", format!("{}:/usr/bin:/bin", beside.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0);
    command.spawn().expect("casd starts")
}

/// Waits until it takes connections; false when it has ended instead.
fn listens(child: &mut Child, port: u16) -> bool {
    let patience = Instant::now();
    while child.try_wait().expect("casd").is_none() {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return true;
        }
        assert!(
            patience.elapsed() < Duration::from_secs(60),
            "casd does not listen"
        );
        thread::sleep(Duration::from_millis(20));
    }
    false
}
