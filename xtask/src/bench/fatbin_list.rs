//! Measures how long `warpcc fatbin list` takes for a large library, against cuobjdump, in one run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::machine_info;
use super::options::BenchOptions;
use crate::measure::{self, Cost};
use crate::{pip, process, programs, repo};

/// The benchmark's name for `--only`.
pub const NAME: &str = "fatbin-list";

/// 1,498 images in 344 MB; the same wheel as in crates/fatbin/tests/wheels.
const WHEEL: &str = "nvidia-nccl-cu13==2.32.3";
const SHA256: &str = "1459723080ac889d73a26edfa3e04383a7928ab31ac8f0ec43b3ea9548b04ff3";
const FILE: &str = "nvidia_nccl_cu13-2.32.3-";

/// Measures, shows and writes.
pub fn main(options: &BenchOptions, nvcc: &Path) -> Result<()> {
    let real = nvcc.canonicalize();
    let real = real.with_context(|| format!("failed to find {}", nvcc.display()))?;
    let cuobjdump = real.with_file_name("cuobjdump");
    if !process::is_executable(&cuobjdump) {
        bail!(
            "{} is not there: name an nvcc of a toolkit that has it with --nvcc",
            cuobjdump.display()
        );
    }
    let warpcc = programs::launcher(options.warpcc.as_deref())?;
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    let library = match &options.library {
        Some(library) => library.clone(),
        None => unpack(&wheel()?, dir.path())?,
    };
    let ours = || {
        let mut command = Command::new(&warpcc);
        command.args(["fatbin", "list"]).arg(&library);
        command
    };
    let theirs = || {
        let mut command = Command::new(&cuobjdump);
        command.args(["-all", "-lelf", "-lptx"]).arg(&library);
        command
    };
    // Afterwards both read from memory.
    measure::run(&mut ours())?;
    let (mut our_costs, mut their_costs) = (Vec::new(), Vec::new());
    for round in 1..=options.runs {
        let (our, their) = (measure::run(&mut ours())?, measure::run(&mut theirs())?);
        println!(
            "round {round}: warpcc {:.3} s, cuobjdump {:.3} s",
            our.wall, their.wall
        );
        our_costs.push(our);
        their_costs.push(their);
    }
    let (our, their) = (Cost::median(&our_costs), Cost::median(&their_costs));
    println!(
        "median: warpcc {:.3} s, cuobjdump {:.3} s: {:.1} times as fast",
        our.wall,
        their.wall,
        their.wall / our.wall
    );
    let walls = |costs: &[Cost]| costs.iter().map(|cost| cost.wall).collect::<Vec<_>>();
    let report = json!({
        "name": NAME,
        "date": machine_info::date()?,
        "machine": machine_info::machine(),
        "toolkit": machine_info::toolkit(nvcc)?,
        "library": library.file_name().map(|name| name.to_string_lossy().into_owned()),
        "library_bytes": fs::metadata(&library).map_or(0, |meta| meta.len()),
        "commands": ["warpcc fatbin list", "cuobjdump -all -lelf -lptx"],
        "runs": options.runs,
        "statistic": "median",
        "warpcc_wall_s": our.wall,
        "warpcc_cpu_s": our.cpu(),
        "cuobjdump_wall_s": their.wall,
        "cuobjdump_cpu_s": their.cpu(),
        "times_as_fast_as_cuobjdump": their.wall / our.wall,
        "warpcc_wall_s_of_each_run": walls(&our_costs),
        "cuobjdump_wall_s_of_each_run": walls(&their_costs),
    });
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| repo::root().join("docs/bench"));
    fs::create_dir_all(&out).with_context(|| format!("failed to create {}", out.display()))?;
    let file = out.join(format!("{NAME}.json"));
    let text = serde_json::to_string_pretty(&report).context("failed to write JSON")? + "\n";
    fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}

/// The wheel, where the tests keep theirs, fetched once.
fn wheel() -> Result<PathBuf> {
    let folder = repo::toolkits_dir().join("wheels");
    fs::create_dir_all(&folder)
        .with_context(|| format!("failed to create {}", folder.display()))?;
    if let Some(found) = find(&folder)? {
        return Ok(found);
    }
    let new = tempfile::tempdir_in(&folder).context("failed to create a folder to load into")?;
    let requirements = new.path().join("requirements.txt");
    fs::write(&requirements, format!("{WHEEL} --hash=sha256:{SHA256}\n"))
        .context("failed to write pip's requirements")?;
    pip::download(&requirements, "manylinux_2_27_x86_64", new.path())?;
    let loaded = find(new.path())?.context("pip loaded no wheel")?;
    let place = folder.join(loaded.file_name().context("a wheel without a name")?);
    fs::rename(&loaded, &place).with_context(|| format!("failed to keep {}", place.display()))?;
    Ok(place)
}

fn find(folder: &Path) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(folder);
    let entries = entries.with_context(|| format!("failed to read {}", folder.display()))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(FILE) && name.ends_with(".whl"))
        }))
}

/// The library out of the wheel.
fn unpack(wheel: &Path, to: &Path) -> Result<PathBuf> {
    process::run(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(to),
    )?;
    let library = to.join("nvidia/nccl/lib/libnccl.so.2");
    if !library.is_file() {
        bail!("{} has no {}", wheel.display(), library.display());
    }
    Ok(library)
}
