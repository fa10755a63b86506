//! Asks clangd which architectures it knows: each release knows those of its time, and an unknown one is an error in every file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::bail;
use warpcc_engine::search_path::is_executable;

use super::database::CompileCommand;
use super::translate::{Reading, Source};
use crate::locate;
use crate::process_context::ProcessContext;

/// The name of the message about an unknown architecture, in all releases.
const UNKNOWN: &str = "drv_cuda_bad_gpu_arch";

/// A clangd.
pub struct Clangd {
    program: PathBuf,
}

impl Clangd {
    /// The clangd that the user names, or the one in PATH.
    ///
    /// # Errors
    /// The named one is no program.
    pub fn find(named: Option<&Path>, context: &ProcessContext) -> anyhow::Result<Option<Self>> {
        let path = context.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        let name = named.map_or(OsStr::new("clangd"), Path::as_os_str);
        let found = locate::compiler(name, path, &context.ourselves);
        let found = found.map(|found| context.directory.join(found));
        match found.filter(|file| is_executable(file)) {
            Some(program) => Ok(Some(Self { program })),
            None if named.is_some() => bail!("{} is not a program", name.display()),
            None => Ok(None),
        }
    }

    /// For each architecture that a source is compiled for, the name that clangd knows: its own, or the newest before it.
    /// `None` where clangd knows none of them.
    pub fn choose_architectures(&self, readings: &[Reading]) -> BTreeMap<String, Option<String>> {
        let sources = readings.iter().flat_map(|reading| match reading {
            Reading::Sources(sources) => sources.as_slice(),
            Reading::Other(_) | Reading::Refused { .. } => &[],
        });
        let mut wanted: BTreeMap<String, &Source> = BTreeMap::new();
        for source in sources {
            if let Some(architecture) = source.architecture() {
                wanted.entry(architecture.to_owned()).or_insert(source);
            }
        }
        let choose = |(name, source): (String, &Source)| {
            let instead = candidates(&name, &source.nvcc).into_iter();
            let known = instead.into_iter().find(|name| self.knows(name));
            (name, known)
        };
        wanted.into_iter().map(choose).collect()
    }

    /// Whether clangd takes an architecture, for an empty source. A clangd that cannot be asked takes all.
    fn knows(&self, architecture: &str) -> bool {
        self.says(architecture)
            .is_none_or(|text| !text.contains(UNKNOWN))
    }

    fn says(&self, architecture: &str) -> Option<String> {
        let folder = tempfile::tempdir().ok()?;
        let words = [
            "clang++",
            "-x",
            "cuda",
            "--cuda-device-only",
            "-nocudainc",
            "-nocudalib",
        ];
        let mut words: Vec<String> = words.map(str::to_owned).into();
        words.extend([format!("--cuda-gpu-arch={architecture}"), "x.cu".into()]);
        let entry = CompileCommand {
            directory: folder.path().to_str()?.to_owned(),
            file: "x.cu".into(),
            arguments: Some(words),
            command: None,
            output: None,
        };
        fs::write(folder.path().join("x.cu"), "").ok()?;
        let database = serde_json::to_vec(&[entry]).ok()?;
        fs::write(folder.path().join("compile_commands.json"), database).ok()?;
        let mut at = std::ffi::OsString::from("--compile-commands-dir=");
        at.push(folder.path());
        let output = Command::new(&self.program)
            .args(["--check=x.cu", "--enable-config=0"])
            .arg(at)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The architecture, then what stands in its place: its number alone, and those before it that nvcc knows, newest first.
fn candidates(name: &str, nvcc: &Path) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let Some(number) = number_of(name) else {
        return names;
    };
    let listed = Command::new(nvcc).arg("--list-gpu-code").output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.unwrap_or_default();
    let numbers: BTreeSet<u32> = listed.lines().filter_map(number_of).collect();
    let before = numbers.into_iter().rev().filter(|one| *one < number);
    let others = std::iter::once(number).chain(before);
    names.extend(others.map(|one| format!("sm_{one}")));
    names.dedup();
    names
}

/// `90` of `sm_90a`.
fn number_of(name: &str) -> Option<u32> {
    let name = name.strip_prefix("sm_")?;
    let digits = name.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().ok()
}
