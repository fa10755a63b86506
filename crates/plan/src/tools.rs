//! Finds the files that each tool reads and writes, by role and suffix, never by position alone: 13.x added `--simt-only`
//! after a file name, which broke parsers that counted from the end.
//!
//! Each function takes the words after the program and returns typed arguments. Special cases of toolkits are handled here.
//! A word without a rule is [`Unsupported`].

use crate::Unsupported;
use crate::clang_driver;
use crate::file_table::FileTable;
use crate::step::{Arg, FileId, Part, Tool};
use crate::words::Word;

/// Arguments with their files.
#[derive(Debug, Default)]
pub struct Typed {
    /// The arguments after the program.
    pub args: Vec<Arg>,
    /// The files that are read, in order of appearance.
    pub reads: Vec<FileId>,
    /// The files that are written, in order of appearance.
    pub writes: Vec<FileId>,
    /// The architecture: `compute_90`, `sm_90`.
    pub arch: Option<String>,
}

/// The reason for plans whose host compiler is NVIDIA's HPC compiler.
const NVCPP: &str = "nvc++ as host compiler";

/// Finds the tool of a command by the program's name and, for the host compiler, by its mode.
pub fn identify(program: &Word, words: &[&str]) -> Result<Tool, Unsupported> {
    let path = match program {
        Word::Substitution(command) if command.ends_with(" -print-prog-name=ar") => {
            return Ok(Tool::Archive);
        }
        Word::Substitution(command) => return Err(Unsupported::new("unknown tool", command)),
        Word::Text(path) => path,
    };
    let stem = path.rsplit('/').next().unwrap_or(path);
    Ok(match stem {
        "cudafe++" => Tool::CudaFe,
        "cicc" => Tool::Cicc,
        "ptxas" => Tool::Ptxas,
        "fatbinary" => Tool::Fatbinary,
        "nvlink" => Tool::Nvlink,
        "tileiras" | "nvprune" | "bin2c" | "nvvm-prune" => {
            return Err(Unsupported::new("unknown tool", stem));
        }
        // Its line markers, messages and intermediate files are not known.
        "nvc++" | "nvc" | "pgc++" => return Err(Unsupported::new(NVCPP, stem)),
        _ if stem == "ar" || stem.ends_with("-ar") => Tool::Archive,
        _ if words.first() == Some(&clang_driver::COMPILER) => Tool::Clang,
        _ if words.contains(&"-E") => Tool::Preprocess,
        _ if words.contains(&"-c") => Tool::HostCompile,
        _ if words.iter().any(|w| w.starts_with("-D__CUDA_ARCH_LIST__="))
            || words.contains(&"-Wl,--start-group") =>
        {
            Tool::HostLink
        }
        _ => return Err(Unsupported::new("unknown tool", stem)),
    })
}

/// Types the words of one command.
pub fn type_arguments(
    tool: Tool,
    words: &[&str],
    files: &mut FileTable,
) -> Result<Typed, Unsupported> {
    match tool {
        Tool::Preprocess | Tool::HostCompile => host(tool, words, files),
        Tool::CudaFe | Tool::Cicc => front_end(tool, words, files),
        Tool::Clang => clang(words, files),
        Tool::Ptxas => ptxas(words, files),
        Tool::Fatbinary => fatbinary(words, files),
        Tool::Nvlink | Tool::HostLink => linker(tool, words, files),
        Tool::Archive => archive(words, files),
        Tool::Nvvm | Tool::HostAssembly | Tool::Assemble | Tool::FilterDependencies => {
            Err(Unsupported::new("unknown tool", tool.name()))
        }
    }
}

impl Typed {
    fn text(&mut self, word: &str) {
        self.args.push(Arg::text(word));
    }

    fn read(&mut self, file: FileId) {
        self.args.push(Arg::file(file));
        self.reads.push(file);
    }

    fn write(&mut self, file: FileId) {
        self.args.push(Arg::file(file));
        self.writes.push(file);
    }
}

fn value<'a>(
    words: &mut std::slice::Iter<'_, &'a str>,
    flag: &str,
) -> Result<&'a str, Unsupported> {
    words.next().copied().ok_or_else(|| {
        Unsupported::new("unknown tool arguments", format!("{flag} without a value"))
    })
}

