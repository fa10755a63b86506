//! Measures the cost and the gain of a shared cache for one file: hits from casd and redis against hits on disk, a cold
//! build that uploads its results, sccache with the same redis, and the memory that the transfer of a very large object
//! takes.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cluster::save;
use super::machine_info;
use super::options::{BenchOptions, SOURCE};
use super::servers::{Casd, free_port, wait_for};
use crate::measure::{self, Cost};
use crate::suite::casd;
use crate::{process, programs, repo};

/// The benchmark's name for `--only`.
pub const NAME: &str = "remote";
/// The name for `--only` of the benchmark with large objects.
pub const LARGE: &str = "remote-large";

/// The name for `--only` of the benchmark with many small blobs.
pub const SMALL: &str = "remote-small";

/// Many small blobs: their number, and the size of each in bytes.
const BLOBS: [&str; 2] = ["10000", "400"];

/// Sizes of the objects whose transfer is measured, in MiB.
const SIZES: [u64; 2] = [64, 2048];

struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start(folder: &Path) -> Result<Option<Self>> {
        let Some(program) = process::on_path("redis-server") else {
            return Ok(None);
        };
        let port = free_port()?;
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--port"])
            .arg(port.to_string())
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .context("failed to start redis-server")?;
        let redis = Self { child, port };
        wait_for(port)?;
        Ok(Some(redis))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct RemoteBench {
    dir: PathBuf,
    warpcc: PathBuf,
    nvcc: PathBuf,
    archs: Vec<String>,
}

impl RemoteBench {
    fn command(&self, program: &Path, cache: &str, remote: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.dir)
            .env("WARPCC_DIR", self.dir.join(cache))
            .env("WARPCC_RUNTIME_DIR", self.dir.join("runtime"))
            .env("WARPCC_CONFIG", "/dev/null")
            .env("WARPCC_REMOTE", remote);
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "WARPCC_EXECUTOR"] {
            command.env_remove(name);
        }
        command
    }

    /// A compilation that no other `round` has made, so that no server knows it.
    fn compile_in(&self, round: u32, cache: &str, remote: &str) -> Command {
        let mut command = self.compile(cache, remote);
        command.arg(format!("-DROUND={round}"));
        command
    }

    fn compile(&self, cache: &str, remote: &str) -> Command {
        let mut command = self.command(&self.warpcc, cache, remote);
        command.arg(&self.nvcc).args(programs::gencode(&self.archs));
        command.args(["-std=c++17", "-O3", "-c", "bench.cu", "-o", "bench.o"]);
        command
    }

    /// Compiles and takes the object away.
    fn run(&self, mut command: Command) -> Result<(Cost, u64)> {
        let cost = measure::run(&mut command)?;
        let object = self.dir.join("bench.o");
        let bytes = fs::metadata(&object)
            .context("no object was written")?
            .len();
        fs::remove_file(&object)?;
        Ok((cost, bytes))
    }

    fn upload(&self, cache: &str, remote: &str) -> Result<Cost> {
        let mut command = self.command(&self.warpcc, cache, remote);
        measure::run(command.args(["remote", "upload"]))
    }

    /// Removes all results from the cache, and keeps its notes on the toolkit.
    fn forget_results(&self, cache: &str) -> Result<()> {
        for entry in fs::read_dir(self.dir.join(cache))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && !name.starts_with("notes") {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    fn remove(&self, cache: &str) -> Result<()> {
        let folder = self.dir.join(cache);
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        Ok(())
    }

    /// How many answers came from servers.
    fn remote_hits(&self, cache: &str) -> Result<u64> {
        let mut command = self.command(&self.warpcc, cache, "none");
        let text = process::output(command.args(["stats", "--json"]))?;
        let stats: Value = serde_json::from_str(&text)?;
        Ok(stats["remote"]["hits"].as_u64().unwrap_or(0))
    }
}

fn place(options: &BenchOptions, nvcc: &Path, dir: &Path) -> Result<RemoteBench> {
    casd::install()?;
    Ok(RemoteBench {
        dir: dir.to_owned(),
        warpcc: programs::warpcc(options.warpcc.as_deref())?,
        nvcc: nvcc.to_owned(),
        archs: options.archs.clone(),
    })
}

fn report(options: &BenchOptions, nvcc: &Path, name: &str, results: &[Value]) -> Result<()> {
    let report = json!({
        "name": name,
        "date": machine_info::date()?,
        "machine": machine_info::machine(),
        "load_before_and_after_others_included": fs::read_to_string("/proc/loadavg").ok(),
        "toolkit": machine_info::toolkit(nvcc)?,
        "results": results,
    });
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| repo::root().join("docs/bench"));
    save(&out, &format!("{name}.json"), &report)
}

