//! What `warpcc rtc warm` is to compile: a TOML file (docs/rtc.md), read and checked whole before anything is compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;
use warpcc_rtc::{RealArch, Request, Target, Text};

/// The file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    targets: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    include: Vec<PathBuf>,
    #[serde(default)]
    preamble: Vec<PathBuf>,
    #[serde(default)]
    headers: BTreeMap<String, PathBuf>,
    #[serde(default)]
    kernel: Vec<Kernel>,
    #[serde(default)]
    ptx: Vec<Ptx>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernel {
    source: PathBuf,
    names: Vec<String>,
    #[serde(default)]
    parameters: Vec<String>,
    targets: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ptx {
    file: PathBuf,
    name: Option<String>,
    targets: Option<Vec<String>>,
}

/// All there is to compile.
#[derive(Debug)]
pub struct Manifest {
    /// What every kernel is compiled with.
    pub common: Request,
    /// One for each name, parameters and target.
    pub jobs: Vec<Job>,
}

/// One image to be made.
#[derive(Debug)]
pub enum Job {
    /// From a source.
    Kernel {
        /// As `KernelCache::get_image` takes it.
        parameters: String,
        /// The kernel.
        name: String,
        /// The text.
        source: String,
        /// For what.
        target: Target,
    },
    /// From PTX.
    Ptx {
        /// As `KernelCache::load_ptx` takes it.
        name: String,
        /// The text.
        text: Vec<u8>,
        /// For which GPU.
        target: RealArch,
    },
}

impl Manifest {
    /// Reads it, and every file that it names. Paths are relative to the manifest's folder.
    ///
    /// # Errors
    /// It says something that is not understood, or a file cannot be read.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of(&file, folder).with_context(|| format!("{}", path.display()))
    }

    fn of(file: &File, folder: &Path) -> anyhow::Result<Self> {
        let text_of = |path: &Path| {
            let path = folder.join(path);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        let targets = targets_of(&file.targets)?;
        let mut common = Request::new("", "", Target::Cubin(RealArch::new(0)));
        common.options = file
            .options
            .iter()
            .map(|option| option.as_str().into())
            .collect();
        common.include_folders = file.include.iter().map(|path| folder.join(path)).collect();
        for path in &file.preamble {
            common
                .preamble
                .push(Text::new(path.to_string_lossy(), text_of(path)?));
        }
        for (name, path) in &file.headers {
            common
                .headers
                .push(Text::new(name.as_str(), text_of(path)?));
        }
        let mut jobs = Vec::new();
        for kernel in &file.kernel {
            ensure!(
                !kernel.names.is_empty(),
                "{} has no names",
                kernel.source.display()
            );
            let source = text_of(&kernel.source)?;
            let own = kernel.targets.as_deref().map(targets_of).transpose()?;
            let none = [String::new()];
            let parameters = match kernel.parameters.as_slice() {
                [] => none.as_slice(),
                some => some,
            };
            for target in own.as_ref().unwrap_or(&targets) {
                for name in &kernel.names {
                    jobs.extend(parameters.iter().map(|parameters| Job::Kernel {
                        parameters: parameters.clone(),
                        name: name.clone(),
                        source: source.clone(),
                        target: *target,
                    }));
                }
            }
        }
        for ptx in &file.ptx {
            let own = ptx.targets.as_deref().map(targets_of).transpose()?;
            let path = folder.join(&ptx.file);
            let text =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = ptx
                .name
                .clone()
                .unwrap_or_else(|| ptx.file.to_string_lossy().into_owned());
            for target in own.as_ref().unwrap_or(&targets) {
                let Target::Cubin(arch) = target else {
                    anyhow::bail!(
                        "{name} is PTX, and can be compiled to machine code (sm_90) only, not {target}"
                    );
                };
                jobs.push(Job::Ptx {
                    name: name.clone(),
                    text: text.clone(),
                    target: *arch,
                });
            }
        }
        ensure!(
            !jobs.is_empty(),
            "there is nothing to compile: add [[kernel]] or [[ptx]]"
        );
        Ok(Self { common, jobs })
    }
}

fn targets_of(texts: &[String]) -> anyhow::Result<Vec<Target>> {
    ensure!(
        !texts.is_empty(),
        "targets is empty: write targets = [\"sm_90\"]"
    );
    texts
        .iter()
        .map(|text| Ok(text.parse::<Target>()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Manifest> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.cu"), "A").expect("written");
        std::fs::write(folder.path().join("a.ptx"), ".version 8.0").expect("written");
        std::fs::write(folder.path().join("m.toml"), text).expect("written");
        Manifest::read(&folder.path().join("m.toml"))
    }

    #[test]
    fn every_name_parameter_and_target_is_a_job() {
        let manifest = read(
            "targets = ['sm_80', 'sm_90']\noptions = ['-DA']\n[headers]\n'h.h' = 'a.cu'\n\
             [[kernel]]\nsource = 'a.cu'\nnames = ['k<int>', 'k<float>']\nparameters = ['1', '2']\n\
             [[kernel]]\nsource = 'a.cu'\nnames = ['l']\ntargets = ['compute_75']\n\
             [[ptx]]\nfile = 'a.ptx'\n",
        )
        .expect("understood");
        assert_eq!(manifest.jobs.len(), 2 * 2 * 2 + 1 + 2);
        assert_eq!(&*manifest.common.headers[0].text, "A");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "targets = ['sm_90']",
            "targets = []\n[[kernel]]\nsource = 'a.cu'\nnames = ['k']",
            "targets = ['90']\n[[kernel]]\nsource = 'a.cu'\nnames = ['k']",
            "targets = ['sm_90']\nunknown = 1\n[[kernel]]\nsource = 'a.cu'\nnames = ['k']",
            "targets = ['sm_90']\n[[kernel]]\nsource = 'missing.cu'\nnames = ['k']",
            "targets = ['sm_90']\n[[kernel]]\nsource = 'a.cu'\nnames = []",
            "targets = ['compute_90']\n[[ptx]]\nfile = 'a.ptx'",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
