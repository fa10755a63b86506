//! Tests a real CMake + Ninja project, llama.cpp's ggml, with warpcc as its compiler launcher. The
//! project is configured, built, touched, edited, cleaned and rebuilt as by a user. Each time the
//! cache's answers and the files that ninja rebuilds are checked. At the end every object and
//! dependency file is compared with nvcc's. Then all this runs again with warpcc in nvcc's place.

use super::{catalogue, fetch, toolkit};
use crate::{process, programs};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The files to build, and the warpcc to build them with.
#[derive(clap::Args)]
pub struct Options {
    /// Three of the files, for CI
    #[arg(long)]
    quick: bool,
    /// A warpcc that is already built (else this checkout's is, by cargo)
    #[arg(long, value_name = "PATH")]
    warpcc: Option<PathBuf>,
}

/// Small files of ggml-cuda; `scale` must be among them, because its header is edited.
const QUICK: [&str; 3] = ["fill", "scale", "clamp"];
const FULL: [&str; 10] = [
    "fill", "scale", "clamp", "arange", "set", "sum", "softcap", "diagmask", "acc", "pad",
];

/// A header that one of our files includes. Every file includes `WIDE`.
const NARROW: &str = "ggml/src/ggml-cuda/scale.cuh";
const WIDE: &str = "ggml/src/ggml-cuda/common.cuh";

/// A project of our own, because ggml's needs tests and examples that the sdist leaves out.
const PROJECT: &str = "cmake_minimum_required(VERSION 3.18)\n\
                       project(ggml_with_warpcc C CXX)\n\
                       add_subdirectory(ggml)\n";

/// `cargo xtask cmake-project`.
pub fn main(options: &Options) -> Result<()> {
    let files: &[&str] = if options.quick { &QUICK } else { &FULL };
    let warpcc = programs::launcher(options.warpcc.as_deref())?;
    check(&programs::nvcc(None)?, &warpcc, files)
}

/// The quick test, for a suite that has its own nvcc and warpcc.
pub fn quick(nvcc: &Path, warpcc: &Path) -> Result<()> {
    check(nvcc, warpcc, &QUICK)
}

fn check(nvcc: &Path, warpcc: &Path, files: &[&str]) -> Result<()> {
    for (program, package) in [("cmake", "cmake"), ("ninja", "ninja-build")] {
        ensure!(
            process::on_path(program).is_some(),
            "there is no {program} on PATH (Debian: apt-get install {package})"
        );
    }
    let sources = fetch::workload("llama.cpp")?;
    let ggml = sources.ancestors().nth(2).context("ggml-cuda is in ggml")?;
    let root = catalogue::folder().join("cmake-project");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
    }
    fs::create_dir_all(root.join("src"))?;
    // A copy, because headers are edited.
    process::run(
        Command::new("cp")
            .arg("-r")
            .arg(ggml)
            .arg(root.join("src/ggml")),
    )?;
    fs::write(root.join("src/CMakeLists.txt"), PROJECT)?;
    let toolkit = root.join("toolkit");
    toolkit::make(nvcc, &toolkit)?;
    fs::create_dir(root.join("masquerade"))?;
    symlink(warpcc, root.join("masquerade/nvcc"))?;

    let mut launched = Build::new(&root, "launched", warpcc, files);
    launched.configure(
        &toolkit.join("bin/nvcc"),
        &[format!(
            "-DCMAKE_CUDA_COMPILER_LAUNCHER={}",
            warpcc.display()
        )],
    )?;
    proof(&mut launched)?;

    let mut masked = Build::new(&root, "masked", warpcc, files);
    masked.path = Some(path_before(&[
        root.join("masquerade"),
        toolkit.join("bin"),
    ])?);
    masked.configure(&root.join("masquerade/nvcc"), &[])?;
    masked.ninja("warpcc named nvcc", &Expected::direct(files.len()))?;
    masked.same_as(&launched.outputs()?)?;
    masked.dry("nothing to do", &[])
}