/// `gcc … INPUT -o OUTPUT`, and link stubs whose includes are macros.
fn host(tool: Tool, words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let mut typed = Typed::default();
    let [flags @ .., input, "-o", output] = words else {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("{} {}", tool, words.join(" ")),
        ));
    };
    if input.starts_with('-') || flags.contains(&"-o") {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("{} {}", tool, words.join(" ")),
        ));
    }
    for word in flags {
        if let Some(arch) = word.strip_prefix("-D__CUDA_ARCH__=") {
            // 900 is compute_90; the last digit is always 0.
            typed.arch = (tool == Tool::Preprocess)
                .then(|| format!("compute_{}", arch.strip_suffix('0').unwrap_or(arch)));
        }
        let included = ["-DFATBINFILE=\"", "-DREGISTERLINKBINARYFILE=\""]
            .iter()
            .find_map(|p| {
                word.strip_prefix(p)
                    .and_then(|rest| rest.strip_suffix('"'))
                    .map(|path| (*p, path))
            });
        if let Some((prefix, path)) = included {
            let file = files.intern(path);
            typed.reads.push(file);
            typed.args.push(Arg(vec![
                Part::Text(prefix.to_owned()),
                Part::File(file),
                Part::Text("\"".to_owned()),
            ]));
        } else {
            typed.text(word);
        }
    }
    typed.read(files.intern(input));
    typed.text("-o");
    typed.write(files.intern(output));
    Ok(typed)
}

/// `clang -cc1 … INPUT`.
fn clang(words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let mut typed = Typed::default();
    let unknown = || {
        Unsupported::new(
            "unknown tool arguments",
            format!("clang {}", words.join(" ")),
        )
    };
    let [flags @ .., input] = words else {
        return Err(unknown());
    };
    let mut rest = flags.iter();
    while let Some(&word) = rest.next() {
        typed.text(word);
        match word {
            "-o" | "-dependency-file" => {
                let path = value(&mut rest, word)?;
                typed.write(files.intern(path));
            }
            "-fcuda-include-gpubinary" => {
                let file = files.intern(value(&mut rest, word)?);
                typed.read(file);
            }
            "-target-cpu" => {
                let cpu = value(&mut rest, word)?;
                typed.text(cpu);
                typed.arch = cpu.starts_with("sm_").then(|| cpu.to_owned());
            }
            _ => {}
        }
    }
    if input.starts_with('-') || typed.writes.is_empty() {
        return Err(unknown());
    }
    typed.read(files.intern(input));
    Ok(typed)
}

/// cudafe++ and cicc share the EDG front end's flags.
fn front_end(tool: Tool, words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let mut typed = Typed::default();
    let makes_module_id = words.contains(&"--gen_module_id_file");
    let mut rest = words.iter();
    while let Some(&word) = rest.next() {
        match word {
            "--gen_c_file_name" | "--gen_device_file_name" | "-o" | "-olto" => {
                typed.text(word);
                let path = value(&mut rest, word)?;
                typed.write(files.intern(path));
            }
            // cudafe++ gets only the file name, which it writes into an #include; cicc gets the path.
            "--stub_file_name" if tool == Tool::Cicc => {
                typed.text(word);
                let path = value(&mut rest, word)?;
                typed.write(files.intern(path));
            }
            "--module_id_file_name" => {
                typed.text(word);
                let file = files.intern(value(&mut rest, word)?);
                if makes_module_id {
                    typed.write(file);
                } else {
                    typed.read(file);
                }
            }
            "--stub_file_name"
            | "--include_file_name"
            | "--orig_src_file_name"
            | "--orig_src_path_name" => {
                typed.text(word);
                typed.text(value(&mut rest, word)?);
            }
            "-arch" => {
                typed.text(word);
                let arch = value(&mut rest, word)?;
                typed.text(arch);
                typed.arch = Some(arch.to_owned());
            }
            _ if !word.starts_with('-') && files.is_written(word) => {
                let file = files.intern(word);
                typed.read(file);
            }
            _ => typed.text(word),
        }
    }
    if typed.reads.is_empty() || typed.writes.is_empty() {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("{tool} {}", words.join(" ")),
        ));
    }
    Ok(typed)
}

