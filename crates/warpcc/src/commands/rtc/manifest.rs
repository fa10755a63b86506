//! Reads the manifest of `warpcc rtc warm`: a TOML file (docs/rtc.md), checked whole before anything is compiled.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::Deserialize;
use warpcc_rtc::{CompileRequest, PrecompiledHeaders, RealArch, Target, Text};

/// The file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
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
    #[serde(default)]
    text: Vec<Content>,
    #[serde(default)]
    recorded: Vec<RecordedProgram>,
    #[serde(default)]
    recorded_ptx: Vec<RecordedPtx>,
}

/// A text that programs name by its id, as it was recorded (`warpcc_rtc`'s record.rs).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    id: String,
    text: String,
}

/// A recorded program, with all its options and headers. Texts are named by their ids.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedProgram {
    #[serde(rename = "id")]
    _id: String,
    name: String,
    target: String,
    source: String,
    #[serde(default)]
    preamble: Vec<Part>,
    #[serde(default)]
    headers: Vec<Part>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    include: Vec<PathBuf>,
    #[serde(default)]
    precompiled_headers: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedPtx {
    #[serde(rename = "id")]
    _id: String,
    name: String,
    target: String,
    text: String,
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

/// Everything to compile.
#[derive(Debug)]
pub struct Manifest {
    /// The parts of a request that all kernels share.
    pub common: CompileRequest,
    /// One for each name, parameters and target.
    pub jobs: Vec<ImageJob>,
}

/// One image to be made.
#[derive(Debug)]
pub enum ImageJob {
    /// From a source.
    Kernel {
        /// The parameters, as for `KernelCache::get_image`.
        parameters: String,
        /// The kernel.
        name: String,
        /// The text.
        source: String,
        /// The target to compile for.
        target: Target,
    },
    /// A program's request, as recorded.
    Recorded(CompileRequest),
    /// From PTX.
    Ptx {
        /// The name, as for `KernelCache::load_ptx`.
        name: String,
        /// The text.
        text: Vec<u8>,
        /// The GPU to compile for.
        target: RealArch,
    },
}

impl Manifest {
    /// Reads the manifest, and every file that it names. Paths are relative to the manifest's folder. `targets`, if there
    /// are any, replace the manifest's own for all kernels.
    ///
    /// # Errors
    /// The manifest has something that is not understood, or a file cannot be read.
    pub fn read(path: &Path, targets: &[Target]) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::from_file(&file, folder, targets).with_context(|| format!("{}", path.display()))
    }

    fn from_file(file: &File, folder: &Path, targets: &[Target]) -> anyhow::Result<Self> {
        let targets = match targets {
            [] if file.targets.is_empty() => Vec::new(),
            [] => targets_of(&file.targets)?,
            given => given.to_vec(),
        };
        let of_all = || -> anyhow::Result<Vec<Target>> {
            ensure!(
                !targets.is_empty(),
                "targets is empty: write targets = [\"sm_90\"]"
            );
            Ok(targets.clone())
        };
        let common = common(file, folder)?;
        let mut jobs = Vec::new();
        for kernel in &file.kernel {
            ensure!(
                !kernel.names.is_empty(),
                "{} has no names",
                kernel.source.display()
            );
            let source = text_of(folder, &kernel.source)?;
            let own = kernel.targets.as_deref().map(targets_of).transpose()?;
            let none = [String::new()];
            let parameters = match kernel.parameters.as_slice() {
                [] => none.as_slice(),
                some => some,
            };
            for target in &own.map_or_else(of_all, Ok)? {
                for name in &kernel.names {
                    jobs.extend(parameters.iter().map(|parameters| ImageJob::Kernel {
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
            for target in &own.map_or_else(of_all, Ok)? {
                let Target::Cubin(arch) = target else {
                    anyhow::bail!(
                        "{name} is PTX, and can be compiled to machine code (sm_90) only, not {target}"
                    );
                };
                jobs.push(ImageJob::Ptx {
                    name: name.clone(),
                    text: text.clone(),
                    target: *arch,
                });
            }
        }
        jobs.extend(recorded(file, folder, &targets)?);
        ensure!(
            !jobs.is_empty(),
            "there is nothing to compile: add [[kernel]] or [[ptx]]"
        );
        Ok(Self { common, jobs })
    }
}

fn text_of(folder: &Path, path: &Path) -> anyhow::Result<String> {
    let path = folder.join(path);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The parts of a request that all kernels share: options, folders of headers, texts.
fn common(file: &File, folder: &Path) -> anyhow::Result<CompileRequest> {
    let mut common = CompileRequest::new("", "", Target::Cubin(RealArch::new(0)));
    let options = file.options.iter();
    common.options = options.map(|option| option.as_str().into()).collect();
    common.include_folders = file.include.iter().map(|path| folder.join(path)).collect();
    for path in &file.preamble {
        let text = Text::new(path.to_string_lossy(), text_of(folder, path)?);
        common.preamble.push(text);
    }
    for (name, path) in &file.headers {
        let text = Text::new(name.as_str(), text_of(folder, path)?);
        common.headers.push(text);
    }
    Ok(common)
}

/// The jobs that programs recorded. `targets` replace machine code, which the programs requested for their own GPUs;
/// intermediate forms stay as recorded.
fn recorded(file: &File, folder: &Path, targets: &[Target]) -> anyhow::Result<Vec<ImageJob>> {
    let texts = file.text.iter();
    let texts: HashMap<&str, Arc<str>> = texts
        .map(|content| (content.id.as_str(), content.text.as_str().into()))
        .collect();
    let text_of = |id: &str| {
        let text = texts.get(id).cloned();
        text.with_context(|| format!("there is no [[text]] with id {id:?}: record again"))
    };
    let parts_of = |parts: &[Part]| -> anyhow::Result<Vec<Text>> {
        let text = |part: &Part| Ok(Text::new(part.name.as_str(), text_of(&part.text)?));
        parts.iter().map(text).collect()
    };
    let all_of = |own: Target| match own {
        Target::Cubin(_) if !targets.is_empty() => targets.to_vec(),
        own => vec![own],
    };
    let words = |words: &[String]| words.iter().map(|word| word.as_str().into()).collect();
    let mut jobs = Vec::new();
    for one in &file.recorded {
        for target in all_of(one.target.parse()?) {
            let mut request = CompileRequest::new(one.name.as_str(), text_of(&one.source)?, target);
            request.preamble = parts_of(&one.preamble)?;
            request.headers = parts_of(&one.headers)?;
            request.name_expressions = words(&one.names);
            request.options = words(&one.options);
            request.include_folders = one.include.iter().map(|path| folder.join(path)).collect();
            if one.precompiled_headers {
                request.precompiled_headers = PrecompiledHeaders::Automatic;
            }
            jobs.push(ImageJob::Recorded(request));
        }
    }
    for one in &file.recorded_ptx {
        for target in all_of(one.target.parse()?) {
            // A GPU that takes PTX as it is needs no compilation.
            if let Target::Cubin(target) = target {
                jobs.push(ImageJob::Ptx {
                    name: one.name.clone(),
                    text: text_of(&one.text)?.as_bytes().to_vec(),
                    target,
                });
            }
        }
    }
    Ok(jobs)
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
        Manifest::read(&folder.path().join("m.toml"), &[])
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
            "[[recorded]]\nid = '1'\nname = 'k'\ntarget = 'sm_90'\nsource = '2'",
            "[[text]]\nid = '2'\ntext = ''\n[[recorded]]\nid = '1'\nname = 'k'\ntarget = 'sm_9x'\nsource = '2'",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
