//! Starts and stops BuildGrid, a Remote Execution server of others with a scheduler of its own, on a free port of the
//! loopback interface; and PostgreSQL, which keeps its queue.

use std::fs::{self, File, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::casd::{free_port, place, say};

/// A server that ends with this value.
pub struct BuildGrid {
    /// The server, and the database behind it.
    server: Child,
    database: Option<Child>,
    port: u16,
    folder: tempfile::TempDir,
}

/// Blobs and results alone.
const CACHE: &str = "
server:
  - !channel { address: '127.0.0.1:PORT', insecure-mode: true }
authorization: { method: none }
storages:
  - !disk-storage &storage { path: 'FOLDER/cas' }
caches:
  - !lru-action-cache &results { storage: *storage, max-cached-refs: 10000, allow-updates: true }
instances:
  - name: ''
    services:
      - !action-cache { cache: *results }
      - !cas { storage: *storage }
      - !bytestream { storage: *storage }
thread-pool-size: 50
";

/// And the scheduler, which knows work and workers by the properties that every BuildGrid knows, and waits shorter between
/// looks than the second that is its default.
const SCHEDULER: &str = "
connections:
  - !sql-connection &sql { connection-string: 'DATABASE', pool-size: 10, max-overflow: 20 }
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *storage
    action-cache: *results
    property-set: !dynamic-property-set {}
    poll-interval: 0.2
    assigners:
      - !priority-age-assigner { count: 1, interval: 0.05 }
";

/// Its own commands, one after the other: importing it takes longer than either.
const RUN: &str = "
import sys
from buildgrid.server.app.cli import cli
config, database = sys.argv[1:]
if database:
    cli(['migrate', 'apply', database], standalone_mode=False)
cli(['server', 'start', config])
";

impl BuildGrid {
    /// Its blobs and results without the scheduler; `None`, with a message, where the machine has no BuildGrid.
    pub fn start_cache() -> Option<Self> {
        Self::start(None)
    }

    /// All of it, with an empty store and an empty queue.
    pub fn start_scheduler() -> Option<Self> {
        let programs = postgresql();
        if programs.is_none() {
            say("skipped: no /usr/lib/postgresql/*/bin; `cargo xtask test` installs it");
        }
        Self::start(Some(&programs?))
    }

    fn start(programs: Option<&Path>) -> Option<Self> {
        let Some(packages) = std::env::var_os("WARPCC_TEST_SERVERS").map(PathBuf::from) else {
            say("skipped: WARPCC_TEST_SERVERS is not set; `cargo xtask test` sets it");
            return None;
        };
        let folder = tempfile::tempdir_in(place()).expect("a folder for BuildGrid");
        // PostgreSQL runs as a user without rights.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).expect("permissions");
        let (database, url) = programs.map_or((None, String::new()), |programs| {
            let at = folder.path().join("queue");
            let url = format!("postgresql+psycopg2://grid@/postgres?host={}", at.display());
            (Some(start_database(programs, &at)), url)
        });
        let mut config = CACHE.to_owned();
        if database.is_some() {
            config = config.replace(
                "instances:",
                &format!("{}instances:", SCHEDULER.trim_start()),
            );
            let service = "      - !execution { scheduler: *scheduler }\n";
            config = config.replace("thread-pool", &format!("{service}thread-pool"));
        }
        let port = free_port();
        let config = config
            .replace("PORT", &port.to_string())
            .replace("FOLDER", &folder.path().display().to_string())
            .replace("DATABASE", &url);
        let config_file = folder.path().join("config.yml");
        fs::write(&config_file, config).expect("the configuration");
        let log = File::create(folder.path().join("log")).expect("a log");
        let server = Command::new("python3")
            .env("PYTHONPATH", packages)
            .arg("-c")
            .arg(RUN)
            .arg(&config_file)
            .arg(&url)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .spawn()
            .expect("python3");
        let mut this = Self {
            server,
            database,
            port,
            folder,
        };
        this.wait();
        Some(this)
    }

    /// Until it takes connections.
    fn wait(&mut self) {
        let patience = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.server.try_wait().expect("BuildGrid").is_some();
            let slow = patience.elapsed() > Duration::from_secs(120);
            assert!(!ended && !slow, "BuildGrid does not start");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// As `WARPCC_REMOTE` and `WARPCC_EXECUTOR` name it.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }
}

impl Drop for BuildGrid {
    fn drop(&mut self) {
        // A polite end waits for its threads.
        _ = self.server.kill();
        _ = self.server.wait();
        if let Some(database) = &mut self.database {
            // Its processes go with the first of them, when that is asked to go at once.
            let pid = rustix::process::Pid::from_child(database);
            _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
            _ = database.wait();
        }
        if thread::panicking() {
            for name in ["log", "queue.log"] {
                let log = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
                say(&format!("BuildGrid's {name}: {log}"));
            }
        }
    }
}

/// Debian's folder of the newest version's programs.
fn postgresql() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let found = versions.flatten().map(|version| version.path().join("bin"));
    found.filter(|bin| bin.join("initdb").exists()).max()
}

/// PostgreSQL with a socket in `at`, and no port.
fn start_database(programs: &Path, at: &Path) -> Child {
    fs::create_dir(at).expect("the database's folder");
    let is_root = rustix::process::getuid().is_root();
    // It refuses to run as root.
    let nobody = 65534;
    if is_root {
        std::os::unix::fs::chown(at, Some(nobody), Some(nobody)).expect("the folder is nobody's");
    }
    let log = File::create(at.with_extension("log")).expect("a log");
    let command = |name: &str| {
        let mut command = Command::new(programs.join(name));
        command
            .arg("-D")
            .arg(at.join("data"))
            .current_dir(at)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log.try_clone().expect("the log"));
        if is_root {
            command.uid(nobody).gid(nobody);
        }
        command
    };
    let made = command("initdb")
        .args(["--auth=trust", "--no-sync", "--username=grid"])
        .status();
    let said = || fs::read_to_string(at.with_extension("log")).unwrap_or_default();
    assert!(made.expect("initdb").success(), "initdb: {}", said());
    let mut server = command("postgres")
        .args(["-F", "-c", "listen_addresses=", "-k"])
        .arg(at)
        .spawn()
        .expect("postgres");
    let socket = at.join(".s.PGSQL.5432");
    let patience = Instant::now();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        let ended = server.try_wait().expect("postgres").is_some();
        let slow = patience.elapsed() > Duration::from_secs(60);
        assert!(!ended && !slow, "postgres does not start: {}", said());
        thread::sleep(Duration::from_millis(20));
    }
    server
}
