//! Shows what warpcc does, in a minute: one file is compiled by nvcc, then by warpcc into an empty cache, then again. Prints
//! the costs, the cache hits, and whether the objects are the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::measure::{self, Cost};
use crate::{process, programs, repo};

const ARCHITECTURES: [&str; 3] = ["80", "90", "100"];
const OBJECT: &str = "demo.o";

/// The programs that the demo compares.
#[derive(clap::Args)]
pub struct DemoOptions {
    /// The nvcc to compare with [default: from WARPCC_NVCC, PATH or CUDA_HOME, else a toolkit from PyPI]
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// A warpcc that is already built (else this checkout's is)
    #[arg(long, value_name = "PATH")]
    warpcc: Option<PathBuf>,
}

/// `cargo xtask demo`.
pub fn main(options: &DemoOptions) -> Result<()> {
    let nvcc = programs::nvcc(options.nvcc.as_deref())?;
    let warpcc = programs::launcher(options.warpcc.as_deref())?;
    let demo = Demo::prepare(nvcc, warpcc)?;
    println!("compiling demo.cu for sm_{}", ARCHITECTURES.join(", sm_"));
    println!("with {}\n", demo.nvcc.display());

    let theirs = measure::run(&mut demo.nvcc())?;
    demo.set_aside("nvcc.o")?;
    println!("{}", row("", "wall", "CPU", "against nvcc"));
    println!("{}", measured("nvcc", &theirs, &theirs));

    // `run` is the same compilation as `warpcc nvcc`, with a report.
    let cold = measure::run(&mut demo.run_with_account())?;
    let cold_object = demo.set_aside("warpcc-cold.o")?;
    println!("{}", measured("warpcc, empty cache", &cold, &theirs));
    let after_cold = demo.stats()?;

    let warm = measure::run(&mut demo.launch())?;
    let warm_object = demo.set_aside("warpcc-again.o")?;
    println!("{}\n", measured("warpcc, again", &warm, &theirs));
    let after_warm = demo.stats()?;

    println!("empty cache:  {}", found(&Value::Null, &after_cold));
    println!("again:        {}", found(&after_cold, &after_warm));

    let reference = demo.reference()?;
    same(&reference, &cold_object)?;
    same(&reference, &warm_object)?;
    println!("objects:      both identical to that of nvcc --keep\n");
    println!("what nvcc would do, and what each step took:");
    for account in [demo.graph(), demo.table()] {
        let made = if account.exists() {
            ""
        } else {
            "  (not written)"
        };
        println!("  {}{made}", account.display());
    }
    Ok(())
}

/// The folder the demo works in, and the programs.
struct Demo {
    nvcc: PathBuf,
    warpcc: PathBuf,
    dir: PathBuf,
}

impl Demo {
    /// An empty folder with the source in it.
    fn prepare(nvcc: PathBuf, warpcc: PathBuf) -> Result<Self> {
        let dir = repo::target_dir().join("demo");
        if dir.exists() {
            fs::remove_dir_all(&dir)
                .with_context(|| format!("failed to empty {}", dir.display()))?;
        }
        fs::create_dir_all(dir.join("keep"))
            .with_context(|| format!("failed to create {}", dir.display()))?;
        fs::write(dir.join("demo.cu"), include_str!("../demo/demo.cu"))
            .context("failed to write the source")?;
        Ok(Self { nvcc, warpcc, dir })
    }

    fn nvcc(&self) -> Command {
        self.here(&self.nvcc, &[])
    }

    fn launch(&self) -> Command {
        self.here(&self.warpcc, &[self.nvcc.as_path()])
    }

    fn run_with_account(&self) -> Command {
        let (graph, table) = (self.graph(), self.table());
        let words = [
            Path::new("run"),
            Path::new("--graph"),
            &graph,
            Path::new("--table"),
            &table,
            Path::new("--nvcc"),
            &self.nvcc,
            Path::new("--"),
        ];
        self.here(&self.warpcc, &words)
    }