fn ptxas(words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let mut typed = Typed::default();
    let mut rest = words.iter().enumerate();
    let end = words
        .iter()
        .rposition(|w| ["-o", "--output-file"].contains(w))
        // clang puts the input last.
        .filter(|&at| words[at] == "-o")
        .unwrap_or(words.len());
    while let Some((at, &word)) = rest.next() {
        match word {
            "-o" | "--output-file" => {
                typed.text(word);
                let path = rest
                    .next()
                    .ok_or_else(|| Unsupported::new("unknown tool arguments", "ptxas -o"))?
                    .1;
                typed.write(files.intern(path));
            }
            "--gpu-name" => {
                typed.text(word);
                let name = rest.next().map(|(_, name)| *name).unwrap_or_default();
                typed.text(name);
                typed.arch = Some(name.to_owned());
            }
            // The input is the last word before -o; no step writes a `.ptx` of the user's.
            _ if !word.starts_with('-') && (files.is_written(word) || at + 1 == end) => {
                let file = files.intern(word);
                typed.read(file);
            }
            _ => {
                if let Some(arch) = word.strip_prefix("-arch=") {
                    typed.arch = Some(arch.to_owned());
                }
                typed.text(word);
            }
        }
    }
    if typed.reads.is_empty() {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("ptxas {}", words.join(" ")),
        ));
    }
    Ok(typed)
}

fn fatbinary(words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let mut typed = Typed::default();
    let mut rest = words.iter();
    while let Some(&word) = rest.next() {
        if word == "--create" {
            typed.text(word);
            let path = value(&mut rest, word)?;
            typed.write(files.intern(path));
        } else if let Some((flag, path)) = ["--create=", "--embedded-fatbin="]
            .iter()
            .find_map(|p| word.strip_prefix(p).map(|path| (*p, path)))
        {
            let file = files.intern(path);
            typed.writes.push(file);
            typed
                .args
                .push(Arg(vec![Part::Text(flag.to_owned()), Part::File(file)]));
        } else if word.starts_with("--image") {
            let (head, path) = word.split_once(",file=").ok_or_else(|| {
                Unsupported::new("unknown tool arguments", format!("fatbinary {word}"))
            })?;
            let file = files.intern(path);
            typed.reads.push(file);
            typed.args.push(Arg(vec![
                Part::Text(format!("{head},file=")),
                Part::File(file),
            ]));
        } else {
            typed.text(word);
        }
    }
    if typed.writes.is_empty() {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("fatbinary {}", words.join(" ")),
        ));
    }
    Ok(typed)
}

/// nvlink and the host linker: the outputs of earlier steps are files of the plan. The user's objects, archives and `-l`
/// names are found by watching the run.
fn linker(tool: Tool, words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let mut typed = Typed::default();
    let mut rest = words.iter();
    while let Some(&word) = rest.next() {
        if word == "-o" {
            typed.text(word);
            let path = value(&mut rest, word)?;
            typed.write(files.intern(path));
        } else if let Some(path) = word.strip_prefix("--register-link-binaries=") {
            let file = files.intern(path);
            typed.writes.push(file);
            typed.args.push(Arg(vec![
                Part::Text("--register-link-binaries=".to_owned()),
                Part::File(file),
            ]));
        } else if !word.starts_with('-') && files.is_written(word) {
            let file = files.intern(word);
            typed.read(file);
        } else {
            if let Some(arch) = word.strip_prefix("--arch=") {
                typed.arch = Some(arch.to_owned());
            }
            typed.text(word);
        }
    }
    if typed.writes.is_empty() {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("{tool} without -o"),
        ));
    }
    Ok(typed)
}

/// `ar cr LIBRARY OBJECT…`. Further options (`-Xarchive`) may change what the words mean; with `--thin`, also from an options
/// file, the library contains the objects' paths.
fn archive(words: &[&str], files: &mut FileTable) -> Result<Typed, Unsupported> {
    let is_option = |word: &&str| word.starts_with(['-', '@']);
    let (Some((&"cr", [library, objects @ ..])), false) =
        (words.split_first(), words.iter().any(is_option))
    else {
        return Err(Unsupported::new(
            "unknown tool arguments",
            format!("ar {}", words.join(" ")),
        ));
    };
    let mut typed = Typed::default();
    typed.text("cr");
    typed.write(files.intern(library));
    for object in objects {
        match files.is_written(object) {
            true => {
                let file = files.intern(object);
                typed.read(file);
            }
            false => typed.text(object),
        }
    }
    Ok(typed)
}
