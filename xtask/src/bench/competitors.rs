//! The contenders: how to start each one, and how to fill and empty its cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{measure, process, programs};

const OBJECT: &str = "bench.o";

/// A way to compile the one file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    Nvcc,
    NvccThreads,
    WarpccCold,
    WarpccNew,
    WarpccSerial,
    WarpccKnown,
    WarpccHit,
    WarpccCutOff,
    CcacheHit,
    SccacheHit,
    KacheHit,
}

use Contender::{
    CcacheHit, KacheHit, Nvcc, NvccThreads, SccacheHit, WarpccCold, WarpccCutOff, WarpccHit,
    WarpccKnown, WarpccNew, WarpccSerial,
};

/// nvcc first: the others are compared with it.
const ALL: [Contender; 11] = [
    Nvcc,
    NvccThreads,
    WarpccCold,
    WarpccNew,
    WarpccSerial,
    WarpccKnown,
    WarpccHit,
    WarpccCutOff,
    CcacheHit,
    SccacheHit,
    KacheHit,
];

/// nvcc and the contenders in `names`; all contenders when it is empty.
pub fn chosen(names: &[String]) -> Result<Vec<Contender>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| ALL.iter().all(|one| one.name() != **name))
    {
        let known = ALL.map(|contender| contender.name()).join(", ");
        bail!("there is no contender `{unknown}`; the names are: {known}");
    }
    let asked = |one: &Contender| names.is_empty() || names.iter().any(|name| name == one.name());
    Ok(ALL
        .into_iter()
        .filter(|one| *one == Nvcc || asked(one))
        .collect())
}

/// The contenders of a rebuild after an edit: `nvcc -t 0` and those that have compiled the file before.
pub fn rebuilding() -> [Contender; 5] {
    [NvccThreads, WarpccHit, WarpccCutOff, CcacheHit, SccacheHit]
}

/// Ends the servers that contenders leave behind.
pub fn stop_servers(place: &Workplace, present: &[Contender]) {
    let stop: &[(Contender, &[&str])] = &[
        (SccacheHit, &["--stop-server"]),
        (KacheHit, &["daemon", "stop"]),
    ];
    for (contender, words) in stop
        .iter()
        .filter(|(contender, _)| present.contains(contender))
    {
        if !process::succeeds(contender.bare(place).args(*words)) {
            eprintln!(
                "{}: its server was not running, or could not be stopped",
                contender.name()
            );
        }
    }
}

/// The folder for all files of a measurement, and the programs.
pub struct Workplace {
    dir: PathBuf,
    pub nvcc: PathBuf,
    warpcc: Option<PathBuf>,
    archs: Vec<String>,
}

impl Workplace {
    pub fn new(dir: &Path, nvcc: PathBuf, warpcc: Option<PathBuf>, archs: &[String]) -> Self {
        Self {
            dir: dir.to_path_buf(),
            nvcc,
            warpcc,
            archs: archs.to_vec(),
        }
    }

    pub fn source(&self) -> PathBuf {
        self.dir.join("bench.cu")
    }

    /// The arguments that every contender gets.
    pub fn arguments(&self) -> Vec<String> {
        self.arguments_for("bench.cu")
    }

    fn arguments_for(&self, source: &str) -> Vec<String> {
        let fixed = ["-std=c++17", "-O3", "-c", source, "-o", OBJECT];
        programs::gencode(&self.archs)
            .into_iter()
            .chain(fixed.map(str::to_owned))
            .collect()
    }

    /// The compilation whose object warpcc's must equal. `-t 0` makes the same bytes sooner.
    pub fn reference(&self) -> Command {
        let mut command = NvccThreads.command(self);
        command.args(["--keep", "--keep-dir", "."]);
        command
    }

    /// The object just made, removed so that the next contender must make its own.
    pub fn take_object(&self) -> Result<Vec<u8>> {
        let file = self.dir.join(OBJECT);
        let bytes = fs::read(&file).context("the compiler succeeded without an object")?;
        fs::remove_file(&file).context("failed to remove the object")?;
        Ok(bytes)
    }
}