    /// A command in our folder and with our cache, ending in the compiler's arguments.
    fn here(&self, program: &Path, words: &[&Path]) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.dir)
            .env("WARPCC_DIR", self.dir.join("cache"));
        command.env("WARPCC_NVCC", &self.nvcc).args(words);
        command.args(programs::gencode(&ARCHITECTURES.map(str::to_owned)));
        command.args(["-std=c++17", "-O3", "-c", "demo.cu", "-o", OBJECT]);
        command
    }

    /// The object of `nvcc --keep`, whose bytes do not change from run to run.
    fn reference(&self) -> Result<PathBuf> {
        process::run(self.nvcc().args(["--keep", "--keep-dir", "keep"]))?;
        self.set_aside("reference.o")
    }

    fn set_aside(&self, name: &str) -> Result<PathBuf> {
        let to = self.dir.join(name);
        fs::rename(self.dir.join(OBJECT), &to).with_context(|| {
            format!("the compiler succeeded, but there is no object for {name}")
        })?;
        Ok(to)
    }

    fn stats(&self) -> Result<Value> {
        let mut command = Command::new(&self.warpcc);
        command
            .env("WARPCC_DIR", self.dir.join("cache"))
            .args(["stats", "--json"]);
        let text = process::output(&mut command)?;
        serde_json::from_str(&text).context("`warpcc stats --json` did not write JSON")
    }

    fn graph(&self) -> PathBuf {
        self.dir.join("graph.svg")
    }

    fn table(&self) -> PathBuf {
        self.dir.join("table.csv")
    }
}

fn measured(name: &str, cost: &Cost, theirs: &Cost) -> String {
    let ratio = theirs.wall / cost.wall;
    let ratio = match ratio {
        r if r >= 20.0 => format!("{r:.0} times as fast"),
        r if (0.995..1.005).contains(&r) => "1".to_owned(),
        r => format!("{r:.2} times as fast"),
    };
    row(
        name,
        &format!("{:.3} s", cost.wall),
        &format!("{:.2} s", cost.cpu()),
        &ratio,
    )
}

fn row(name: &str, wall: &str, cpu: &str, ratio: &str) -> String {
    format!("{name:<20} {wall:>10} {cpu:>10}   {ratio}")
}

/// The cache hits between two states of the statistics, in words.
fn found(before: &Value, after: &Value) -> String {
    let grown = |pointer: &str| {
        let count = |stats: &Value| stats.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        count(after).saturating_sub(count(before))
    };
    let mut words = Vec::new();
    for (kind, text) in [
        ("direct_hits", "answered whole, without starting nvcc"),
        ("built", "built step by step"),
        ("fallbacks", "FELL BACK to plain nvcc"),
        ("failed", "FAILED"),
    ] {
        if grown(&format!("/invocations/{kind}")) > 0 {
            words.push(text.to_owned());
        }
    }
    let tools = after.get("steps").and_then(Value::as_object);
    let mut steps = Vec::new();
    for tool in tools.into_iter().flat_map(serde_json::Map::keys) {
        let (hits, misses) = (
            grown(&format!("/steps/{tool}/hits")),
            grown(&format!("/steps/{tool}/misses")),
        );
        if hits + misses > 0 {
            steps.push(format!("{hits} of {} {tool}", hits + misses));
        }
    }
    if !steps.is_empty() {
        words.push(format!("found {}", steps.join(", ")));
    }
    let reasons = after.get("fallback_reasons").and_then(Value::as_object);
    for reason in reasons.into_iter().flat_map(serde_json::Map::keys) {
        words.push(format!("because: {reason}"));
    }
    if words.is_empty() {
        "nothing was counted".to_owned()
    } else {
        words.join("; ")
    }
}

fn same(expected: &Path, found: &Path) -> Result<()> {
    let read =
        |file: &Path| fs::read(file).with_context(|| format!("failed to read {}", file.display()));
    if read(expected)? != read(found)? {
        bail!(
            "{} differs from {}: this is a bug",
            found.display(),
            expected.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hits_are_the_difference() {
        let cold = json!({"invocations": {"direct_hits": 0, "built": 1},
                          "steps": {"cicc": {"hits": 0, "misses": 3}}});
        let warm = json!({"invocations": {"direct_hits": 1, "built": 1},
                          "steps": {"cicc": {"hits": 0, "misses": 3}}});
        assert_eq!(
            found(&Value::Null, &cold),
            "built step by step; found 0 of 3 cicc"
        );
        assert_eq!(found(&cold, &warm), "answered whole, without starting nvcc");
        assert_eq!(found(&warm, &warm), "nothing was counted");
    }
}
