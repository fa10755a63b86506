//! Starts the servers of a measurement, and confines processes to shares of a processor.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::suite::casd;
use crate::{process, repo};

const CGROUPS: &str = "/sys/fs/cgroup/cpu";

/// A share of a processor, for a process and all that it starts.
pub struct Share(PathBuf);

impl Share {
    /// `percent` of one processor.
    pub fn new(name: &str, percent: u32) -> Result<Self> {
        let folder = Path::new(CGROUPS).join(format!("warpcc-bench-{}-{name}", std::process::id()));
        fs::create_dir(&folder).with_context(|| {
            format!(
                "failed to create {}: this needs the cpu controller of cgroup v1, and root",
                folder.display()
            )
        })?;
        let share = Self(folder);
        fs::write(share.0.join("cpu.cfs_period_us"), "100000")?;
        fs::write(
            share.0.join("cpu.cfs_quota_us"),
            (percent * 1000).to_string(),
        )?;
        Ok(share)
    }

    /// The command, confined to this share.
    pub fn confine(&self, command: &Command) -> Command {
        let mut confined = Command::new("sh");
        confined
            .args(["-c", "echo $$ >\"$0/tasks\" && exec \"$@\""])
            .arg(&self.0)
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => confined.env(name, value),
                None => confined.env_remove(name),
            };
        }
        confined
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // The kernel releases the last process a moment after its end.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A process that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A casd that answers.
pub struct Casd {
    _server: Server,
    port: u16,
}

impl Casd {
    /// Starts a casd with an empty store in `folder`. With `front`, it is a worker of that one, within `share`.
    pub fn start(folder: &Path, front: Option<&Self>, share: Option<&Share>) -> Result<Self> {
        Self::start_on(free_port()?, folder, front, share)
    }

    /// The same on a port that a client may have tried already.
    pub fn start_on(
        port: u16,
        folder: &Path,
        front: Option<&Self>,
        share: Option<&Share>,
    ) -> Result<Self> {
        let program = casd::program();
        let beside = program.parent().context("casd is in a folder")?;
        fs::create_dir_all(folder)?;
        let mut command = Command::new(&program);
        command
            .arg(format!("--bind=127.0.0.1:{port}"))
            .args(["--quota-high=12G", "--reserved=64M", "--jobs=1"])
            .args(["--cache-failures=false", "--log-level=error"])
            .env("PATH", format!("{}:/usr/bin:/bin", beside.display()));
        // The casd in front executes nothing, but announces execution for all workers.
        command
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
        if let Some(front) = front {
            let front = format!("http://127.0.0.1:{}", front.port);
            command
                .arg(format!("--cas-remote={front}"))
                .arg(format!("--ac-remote={front}"));
        }
        command.arg(folder.join("store"));
        let mut command = match share {
            Some(share) => share.confine(&command),
            None => command,
        };
        let log = fs::File::create(folder.join("log"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        let server = Server(child);
        wait_for(port)?;
        Ok(Self {
            _server: server,
            port,
        })
    }

    /// The address, as it is written in warpcc's settings.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until a server listens on the port.
pub fn wait_for(port: u16) -> Result<()> {
    let patience = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(
            patience.elapsed() < Duration::from_secs(60),
            "no server listens on port {port}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The tests' dispatcher before a casd and its workers.
pub struct Dispatcher {
    server: Server,
    port: u16,
}

impl Dispatcher {
    /// Builds the dispatcher with cargo, and starts it. Every call to it waits for `round_trip` first.
    pub fn start(front: &Casd, workers: &[Casd], round_trip: Duration) -> Result<Self> {
        // From the whole workspace, as the tests are built, so that nothing is built twice.
        let words = ["--quiet", "--workspace", "--example", "dispatcher"];
        process::run(process::cargo("build").args(words))?;
        let port = free_port()?;
        let mut command = Command::new(repo::target_dir().join("debug/examples/dispatcher"));
        command
            .arg(port.to_string())
            .arg(round_trip.as_millis().to_string())
            .arg(front.address())
            .args(workers.iter().map(Casd::address))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let child = command.spawn().context("failed to start the dispatcher")?;
        let server = Server(child);
        wait_for(port)?;
        Ok(Self { server, port })
    }

    /// The address, as it is written in warpcc's settings.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }

    /// Ends the dispatcher. Gives the number of actions of each worker.
    pub fn stop(mut self) -> Result<Vec<u64>> {
        drop(self.server.0.stdin.take());
        let mut said = String::new();
        let pipe = self.server.0.stdout.as_mut();
        pipe.context("its output is ours")?
            .read_to_string(&mut said)?;
        let numbers = said.split_whitespace().map(str::parse);
        numbers.collect::<Result<_, _>>().context("not numbers")
    }
}
