//! `warpcc doctor --project`: which programs that call nvcc a project uses, from words in its build files, and what to set for each.
//!
//! docs/projects.md has the same lines, and what was tried.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;

use super::callers::{CALLERS, Caller, IN_PATH};

/// Folders below the project's that are looked at.
const DEPTH: usize = 3;

/// Entries that are looked at: a home folder given by mistake must have an end.
const ENTRIES: usize = 20_000;

/// How much of a file is read.
const BYTES: u64 = 256 << 10;

/// A program that the project uses.
#[derive(Debug, Serialize)]
struct Use {
    name: &'static str,
    /// Files of the project that show it.
    files: BTreeSet<PathBuf>,
    set: &'static [&'static str],
    setup: Option<&'static str>,
    note: &'static str,
}

/// What is printed.
#[derive(Debug, Serialize)]
pub struct ProjectAdvice {
    uses: Vec<Use>,
    /// Works where no program is known.
    general: &'static str,
    /// Not all of the folder was looked at.
    incomplete: bool,
}

/// Looks through the project.
///
/// # Errors
/// It is not a folder that can be read.
pub fn examine(project: &Path) -> anyhow::Result<ProjectAdvice> {
    if !project.is_dir() {
        bail!("{} is not a folder", project.display());
    }
    fs::read_dir(project).with_context(|| format!("cannot read {}", project.display()))?;
    let mut seen = ProjectScan::default();
    seen.walk(project, project, 0);
    let mut uses = Vec::new();
    for (at, caller) in CALLERS.iter().enumerate() {
        if let Some(files) = seen.found.remove(&at) {
            uses.push(Use {
                name: caller.name,
                files,
                set: caller.set,
                setup: caller.setup,
                note: caller.note,
            });
        }
    }
    Ok(ProjectAdvice {
        uses,
        general: IN_PATH,
        incomplete: seen.entries >= ENTRIES,
    })
}

/// What was found so far.
#[derive(Default)]
struct ProjectScan {
    /// Files by the caller's place in the table.
    found: BTreeMap<usize, BTreeSet<PathBuf>>,
    entries: usize,
}

impl ProjectScan {
    /// Folders that cannot be read, links, and what builds and tools make are passed over.
    fn walk(&mut self, project: &Path, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries >= ENTRIES {
                return;
            }
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            let is_made = ["build", "target", "node_modules", "venv"].contains(&name.as_str());
            if kind.is_dir() && depth < DEPTH && !name.starts_with('.') && !is_made {
                self.walk(project, &entry.path(), depth + 1);
            } else if kind.is_file() {
                self.look_at(project, &entry.path(), &name);
            }
        }
    }

    fn look_at(&mut self, project: &Path, path: &Path, name: &str) {
        let fits = |caller: &Caller| caller.files.iter().any(|pattern| matches(pattern, name));
        if !CALLERS.iter().any(fits) {
            return;
        }
        let mut text = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(BYTES).read_to_end(&mut text));
        if read.is_err() {
            return;
        }
        let text = String::from_utf8_lossy(&text);
        for (at, caller) in CALLERS.iter().enumerate() {
            if fits(caller) && caller.words.iter().any(|word| text.contains(word)) {
                let below = path.strip_prefix(project).unwrap_or(path).to_owned();
                self.found.entry(at).or_default().insert(below);
            }
        }
    }
}

/// `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = part;
    }
    rest.is_empty() || (pattern.contains('*') && name.ends_with(last))
}

/// Writes the advice as text.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(advice: &ProjectAdvice, out: &mut dyn Write) -> io::Result<()> {
    for found in &advice.uses {
        let mut files = found.files.iter().map(|file| file.display().to_string());
        let first = files.next().unwrap_or_default();
        let more = match files.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let line = warpcc_report::monitor::harmless(&format!("{} ({first}{more})", found.name));
        writeln!(out, "{line}")?;
        for line in found.set {
            writeln!(out, "  {line}")?;
        }
        if let Some(setup) = found.setup.filter(|setup| !found.set.contains(setup)) {
            writeln!(out, "  for all new shells: {setup}")?;
        }
        if !found.note.is_empty() {
            writeln!(out, "  {}", found.note)?;
        }
        writeln!(out)?;
    }
    if advice.uses.is_empty() {
        writeln!(out, "No program that calls nvcc was recognised here.")?;
        writeln!(out, "With nvcc's name in PATH most builds use warpcc:")?;
        writeln!(out, "  {}", advice.general)?;
    }
    if advice.incomplete {
        writeln!(out, "The folder is large: not all of it was looked at.")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project of these files.
    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(files: &[(&str, &str)]) -> Vec<&'static str> {
        let folder = project(files);
        let advice = examine(folder.path()).unwrap();
        advice.uses.iter().map(|found| found.name).collect()
    }

    #[test]
    fn each_caller_is_recognised_by_its_build_file() {
        let projects: [(&str, &str, &str); 11] = [
            ("CMakeLists.txt", "project(x LANGUAGES CXX CUDA)", "CMake"),
            ("build.mk", "CXX = nvcc_wrapper", "Kokkos' nvcc_wrapper"),
            (
                "setup.py",
                "from torch.utils import cpp_extension",
                "PyTorch extensions",
            ),
            ("requirements.txt", "flashinfer-python==0.7", "FlashInfer"),
            (
                "pyproject.toml",
                "dependencies = [\"deep-gemm\"]",
                "DeepGEMM",
            ),
            (
                "run.py",
                "cupy.RawModule(code=c, backend='nvcc')",
                "CuPy with nvcc",
            ),
            ("build.rs", "cc::Build::new().cuda(true)", "the cc crate"),
            (
                "Cargo.toml",
                "cudaforge = \"0.1\"",
                "cudaforge, as candle has it",
            ),
            ("sub/Cargo.toml", "bindgen_cuda = \"0.1\"", "bindgen_cuda"),
            (
                "MODULE.bazel",
                "bazel_dep(name = \"rules_cuda\")",
                "rules_cuda (Bazel)",
            ),
            ("Makefile", "x.o: x.cu\n\t$(NVCC) -c $<", "make"),
        ];
        for (file, text, name) in projects {
            assert_eq!(names(&[(file, text)]), [name], "{file}");
        }
        assert_eq!(CALLERS.len(), projects.len());
    }

    #[test]
    fn what_calls_no_nvcc_and_what_a_build_made_is_passed_over() {
        let files = [
            ("CMakeLists.txt", "project(x LANGUAGES CXX)"),
            ("notes.txt", "CUDA rules_cuda cudaforge"),
            ("build/CMakeLists.txt", "project(x LANGUAGES CUDA)"),
            (".git/setup.py", "cpp_extension"),
        ];
        assert_eq!(names(&files), [""; 0]);
    }

    #[test]
    fn the_lines_are_printed_and_an_unknown_project_gets_the_general_one() {
        let said = |files: &[(&str, &str)]| {
            let folder = project(files);
            let mut out = Vec::new();
            write(&examine(folder.path()).unwrap(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let known = [
            ("CMakeLists.txt", "project(x LANGUAGES CXX CUDA)"),
            ("parts/CMakeLists.txt", "enable_language(CUDA)"),
            ("setup.py", "CUDAExtension"),
        ];
        insta::assert_snapshot!("project", said(&known));
        insta::assert_snapshot!("project_unknown", said(&[]));
        assert!(examine(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, fits) in [
            ("*.py", "setup.py", true),
            ("*.py", "setup.pyc", false),
            ("*requirements*.txt", "dev-requirements-gpu.txt", true),
            ("*requirements*.txt", "requirements.in", false),
            ("Makefile", "Makefile.old", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