impl Contender {
    pub fn name(&self) -> &'static str {
        match self {
            Nvcc => "nvcc",
            NvccThreads => "nvcc-t0",
            WarpccCold => "warpcc-cold",
            WarpccNew => "warpcc-new",
            WarpccSerial => "warpcc-serial",
            WarpccKnown => "warpcc-known",
            WarpccHit => "warpcc-hit",
            WarpccCutOff => "warpcc-cutoff",
            CcacheHit => "ccache-hit",
            SccacheHit => "sccache-hit",
            KacheHit => "kache-hit",
        }
    }

    pub fn what(&self) -> &'static str {
        match self {
            Nvcc => "nvcc",
            NvccThreads => "nvcc -t 0",
            WarpccCold => "warpcc, empty cache",
            WarpccNew => "warpcc, new file",
            WarpccSerial => "warpcc, new file, one step at a time",
            WarpccKnown => "warpcc, seen before",
            WarpccHit => "warpcc, again",
            WarpccCutOff => "warpcc with early_cutoff, again",
            CcacheHit => "ccache, again",
            SccacheHit => "sccache, again",
            KacheHit => "kache, again",
        }
    }

    pub fn is_ours(&self) -> bool {
        matches!(
            self,
            WarpccCold | WarpccNew | WarpccSerial | WarpccKnown | WarpccHit | WarpccCutOff
        )
    }

    /// Whether the contender is on this machine.
    pub fn is_here(&self, place: &Workplace) -> bool {
        self.program(place).is_some()
    }

    pub fn version(&self, place: &Workplace) -> Option<String> {
        let text = process::output(self.bare(place).arg("--version")).ok()?;
        let line = match self {
            Nvcc | NvccThreads => text.lines().last(),
            _ => text.lines().next(),
        };
        line.map(|line| line.trim().to_owned())
    }

    /// Fills the cache of a contender that is measured when it hits. Compiles twice: some store the
    /// data for a hit only when they see a file again.
    pub fn warm(&self, place: &Workplace) -> Result<()> {
        if matches!(
            self,
            WarpccHit | WarpccCutOff | WarpccKnown | CcacheHit | SccacheHit | KacheHit
        ) {
            for _ in 0..2 {
                measure::run(&mut self.command(place))
                    .with_context(|| format!("failed to warm {}", self.name()))?;
                place.take_object()?;
            }
        }
        Ok(())
    }

    /// Empties the cache of a contender that is measured when it misses. Has it compile another file where only the file is
    /// to be new.
    pub fn prepare(&self, place: &Workplace) -> Result<()> {
        let cache = self.cache(place);
        let misses = matches!(self, WarpccCold | WarpccNew | WarpccSerial);
        if misses && cache.exists() {
            fs::remove_dir_all(&cache).context("failed to empty the cache")?;
        }
        if misses && *self != WarpccCold {
            // The toolkit is hashed once ever, not for each file.
            let other = place.dir.join("other.cu");
            fs::write(&other, "__global__ void other() {}\n").context("failed to write")?;
            let mut command = self.bare(place);
            command
                .arg(&place.nvcc)
                .args(place.arguments_for("other.cu"));
            measure::run(&mut command)?;
            place.take_object()?;
        }
        Ok(())
    }

    /// The whole compilation.
    pub fn command(&self, place: &Workplace) -> Command {
        let mut command = self.bare(place);
        match self {
            Nvcc => {}
            NvccThreads => {
                command.args(["-t", "0"]);
            }
            _ => {
                command.arg(&place.nvcc);
            }
        }
        command.args(place.arguments());
        command
    }

    /// Asks warpcc what it has done in this workplace so far, as JSON.
    pub fn statistics(&self, place: &Workplace) -> Command {
        let mut command = self.bare(place);
        command.args(["stats", "--json"]);
        command
    }

    /// The program in our folder, with a cache of its own there and nothing of the user's.
    fn bare(&self, place: &Workplace) -> Command {
        let program = self.program(place).unwrap_or_else(|| self.name().into());
        let mut command = Command::new(program);
        command.current_dir(&place.dir);
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
            command.env_remove(name);
        }
        let cache = self.cache(place);
        match self {
            Nvcc | NvccThreads => {}
            WarpccCold | WarpccNew | WarpccSerial | WarpccHit | WarpccCutOff | WarpccKnown => {
                command
                    .env("WARPCC_DIR", cache)
                    .env("WARPCC_NVCC", &place.nvcc);
                if *self == WarpccSerial {
                    command.env("WARPCC_JOBS", "1");
                }
                if *self == WarpccCutOff {
                    command.env("WARPCC_EARLY_CUTOFF", "1");
                }
                if *self == WarpccKnown {
                    // Results are not used, but the module id and the stub are remembered.
                    command.env("WARPCC_RECACHE", "1");
                }
            }
            CcacheHit => {
                command.env("CCACHE_DIR", cache);
            }
            SccacheHit => {
                command.env("SCCACHE_SERVER_UDS", place.dir.join("sccache.socket"));
                command.env("SCCACHE_DIR", cache);
            }
            KacheHit => {
                command.env("KACHE_RUNTIME_DIR", place.dir.join("kache-runtime"));
                command.env("KACHE_CACHE_DIR", cache);
            }
        }
        command
    }

    fn program(&self, place: &Workplace) -> Option<PathBuf> {
        match self {
            Nvcc | NvccThreads => Some(place.nvcc.clone()),
            WarpccCold | WarpccNew | WarpccSerial | WarpccKnown | WarpccHit | WarpccCutOff => {
                place.warpcc.clone()
            }
            CcacheHit => process::on_path("ccache"),
            SccacheHit => process::on_path("sccache"),
            KacheHit => process::on_path("kache"),
        }
    }

    fn cache(&self, place: &Workplace) -> PathBuf {
        place.dir.join(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvcc_is_always_first() {
        assert_eq!(chosen(&[]).expect("everyone").len(), ALL.len());
        assert_eq!(
            chosen(&["warpcc-hit".to_owned()]).expect("one"),
            [Nvcc, WarpccHit]
        );
        let error = chosen(&["gcc".to_owned()]).expect_err("gcc does not compete");
        assert!(error.to_string().contains("warpcc-cold"), "{error}");
    }
}