/// The costs of sccache's hits from redis.
fn sccache_hits(sccache: &Path, place: &RemoteBench, port: u16, runs: u32) -> Result<Vec<Cost>> {
    let bare = || {
        let mut command = Command::new(sccache);
        command
            .current_dir(&place.dir)
            .env("SCCACHE_SERVER_UDS", place.dir.join("sccache.socket"))
            .env(
                "SCCACHE_REDIS_ENDPOINT",
                format!("redis://127.0.0.1:{port}/1"),
            );
        command
    };
    let compile = || {
        let mut command = bare();
        command
            .arg(&place.nvcc)
            .args(programs::gencode(&place.archs));
        command.args(["-std=c++17", "-O3", "-c", "bench.cu", "-o", "bench.o"]);
        command
    };
    place.run(compile())?;
    place.run(compile())?;
    let costs = (0..runs).map(|_| Ok(place.run(compile())?.0)).collect();
    process::succeeds(bare().arg("--stop-server"));
    costs
}

/// Hits, and a cold build that writes through.
pub fn main(options: &BenchOptions, nvcc: &Path) -> Result<()> {
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    let place = place(options, nvcc, dir.path())?;
    let source = match &options.source {
        Some(file) => fs::read_to_string(file).with_context(|| file.display().to_string())?,
        None => SOURCE.to_owned(),
    };
    fs::write(dir.path().join("bench.cu"), source)?;
    let server = Casd::start(&dir.path().join("casd"), None, None)?;
    let redis = Redis::start(dir.path())?;
    let mut remotes = vec![("casd", server.address())];
    if let Some(redis) = &redis {
        remotes.push(("redis", format!("redis://127.0.0.1:{}", redis.port)));
    }
    let mut all: Vec<(String, Vec<Cost>)> = Vec::new();
    let mut note = |name: &str, cost: Cost| {
        eprintln!("{name}: {:.3} s, {:.3} s CPU", cost.wall, cost.cpu());
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, costs)) => costs.push(cost),
            None => all.push((name.to_owned(), vec![cost])),
        }
    };
    // The first run of all reads the toolkit from the disk.
    place.run(place.compile("local", "none"))?;
    for round in 0..options.runs {
        for (name, remote) in &remotes {
            let cache = format!("cold-{name}");
            // Alternating, so that other work of the machine affects both alike.
            place.remove("local")?;
            note(
                "cold, no server",
                place.run(place.compile_in(round, "local", "none"))?.0,
            );
            place.remove(&cache)?;
            let (cost, _) = place.run(place.compile_in(round, &cache, remote))?;
            note(&format!("cold, and given to {name} after the call"), cost);
            let uploaded = place.upload(&cache, remote)?;
            note(&format!("waiting for the upload to {name}"), uploaded);
        }
        // Stores the result that is hit below.
        place.run(place.compile("local", "none"))?;
        for (name, remote) in &remotes {
            let cache = format!("hit-{name}");
            place.run(place.compile(&cache, remote))?;
            place.upload(&cache, remote)?;
            for _ in 0..5 {
                note("hit on disk", place.run(place.compile("local", "none"))?.0);
                place.remove(&cache)?;
                note(
                    &format!("hit from {name}, new machine"),
                    place.run(place.compile(&cache, remote))?.0,
                );
                place.forget_results(&cache)?;
                let before = place.remote_hits(&cache)?;
                note(
                    &format!("hit from {name}, toolkit known"),
                    place.run(place.compile(&cache, remote))?.0,
                );
                ensure!(
                    place.remote_hits(&cache)? > before,
                    "{name}: nothing came from the server"
                );
            }
        }
    }
    if let (Some(redis), Some(sccache)) = (&redis, process::on_path("sccache")) {
        for cost in sccache_hits(&sccache, &place, redis.port, options.runs)? {
            note("sccache, hit from redis", cost);
        }
    }
    let results: Vec<Value> = all
        .iter()
        .map(|(name, costs)| {
            let cost = Cost::median(costs);
            println!("{name:<44} {:>9.3} s {:>9.3} s CPU", cost.wall, cost.cpu());
            json!({"what": name, "runs": costs.len(), "median_wall_s": cost.wall, "median_cpu_s": cost.cpu(),
                   "wall_s_of_each_run": costs.iter().map(|cost| cost.wall).collect::<Vec<_>>()})
        })
        .collect();
    report(options, nvcc, NAME, &results)
}

