//! `warpcc compile-commands`: writes the compilation database from which clangd and other tools of clang read CUDA sources.

mod args;
mod clangd;
mod database;
mod print;
mod recorded;
mod translate;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use rayon::prelude::*;

pub use args::CompileCommandsArgs;

use super::output;
use crate::config::Config;
use crate::process_context::ProcessContext;
use clangd::Clangd;
use database::CompileCommand;
use print::Written;
use translate::{Reading, Translator};

/// Writes the database; the exit code is 0.
///
/// # Errors
/// There is no command of nvcc to translate, or a file cannot be read or written.
pub fn run(
    args: &CompileCommandsArgs,
    config: &Config,
    context: &ProcessContext,
) -> anyhow::Result<i32> {
    let project = context.directory.join(&args.project);
    let project = project
        .canonicalize()
        .with_context(|| format!("cannot read {}", project.display()))?;
    let output = match &args.output {
        Some(output) => context.directory.join(output),
        None => project.join("compile_commands.json"),
    };
    let mut written = Written {
        output: output.clone(),
        ..Written::default()
    };
    let mut kept: Vec<CompileCommand> = Vec::new();
    let entries = match &args.database {
        Some(database) => {
            let database = context.directory.join(database);
            let same = |file: &PathBuf| file.canonicalize().ok();
            if same(&database).is_some() && same(&database) == same(&output) {
                bail!(
                    "{} would replace the database that it is made from: name another file with --output",
                    output.display()
                );
            }
            database::read(&database)?
        }
        None => {
            // What another program wrote about other sources is not lost.
            if output.exists() {
                kept = database::read(&output)?;
            }
            let calls = recorded::calls_below(&project, config)?;
            written.cut = calls.cut;
            calls.entries
        }
    };
    let translator = Translator { config, context };
    let readings: Vec<Reading> = (entries.into_par_iter())
        .map(|entry| translator.read(entry))
        .collect();
    let clangd = Clangd::find(args.clangd.as_deref(), context)?;
    written.has_clangd = clangd.is_some();
    let names = clangd.map(|clangd| clangd.choose_architectures(&readings));
    let mut entries = Vec::new();
    for reading in readings {
        match reading {
            Reading::Other(entry) => {
                written.others += 1;
                entries.push(entry);
            }
            Reading::Refused { entry, why } => {
                written.refused.push((entry.file.clone(), why));
                entries.push(entry);
            }
            Reading::Sources(sources) => {
                written.translated += sources.len();
                let named = |source| translate::entry_of(source, args.host, names.as_ref());
                entries.extend(sources.iter().map(named));
            }
        }
    }
    if written.translated == 0 {
        bail!(print::nothing(&written, args.database.is_some()));
    }
    kept.retain(|entry| entries.iter().all(|new| new.path() != entry.path()));
    written.others += kept.len();
    entries.extend(kept);
    let text = serde_json::to_vec_pretty(&entries).context("cannot write JSON")?;
    output::replace_file(&output, &text, Permissions::from_mode(0o644))?;
    written.replaced = names.unwrap_or_default();
    written
        .replaced
        .retain(|name, instead| instead.as_ref() != Some(name));
    output::print(|out| print::write(&written, out))?;
    Ok(0)
}
