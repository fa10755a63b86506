//! Measures cold builds of a project of several files, on this machine alone and with one and two workers of a cluster.
//!
//! Everything runs on this machine: every worker is a buildbox-casd with one job and a share of a processor that the kernel
//! enforces, the user's machine has a share too, and the tests' dispatcher hands out the actions. So the
//! workers' processor time is not the user's, and two workers compute twice as much as one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::machine_info;
use super::options::BenchOptions;
use super::servers::{Casd, Dispatcher, Share};
use crate::measure::{self, Cost};
use crate::suite::casd;
use crate::{process, programs, repo, workloads};

/// The benchmark's name for `--only`.
pub const NAME: &str = "cluster";

/// Files of llama.cpp's ggml-cuda.
const FILES: [&str; 3] = ["clamp", "fill", "scale"];

/// Shares of one processor, in percent: the user's machine, and each worker.
const HERE: u32 = 50;
const THERE: u32 = 25;

/// Numbers of workers; 0 is this machine alone.
const WORKERS: [usize; 3] = [0, 1, 2];

/// Measures, shows and writes.
pub fn main(options: &BenchOptions, nvcc: &Path) -> Result<()> {
    casd::install()?;
    let warpcc = programs::warpcc(options.warpcc.as_deref())?;
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    let project = Project::new(dir.path(), nvcc, &warpcc, &options.archs)?;
    let share = Share::new("here", HERE)?;
    let mut reference = None;
    let mut rows = Vec::new();
    for round in 1..=options.runs {
        for workers in WORKERS {
            let row = if workers == 0 {
                project.build(&share, None, "alone")?
            } else {
                with_workers(&project, &share, workers)?
            };
            ensure!(
                row.objects == *reference.get_or_insert_with(|| row.objects.clone()),
                "{workers} workers: the objects are not those of a local build"
            );
            println!(
                "round {round}, {workers} workers: {:.1} s, {:.1} s of the machine's processor, \
                 {} of {} steps that may leave ran there, actions {:?}",
                row.cost.wall,
                row.cost.cpu(),
                row.executed,
                row.may_leave,
                row.actions
            );
            rows.push(json!({
                "round": round,
                "workers": workers,
                "wall_s": row.cost.wall,
                "cpu_s_of_the_users_machine": row.cost.cpu(),
                "steps": row.steps,
                "steps_that_may_leave": row.may_leave,
                "executed_by_workers": row.executed,
                "actions_of_each_worker": row.actions,
            }));
        }
    }
    let report = json!({
        "name": NAME,
        "date": machine_info::date()?,
        "machine": machine_info::machine(),
        "toolkit": machine_info::toolkit(nvcc)?,
        "project": "llama.cpp, ggml-cuda",
        "files": FILES,
        "architectures": options.archs,
        "share_of_one_processor_percent": { "users_machine": HERE, "each_worker": THERE },
        "objects_equal_in_every_run": true,
        "runs": rows,
    });
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| repo::root().join("docs/bench"));
    save(&out, "cluster.json", &report)?;
    let steps = out.join("cluster-steps.json");
    fs::copy(project.dir.join("alone.json"), &steps).context("failed to keep the steps")?;
    println!("{}", steps.display());
    Ok(())
}

/// Writes `report` below `out`.
pub fn save(out: &Path, name: &str, report: &Value) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("failed to create {}", out.display()))?;
    let file = out.join(name);
    let text = serde_json::to_string_pretty(report).context("failed to write JSON")? + "\n";
    fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}

fn with_workers(project: &Project, share: &Share, workers: usize) -> Result<ClusterRow> {
    let folder = tempfile::tempdir().context("failed to create a folder for the servers")?;
    let front = Casd::start(&folder.path().join("front"), None, None)?;
    let shares: Vec<Share> = (0..workers)
        .map(|number| Share::new(&format!("worker{number}"), THERE))
        .collect::<Result<_>>()?;
    let all: Vec<Casd> = shares
        .iter()
        .enumerate()
        .map(|(number, share)| {
            let folder = folder.path().join(number.to_string());
            Casd::start(&folder, Some(&front), Some(share))
        })
        .collect::<Result<_>>()?;
    let dispatcher = Dispatcher::start(&front, &all, Duration::ZERO)?;
    // The toolchain is uploaded before the measurement: once for a cluster, not once for a build.
    project.warm(&dispatcher.address(), workers)?;
    let name = format!("with-{workers}");
    let mut row = project.build(share, Some(&dispatcher.address()), &name)?;
    row.actions = dispatcher.stop()?;
    drop(all);
    Ok(row)
}

/// The result of one build.
struct ClusterRow {
    cost: Cost,
    objects: BTreeMap<String, Vec<u8>>,
    steps: usize,
    may_leave: usize,
    executed: u64,
    /// The number of actions of each worker, including those that brought the toolchain.
    actions: Vec<u64>,
}

struct Project {
    dir: PathBuf,
    warpcc: PathBuf,
    nvcc: PathBuf,
}