/// Changes a build folder as a day's work does, and checks each build.
fn proof(build: &mut Build) -> Result<()> {
    let all = build.files.clone();
    let one = ["scale".to_owned()];
    build.ninja("cold", &Expected::built(all.len()))?;
    let first = build.outputs()?;
    build.dry("nothing to do", &[])?;

    build.touch(NARROW)?;
    build.dry("one header touched", &one)?;
    build.ninja("one header touched", &Expected::direct(1))?;
    build.touch(WIDE)?;
    build.dry("a header of all touched", &all)?;
    build.ninja("a header of all touched", &Expected::direct(all.len()))?;
    build.same_as(&first)?;

    build.replace(NARROW, "BLOCK_SIZE 256", "BLOCK_SIZE 128")?;
    build.dry("one header edited", &one)?;
    build.ninja("one header edited", &Expected::built(1))?;
    ensure!(
        build.outputs()? != first,
        "{NARROW} was edited, but no object has changed"
    );
    build.compare_with_nvcc("edited", &one)?;
    build.replace(NARROW, "BLOCK_SIZE 128", "BLOCK_SIZE 256")?;
    build.ninja("the edit undone", &Expected::direct(1))?;
    build.same_as(&first)?;

    build.clean()?;
    build.ninja("cleaned", &Expected::direct(all.len()))?;
    build.same_as(&first)?;
    build.dry("nothing to do", &[])?;
    build.compare_with_nvcc("all", &all)?;
    // nvcc's objects are newer than ninja's log of them.
    build.ninja("after nvcc", &Expected::direct(all.len()))
}

/// A build folder, and the files that are built in it.
struct Build {
    root: PathBuf,
    dir: PathBuf,
    warpcc: PathBuf,
    files: Vec<String>,
    /// `PATH`; `None` for the user's.
    path: Option<OsString>,
}

/// The counts that are expected after a run of ninja.
struct Expected {
    direct: u64,
    built: u64,
}

impl Expected {
    fn direct(files: usize) -> Self {
        Self {
            direct: files as u64,
            built: 0,
        }
    }

    fn built(files: usize) -> Self {
        Self {
            direct: 0,
            built: files as u64,
        }
    }
}

impl Build {
    fn new(root: &Path, name: &str, warpcc: &Path, files: &[&str]) -> Self {
        Self {
            root: root.to_owned(),
            dir: root.join(name),
            warpcc: warpcc.to_owned(),
            files: files.iter().map(|&file| file.to_owned()).collect(),
            path: None,
        }
    }

    fn configure(&self, compiler: &Path, more: &[String]) -> Result<()> {
        let mut cmake = self.command("cmake");
        cmake
            .args([
                "-G",
                "Ninja",
                "-DCMAKE_BUILD_TYPE=Release",
                "-DGGML_CUDA=ON",
            ])
            // Without GGML_CCACHE=OFF ggml puts a ccache that it finds in front of us.
            .args(["-DGGML_NATIVE=OFF", "-DGGML_CCACHE=OFF"])
            .arg("-DCMAKE_CUDA_ARCHITECTURES=86-real;120a-real")
            .arg(define("CMAKE_CUDA_COMPILER", compiler))
            .arg(define("CUDAToolkit_ROOT", &self.root.join("toolkit")))
            .args(more)
            .arg("-S")
            .arg(self.root.join("src"))
            .arg("-B")
            .arg(&self.dir);
        let start = Instant::now();
        process::output(&mut cmake)?;
        self.say("configure", start.elapsed(), "");
        Ok(())
    }

    /// Builds our objects, and checks warpcc's counters.
    fn ninja(&self, what: &str, expected: &Expected) -> Result<()> {
        process::output(self.command(&self.warpcc).args(["stats", "--zero"]))?;
        let start = Instant::now();
        process::output(
            self.command("ninja")
                // ninja reads .d files into its own log and deletes them.
                .args(["-d", "keepdepfile", "-j2", "-C"])
                .arg(&self.dir)
                .args(self.files.iter().map(|file| object(file))),
        )?;
        let took = start.elapsed();
        let text = process::output(self.command(&self.warpcc).args(["stats", "--json"]))?;
        let stats: Value = serde_json::from_str(&text)?;
        let count = |name: &str| {
            let found = stats.pointer(&format!("/invocations/{name}"));
            found.and_then(Value::as_u64).unwrap_or(0)
        };
        let (direct, built) = (count("direct_hits"), count("built"));
        self.say(what, took, &format!("{direct} direct, {built} built"));
        ensure!(
            direct == expected.direct
                && built == expected.built
                && count("total") == direct + built,
            "{what}: not {} direct and {} built:\n{text}",
            expected.direct,
            expected.built
        );
        Ok(())
    }

    /// Asks ninja which of our objects it would build now.
    fn dry(&self, what: &str, expected: &[String]) -> Result<()> {
        let text = process::output(
            self.command("ninja")
                .args(["-n", "-v", "-C"])
                .arg(&self.dir)
                .args(self.files.iter().map(|file| object(file))),
        )?;
        let mut all = self.files.iter();
        let wrong = all
            .find(|file| text.contains(&format!("-o {}", object(file))) != expected.contains(file));
        match wrong {
            Some(file) => bail!("{what}: ninja is wrong about {file}.cu:\n{text}"),
            None => Ok(()),
        }
    }

