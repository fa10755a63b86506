//! Compiles one text, by cicc and by its halves, and compares the result with earlier ones.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result};

use super::claim::Claim;
use super::commands::{BITCODE, CompileCommands};
use super::source::Edit;

/// What came of a text.
pub enum CompileOutcome {
    Made(Compiled),
    /// The preprocessor or cicc found it wrong.
    Refused(String),
}

/// A text and what the tools made of it.
pub struct Compiled {
    source: String,
    preprocessed: Vec<u8>,
    /// Without line markers, unless line tables are asked for.
    device_text: Vec<u8>,
    bitcode: Vec<u8>,
    ptx: Vec<u8>,
    /// The kinds of files in which the halves differ from the whole.
    halves_differ: Vec<&'static str>,
}

/// The message of the second half.
const BACK_SAID: &str = "half.said";

/// Forgets what the halves made with other options.
pub fn begin(dir: &Path) {
    let _ = fs::remove_file(dir.join(BITCODE));
}

/// Compiles a text.
pub fn compile(commands: &CompileCommands, dir: &Path, source: String) -> Result<CompileOutcome> {
    fs::write(dir.join("case.cu"), &source)?;
    fs::create_dir_all(dir.join("half"))?;
    let module_id = CompileCommands::file_after(&commands.cicc, "--module_id_file_name")?;
    // The real one is made of the path and of an external function's name, and is a file of the key either way.
    fs::write(dir.join(module_id), "_0badc0de_7_case_cu_main")?;
    let output = run(commands, dir, &commands.preprocess)?;
    if !output.status.success() {
        return Ok(CompileOutcome::Refused(said(&output)));
    }
    let whole = run(commands, dir, &commands.cicc)?;
    if !whole.status.success() {
        return Ok(CompileOutcome::Refused(said(&whole)));
    }
    let (ended_well, halves_said) = run_halves(commands, dir)?;
    let mut halves_differ = Vec::new();
    if !ended_well {
        halves_differ.push("exit code");
    }
    if said(&whole) != halves_said {
        halves_differ.push("messages");
    }
    halves_differ.extend(files_that_differ(commands, dir)?);
    let device = CompileCommands::file_after(&commands.cicc, "--gen_device_file_name")?;
    let device = read(dir, &device);
    let preprocessed = CompileCommands::file_after(&commands.preprocess, "-o")?;
    Ok(CompileOutcome::Made(Compiled {
        source,
        preprocessed: read(dir, &preprocessed),
        device_text: match commands.has_lines {
            true => device,
            false => without_markers(&device),
        },
        bitcode: read(dir, Path::new(BITCODE)),
        ptx: read(dir, &CompileCommands::file_after(&commands.cicc, "-o")?),
        halves_differ,
    }))
}

fn run(commands: &CompileCommands, dir: &Path, words: &[String]) -> Result<Output> {
    Command::new(&words[0])
        .args(&words[1..])
        .current_dir(dir)
        .envs(commands.environment.iter().map(|(n, v)| (n, v)))
        .output()
        .with_context(|| format!("failed to start {}", words[0]))
}

fn said(output: &Output) -> String {
    let bytes = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a tool wrote; nothing if it wrote no such file.
fn read(dir: &Path, name: &Path) -> Vec<u8> {
    fs::read(dir.join(name)).unwrap_or_default()
}

/// Runs cicc's halves: whether both ended well, and what they said.
fn run_halves(commands: &CompileCommands, dir: &Path) -> Result<(bool, String)> {
    let before = read(dir, Path::new(BITCODE));
    let front = run(commands, dir, &commands.front)?;
    let mut ended_well = front.status.success();
    // The second half makes the same of the same, and what it made last is still there.
    if before.is_empty() || before != read(dir, Path::new(BITCODE)) {
        let back = run(commands, dir, &commands.back)?;
        fs::write(dir.join(BACK_SAID), said(&back))?;
        ended_well &= back.status.success();
    }
    let back_said = read(dir, Path::new(BACK_SAID));
    Ok((
        ended_well,
        said(&front) + &String::from_utf8_lossy(&back_said),
    ))
}

/// The options of cicc that name a file in which the halves' result is not the whole's.
fn files_that_differ(commands: &CompileCommands, dir: &Path) -> Result<Vec<&'static str>> {
    let mut differ = Vec::new();
    for option in [
        "-o",
        "--gen_c_file_name",
        "--gen_device_file_name",
        "--stub_file_name",
    ] {
        let half = match option {
            "-o" => &commands.back,
            _ => &commands.front,
        };
        let by_whole = read(dir, &CompileCommands::file_after(&commands.cicc, option)?);
        let mut by_half = read(dir, &CompileCommands::file_after(half, option)?);
        if option == "--stub_file_name" {
            // It names itself.
            by_half = String::from_utf8_lossy(&by_half)
                .replace("half/", "")
                .into_bytes();
        }
        if by_whole != by_half {
            differ.push(option);
        }
    }
    Ok(differ)
}

fn without_markers(text: &[u8]) -> Vec<u8> {
    let is_marker = |line: &&[u8]| matches!(line, [b'#', b' ', b'0'..=b'9', ..]);
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !is_marker(line))
        .collect::<Vec<_>>()
        .join(&b'\n')
}

impl Compiled {
    fn key(&self, claim: Claim) -> &[u8] {
        match claim {
            Claim::Halves => &self.preprocessed,
            Claim::Bitcode => &self.bitcode,
            Claim::DeviceText => &self.device_text,
        }
    }

    /// The first of the earlier ones that the claim says has the same PTX.
    pub fn like<'a>(&self, claim: Claim, earlier: &'a [Self]) -> Option<&'a Self> {
        earlier
            .iter()
            .find(|other| self.key(claim) == other.key(claim))
    }

    /// Whether the text that cicc gets is another one.
    pub fn has_other_text(&self, other: &Self) -> bool {
        self.preprocessed != other.preprocessed
    }

    /// Whether the PTX is the same.
    pub fn has_same_ptx(&self, other: &Self) -> bool {
        self.ptx == other.ptx
    }

    /// The claims that do not hold, each with the text that shows it.
    pub fn contradicts<'a>(
        &'a self,
        commands: &CompileCommands,
        earlier: &'a [Self],
    ) -> Vec<(Claim, &'a Self)> {
        let mut found = Vec::new();
        if !self.halves_differ.is_empty() {
            found.push((Claim::Halves, self));
        }
        for claim in [Claim::Bitcode, Claim::DeviceText] {
            // Columns are in line tables and not in the device text: known, and no news.
            if claim == Claim::DeviceText && commands.has_lines {
                continue;
            }
            if let Some(other) = self.like(claim, earlier)
                && !self.has_same_ptx(other)
            {
                found.push((claim, other));
            }
        }
        found
    }

    /// Keeps both texts and what was made of them.
    pub fn save(&self, folder: &Path, options: &[String], edit: Edit, other: &Self) -> Result<()> {
        fs::create_dir_all(folder)?;
        let about = format!(
            "options: {}\nedit: {}\nhalves differ in: {:?}\n",
            options.join(" "),
            edit.name,
            self.halves_differ
        );
        fs::write(folder.join("about.txt"), about)?;
        for (name, compiled) in [("this", self), ("other", other)] {
            fs::write(folder.join(format!("{name}.cu")), &compiled.source)?;
            fs::write(folder.join(format!("{name}.gpu")), &compiled.device_text)?;
            fs::write(folder.join(format!("{name}.bc")), &compiled.bitcode)?;
            fs::write(folder.join(format!("{name}.ptx")), &compiled.ptx)?;
        }
        Ok(())
    }
}