impl Project {
    fn new(dir: &Path, nvcc: &Path, warpcc: &Path, archs: &[String]) -> Result<Self> {
        let sources = workloads::fetch::workload("llama.cpp")?;
        let ggml = sources.ancestors().nth(2).context("ggml-cuda is in ggml")?;
        let toolkit = dir.join("toolkit");
        workloads::toolkit::make(nvcc, &toolkit)?;
        let nvcc = toolkit.join("bin/nvcc");
        let flags = format!(
            "-std=c++17 -O3 -use_fast_math -extended-lambda -compress-mode=size {} -I{include} \
             -I{src} -I{src}/ggml-cuda -DGGML_CUDA_PEER_MAX_BATCH_SIZE=128 -DNDEBUG -Xcompiler=-fPIC",
            programs::gencode(archs).join(" "),
            include = ggml.join("include").display(),
            src = ggml.join("src").display(),
        );
        let mut text = format!(
            "rule cu\n command = {} {} {flags} -c $in -o $out\n",
            warpcc.display(),
            nvcc.display()
        );
        for file in FILES {
            let source = sources.join(format!("{file}.cu"));
            text += &format!("build {file}.o: cu {}\n", source.display());
        }
        fs::write(dir.join("build.ninja"), text)?;
        Ok(Self {
            dir: dir.to_owned(),
            warpcc: warpcc.to_owned(),
            nvcc,
        })
    }

    /// A command with a cache of its own, and slots of its own, because others compile on this machine, too.
    fn dressed(&self, program: &Path, name: &str, executor: Option<&str>) -> Command {
        let mut command = Command::new(program);
        command
            .env("WARPCC_DIR", self.dir.join(format!("cache-{name}")))
            .env("WARPCC_RUNTIME_DIR", self.dir.join("runtime"))
            .env("WARPCC_BUILD_ID", name)
            .env("WARPCC_CONFIG", "/dev/null")
            .env("WARPCC_JOBS", "1");
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "WARPCC_REMOTE"] {
            command.env_remove(name);
        }
        if let Some(executor) = executor {
            command
                .env("WARPCC_EXECUTOR", executor)
                .env("WARPCC_EXECUTOR_ALWAYS", "1");
        }
        command
    }

    /// Compiles something small until every worker has had every tool.
    fn warm(&self, executor: &str, workers: usize) -> Result<()> {
        for number in 0..workers {
            let file = self.dir.join(format!("warm{number}.cu"));
            // The workers get the actions in turn: one more action in every file shifts the tools between them.
            fs::write(&file, format!("__global__ void k{number}() {{}}\n"))?;
            let more = ["-arch=sm_80", "-gencode=arch=compute_90,code=sm_90"];
            let mut command = self.dressed(&self.warpcc, "toolchain", Some(executor));
            command.current_dir(&self.dir).arg(&self.nvcc).arg("-c");
            command.arg(&file).args(["-o", "warm"]);
            process::run(command.arg(more[number % 2]))?;
        }
        fs::remove_file(self.dir.join("warm")).context("nothing was compiled")
    }

    /// Builds with an empty cache.
    fn build(&self, share: &Share, executor: Option<&str>, name: &str) -> Result<ClusterRow> {
        let cache = self.dir.join(format!("cache-{name}"));
        if cache.exists() {
            fs::remove_dir_all(&cache)?;
        }
        for file in FILES {
            let _ = fs::remove_file(self.dir.join(format!("{file}.o")));
        }
        let mut ninja = self.dressed(Path::new("ninja"), name, executor);
        ninja
            .args(["-j", &FILES.len().to_string(), "-C"])
            .arg(&self.dir);
        let cost = measure::run(&mut share.confine(&ninja))?;
        let ask = |words: &[&str]| -> Result<(String, Value)> {
            let text = process::output(self.dressed(&self.warpcc, name, None).args(words))?;
            let value = serde_json::from_str(&text).context("not JSON")?;
            Ok((text, value))
        };
        let (text, report) = ask(&["report", "--json", "--build", name])?;
        fs::write(self.dir.join(format!("{name}.json")), &text)?;
        let (_, stats) = ask(&["stats", "--json"])?;
        let calls = report["calls"].as_array().into_iter().flatten();
        let tasks: Vec<&Value> = calls
            .flat_map(|call| call["tasks"].as_array())
            .flatten()
            .collect();
        let leaves = ["cudafe++", "cicc", "ptxas", "fatbinary"];
        let may_leave = tasks
            .iter()
            .filter(|task| leaves.contains(&task["tool"].as_str().unwrap_or("")));
        let mut objects = BTreeMap::new();
        for file in FILES {
            let name = format!("{file}.o");
            objects.insert(name.clone(), fs::read(self.dir.join(name))?);
        }
        Ok(ClusterRow {
            cost,
            objects,
            steps: tasks.len(),
            may_leave: may_leave.count(),
            executed: stats["remote"]["executed"].as_u64().unwrap_or(0),
            actions: Vec::new(),
        })
    }
}