    fn clean(&self) -> Result<()> {
        process::output(
            self.command("ninja")
                .args(["-t", "clean"])
                .current_dir(&self.dir),
        )?;
        for (name, _) in self.outputs()? {
            // ninja does not clean a .d file that it was told to keep.
            ensure!(name.ends_with(".d"), "`ninja -t clean` left {name}");
            fs::remove_file(self.dir.join(name))?;
        }
        Ok(())
    }

    fn touch(&self, header: &str) -> Result<()> {
        let path = self.root.join("src").join(header);
        let text = fs::read(&path)?;
        write_later(&path, &text)
    }

    fn replace(&self, header: &str, old: &str, new: &str) -> Result<()> {
        let path = self.root.join("src").join(header);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(old), "{header} has no `{old}`");
        write_later(&path, text.replace(old, new).as_bytes())
    }

    /// Every object and dependency file there is, by its name in the build folder.
    fn outputs(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut found = BTreeMap::new();
        for file in &self.files {
            for name in [object(file), format!("{}.d", object(file))] {
                let path = self.dir.join(&name);
                if path.exists() {
                    found.insert(name, fs::read(path)?);
                }
            }
        }
        Ok(found)
    }

    fn same_as(&self, expected: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        let found = self.outputs()?;
        for (name, bytes) in expected {
            ensure!(
                found.get(name) == Some(bytes),
                "{name} in {} has changed",
                self.dir.display()
            );
        }
        ensure!(
            found.len() == expected.len(),
            "there are more outputs than before"
        );
        Ok(())
    }

    /// Runs ninja's own command lines without warpcc, and compares what they write.
    fn compare_with_nvcc(&self, what: &str, files: &[String]) -> Result<()> {
        let ours = self.outputs()?;
        let keep = self.root.join("keep");
        let start = Instant::now();
        for file in files {
            let text = process::output(
                self.command("ninja")
                    .args(["-t", "commands", &object(file)])
                    .current_dir(&self.dir),
            )?;
            let end = format!("-o {}", object(file));
            let line = text
                .lines()
                .find(|line| line.trim_end().ends_with(&end))
                .with_context(|| format!("ninja has no command for {file}.cu"))?;
            let words = shlex::split(line).context("unbalanced quotes in a command of ninja")?;
            let [_, nvcc, args @ ..] = words.as_slice() else {
                bail!("not a command with a launcher: {line}");
            };
            let _ = fs::remove_dir_all(&keep);
            fs::create_dir(&keep)?;
            process::output(
                self.command(nvcc)
                    .arg("--keep")
                    .arg("--keep-dir")
                    .arg(&keep)
                    .args(args)
                    .current_dir(&self.dir),
            )?;
        }
        fs::remove_dir_all(&keep)?;
        self.same_as(&ours)
            .context("warpcc wrote other bytes than nvcc")?;
        let verdict = format!("{} files, identical", 2 * files.len());
        self.say(&format!("nvcc --keep, {what}"), start.elapsed(), &verdict);
        Ok(())
    }

    /// A command with our cache and, but for PATH, without settings of the user.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in [
            "WARPCC_NVCC",
            "NVCC_PREPEND_FLAGS",
            "NVCC_APPEND_FLAGS",
            "CUDACXX",
        ] {
            command.env_remove(name);
        }
        command.env("WARPCC_DIR", self.root.join("cache"));
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }

    fn say(&self, what: &str, took: Duration, found: &str) {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        println!(
            "{name:<9} {what:<24} {:>8.3} s  {found}",
            took.as_secs_f64()
        );
    }
}

/// Writes a header some time after the last build. A hit can be so quick that a header written after it has the same time,
/// to the tick of the kernel's clock. ninja then rightly sees nothing newer than the object.
fn write_later(path: &Path, bytes: &[u8]) -> Result<()> {
    std::thread::sleep(Duration::from_millis(20));
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn object(file: &str) -> String {
    format!("ggml/src/ggml-cuda/CMakeFiles/ggml-cuda.dir/{file}.cu.o")
}

fn define(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("-D{name}="));
    word.push(value);
    word
}

fn path_before(folders: &[PathBuf]) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.iter().cloned().chain(std::env::split_paths(&path));
    std::env::join_paths(all).context("a folder in PATH has a colon")
}
