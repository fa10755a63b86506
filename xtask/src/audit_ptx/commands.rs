//! The command lines of a compile: preprocessor and cicc from `nvcc --dryrun`, and cicc's two halves made from its line.
//!
//! The rules are those of CUDA 13.0's cicc, which prints the commands of its halves when asked (`NVVMCCWIZ`, `-v -keep`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The commands of one set of options.
pub struct CompileCommands {
    pub preprocess: Vec<String>,
    pub cicc: Vec<String>,
    /// Source to bitcode.
    pub front: Vec<String>,
    /// Bitcode to PTX.
    pub back: Vec<String>,
    /// The small runtime header's folder, and none where the source includes much of the toolkit's.
    pub environment: Vec<(String, String)>,
    /// Whether line tables are asked for.
    pub has_lines: bool,
}

/// The files of the halves.
pub const BITCODE: &str = "half.bc";

impl CompileCommands {
    /// Asks nvcc; none where it refuses the options.
    pub fn ask(nvcc: &Path, dir: &Path, options: &[String]) -> Result<Option<Self>> {
        let source = dir.join("case.cu");
        if !source.exists() {
            std::fs::write(&source, "")?;
        }
        let output = Command::new(nvcc)
            .current_dir(dir)
            .args(["--dryrun", "--keep", "-c", "case.cu", "-o", "case.o"])
            .args(options)
            .output()
            .context("failed to start nvcc")?;
        if !output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let lines = text.lines().filter_map(|line| line.strip_prefix("#$ "));
        let mut environment = Vec::new();
        let (mut preprocess, mut cicc) = (None, None);
        for line in lines {
            let assigned = line.split_once('=').filter(|(name, _)| {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !name.is_empty() && name.chars().all(is_name)
            });
            match assigned {
                Some((name, value)) => environment.push((name.to_owned(), value.to_owned())),
                None if line.contains(" -E ") && line.contains("-D__CUDA_ARCH__=") => {
                    preprocess = shlex::split(line);
                }
                None if line.contains("/cicc\" ") => {
                    let folder = environment.iter().find(|(name, _)| name == "CICC_PATH");
                    let folder = folder.map_or("", |(_, value)| value.as_str());
                    cicc = shlex::split(&line.replace("$CICC_PATH", folder));
                }
                None => {}
            }
        }
        let (Some(preprocess), Some(cicc)) = (preprocess, cicc) else {
            bail!("no cicc in the dry run:\n{text}");
        };
        let has_lines = cicc.iter().any(|w| w == "-g" || w == "-generate-line-info");
        let (front, back) = halves(&cicc).with_context(|| format!("{cicc:?}"))?;
        Ok(Some(Self {
            preprocess,
            cicc,
            front,
            back,
            environment: environment
                .into_iter()
                .filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH")
                .collect(),
            has_lines,
        }))
    }

    /// A file that a command names after an option.
    pub fn file_after(words: &[String], option: &str) -> Result<PathBuf> {
        let at = words.iter().position(|word| word == option);
        let name = at.and_then(|at| words.get(at + 1));
        Ok(PathBuf::from(name.context(option.to_owned())?))
    }
}

/// The two halves of a cicc command.
fn halves(cicc: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let (program, words) = cicc.split_first().context("no program")?;
    let arch = CompileCommands::file_after(cicc, "-arch")?
        .display()
        .to_string();
    let number = arch.trim_start_matches("compute_");
    let number: u32 = number.trim_end_matches(char::is_alphabetic).parse()?;
    let is_old = number < 100;
    let version = format!(
        "-nvvm-version={}",
        if is_old { "nvvm70" } else { "nvvm-latest" }
    );
    let mut source = String::new();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let both = |to: &mut Vec<String>, from: &mut Vec<String>, a: &str, b: &str| {
            to.push(a.to_owned());
            from.push(b.to_owned());
        };
        match word.as_str() {
            "-arch" | "-o" => drop(words.next()),
            "-m64" => front.push("--m64".to_owned()),
            "-ftz=0" | "-ftz=1" | "-fast-math" => back.push(word.clone()),
            "-prec_div=0" | "-prec_div=1" | "-prec_sqrt=0" | "-prec_sqrt=1" => {
                back.push(word.replace('_', "-"));
            }
            "-fmad=0" | "-fmad=1" => back.push(word.replace("fmad", "fma")),
            "-maxreg" => back.push(format!("-maxreg={}", words.next().context("-maxreg")?)),
            "-generate-line-info" => both(&mut front, &mut back, "--generate-line-info", word),
            "-g" => both(&mut front, &mut back, "--device-debug", word),
            "-O0" => both(&mut front, &mut back, "--device-O=0", "-opt=0"),
            "--device-c" => both(&mut front, &mut back, word, word),
            _ if word.ends_with(".ii") => source.clone_from(word),
            // A stub names itself: that name stays, and the other files of the halves get names of their own.
            "--gen_c_file_name" | "--gen_device_file_name" => {
                let name = words.next().context("no name")?;
                front.extend([word.clone(), format!("half.{name}")]);
            }
            "--stub_file_name" => {
                let name = words.next().context("no name")?;
                front.extend([word.clone(), format!("half/{name}")]);
            }
            _ => front.push(word.clone()),
        }
    }
    let owned = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let mut first = owned(&[program, "-lgenfe", &source, "-o", BITCODE, "--emit-llvm-bc"]);
    first.append(&mut front);
    if is_old {
        first.push("--no-device-float128".to_owned());
    }
    first.extend(owned(&["--nv_arch", &arch, &version]));
    let mut second = owned(&[program, "-libnvvm", BITCODE, "-o", "half.ptx", &version]);
    second.append(&mut back);
    second.push(format!("-arch={arch}"));
    Ok((first, second))
}
