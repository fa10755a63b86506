//! Says what `warpcc compile-commands` wrote.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

/// What a run did, for its output.
#[derive(Debug, Default)]
pub struct Written {
    /// The file.
    pub output: PathBuf,
    /// Commands of nvcc that clang can read now.
    pub translated: usize,
    /// Other commands.
    pub others: usize,
    /// Commands of nvcc for which there is no plan, each with the reason.
    pub refused: Vec<(String, String)>,
    /// Calls whose command line was not remembered whole.
    pub cut: usize,
    /// Architectures that clangd does not know, with what stands in their place.
    pub replaced: BTreeMap<String, Option<String>>,
    /// Whether a clangd was there to be asked.
    pub has_clangd: bool,
}

/// Refused commands that are named.
const SHOWN: usize = 5;

/// Writes what was done.
pub fn write(written: &Written, out: &mut dyn Write) -> io::Result<()> {
    let (translated, others) = (written.translated, written.others);
    writeln!(
        out,
        "{}: {} of nvcc translated for clang, {others} other",
        written.output.display(),
        counted(translated, "command"),
    )?;
    for (name, instead) in &written.replaced {
        let stands = instead.as_deref().unwrap_or("its own default");
        writeln!(out, "clangd does not know {name}: {stands} is used instead")?;
    }
    if !written.has_clangd {
        writeln!(
            out,
            "there is no clangd in PATH to ask which architectures it knows; name one with --clangd"
        )?;
    }
    if written.cut > 0 {
        let calls = counted(written.cut, "call");
        writeln!(
            out,
            "{calls} left out: the command line was too long to be recorded"
        )?;
    }
    if !written.refused.is_empty() {
        let commands = counted(written.refused.len(), "command");
        writeln!(out, "{commands} of nvcc left unchanged:")?;
    }
    for (file, why) in written.refused.iter().take(SHOWN) {
        writeln!(out, "  {file}: {why}")?;
    }
    Ok(())
}

/// Why there is nothing to write.
pub fn nothing(written: &Written, from_database: bool) -> String {
    if let Some((file, why)) = written.refused.first() {
        return format!("no command could be translated; {file}: {why}");
    }
    match from_database {
        true => "the database has no command of nvcc".to_owned(),
        false => "no call of nvcc for a source below this folder is remembered: build with warpcc first, or name the \
                  compile_commands.json that CMake writes with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
            .to_owned(),
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
