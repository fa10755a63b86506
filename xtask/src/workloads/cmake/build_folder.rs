//! A build folder of the CMake project: configures and builds it, changes its headers, and compares its outputs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::process;

/// A build folder, and the files that are built in it.
pub(super) struct Build {
    root: PathBuf,
    dir: PathBuf,
    warpcc: PathBuf,
    pub(super) files: Vec<String>,
    /// `PATH`; `None` for the user's.
    pub(super) path: Option<OsString>,
}

/// The counts that are expected after a run of ninja.
pub(super) struct ExpectedCounts {
    direct: u64,
    built: u64,
}

impl ExpectedCounts {
    pub(super) fn direct(files: usize) -> Self {
        Self {
            direct: files as u64,
            built: 0,
        }
    }

    pub(super) fn built(files: usize) -> Self {
        Self {
            direct: 0,
            built: files as u64,
        }
    }
}

impl Build {
    pub(super) fn new(root: &Path, name: &str, warpcc: &Path, files: &[&str]) -> Self {
        Self {
            root: root.to_owned(),
            dir: root.join(name),
            warpcc: warpcc.to_owned(),
            files: files.iter().map(|&file| file.to_owned()).collect(),
            path: None,
        }
    }

    pub(super) fn configure(&self, compiler: &Path, more: &[String]) -> Result<()> {
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
    pub(super) fn ninja(&self, what: &str, expected: &ExpectedCounts) -> Result<()> {
        process::output(self.command(&self.warpcc).args(["stats", "--zero"]))?;
        let start = Instant::now();
        // ninja reads .d files into its own log and deletes them.
        self.ninja_output(&["-d", "keepdepfile", "-j2"])?;
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

    /// The output of ninja with these options and our objects.
    fn ninja_output(&self, options: &[&str]) -> Result<String> {
        process::output(
            self.command("ninja")
                .args(options)
                .arg("-C")
                .arg(&self.dir)
                .args(self.files.iter().map(|file| object(file))),
        )
    }

    /// Asks ninja which of our objects it would build now.
    pub(super) fn dry(&self, what: &str, expected: &[String]) -> Result<()> {
        let text = self.ninja_output(&["-n", "-v"])?;
        let mut all = self.files.iter();
        let wrong = all
            .find(|file| text.contains(&format!("-o {}", object(file))) != expected.contains(file));
        match wrong {
            Some(file) => bail!("{what}: ninja is wrong about {file}.cu:\n{text}"),
            None => Ok(()),
        }
    }

    pub(super) fn clean(&self) -> Result<()> {
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

    fn source(&self, header: &str) -> PathBuf {
        self.root.join("src").join(header)
    }

    pub(super) fn touch(&self, header: &str) -> Result<()> {
        let path = self.source(header);
        let text = fs::read(&path)?;
        write_later(&path, &text)
    }

    pub(super) fn replace(&self, header: &str, old: &str, new: &str) -> Result<()> {
        let path = self.source(header);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(old), "{header} has no `{old}`");
        write_later(&path, text.replace(old, new).as_bytes())
    }

    /// Every object and dependency file there is, by its name in the build folder.
    pub(super) fn outputs(&self) -> Result<BTreeMap<String, Vec<u8>>> {
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

    pub(super) fn same_as(&self, expected: &BTreeMap<String, Vec<u8>>) -> Result<()> {
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
    pub(super) fn compare_with_nvcc(&self, what: &str, files: &[String]) -> Result<()> {
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