/// How much memory uploads and downloads of large objects take.
pub fn large(options: &BenchOptions, nvcc: &Path) -> Result<()> {
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    let place = place(options, nvcc, dir.path())?;
    let mut results = Vec::new();
    for mib in SIZES {
        let port = free_port()?;
        let blob = dir.path().join("blob");
        write_blob(&blob, mib)?;
        let text = format!(
            "asm(\".section .rodata\\n.incbin \\\"{}\\\"\\n.text\");\n",
            blob.display()
        );
        fs::write(dir.path().join("bench.cu"), text)?;
        let remote = format!("grpc://127.0.0.1:{port}|timeout=120");
        // No server runs yet, so the object waits for an uploader, whose memory is measured below.
        let (built, bytes) = place.run(place.compile("here", &remote))?;
        ensure!(
            bytes >= mib << 20,
            "the object is smaller than what is in it"
        );
        let folder = dir.path().join(format!("casd-{mib}"));
        let server = Casd::start_on(port, &folder, None, None)?;
        let up = place.upload("here", &remote)?;
        let (down, again) = place.run(place.compile("there", &remote))?;
        ensure!(again == bytes, "another object came back");
        let hits = place.remote_hits("there")?;
        println!(
            "{mib} MiB: upload {:.1} s, {} KiB at most; download {:.1} s, {} KiB at most; {hits} hits",
            up.wall, up.peak_kib, down.wall, down.peak_kib
        );
        results.push(json!({
            "object_bytes": bytes, "upload_wall_s": up.wall, "upload_peak_kib": up.peak_kib,
            "download_wall_s": down.wall, "download_peak_kib": down.peak_kib,
            "compile_wall_s": built.wall, "hits_from_the_server": hits,
        }));
        drop(server);
        for name in ["here".to_owned(), "there".to_owned(), format!("casd-{mib}")] {
            place.remove(&name)?;
        }
    }
    report(options, nvcc, LARGE, &results)
}

/// How long many small blobs take to casd and redis and back.
pub fn small(options: &BenchOptions, nvcc: &Path) -> Result<()> {
    casd::install()?;
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    // The whole workspace, so that its dependencies are built already.
    let build = ["--release", "--workspace", "--example", "small_blobs"];
    process::run(process::cargo("build").args(build))?;
    let program = repo::target_dir().join("release/examples/small_blobs");
    let server = Casd::start(&dir.path().join("casd"), None, None)?;
    let redis = Redis::start(dir.path())?;
    let mut remotes = vec![("casd", server.address())];
    if let Some(redis) = &redis {
        remotes.push(("redis", format!("redis://127.0.0.1:{}", redis.port)));
    }
    let mut results = Vec::new();
    for _ in 0..options.runs {
        for (name, remote) in &remotes {
            let mut command = Command::new(&program);
            let said = process::output(command.arg(remote).args(BLOBS))?;
            println!("{name}: {}", said.trim());
            let said: Value = serde_json::from_str(&said)?;
            results.push(json!({"server": name, "run": said}));
        }
    }
    report(options, nvcc, SMALL, &results)
}

/// Bytes that no compressor makes smaller.
fn write_blob(path: &Path, mib: u64) -> Result<()> {
    let mut file = fs::File::create(path)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut piece = vec![0_u8; 1 << 20];
    for _ in 0..mib {
        for word in piece.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&piece)?;
    }
    Ok(())
}
