//! Packs nvlink for another machine. nvlink searches for archives itself, so this module does the search here first. nvlink
//! writes the folders of its search into the cubin, so they are replaced there by names of the same length.

use std::path::{Component, Path};

use warpcc_cache::command::CommandInput;
use warpcc_plan::Step;

use super::builder::{ActionBuilder, Packed};
use super::names::{self, MARK};
use crate::context::RunContext;
use crate::located::Located;

/// Names at the top of an input tree that warpcc uses, or that a worker may cover with its own folders.
const TAKEN: [&str; 9] = [
    MARK, "tc", "bin", "dev", "etc", "lib", "lib64", "proc", "usr",
];

/// Options with a separate value that is no file.
const WITH_VALUE: [&str; 4] = ["--host-ccbin", "-maxrregcount", "-Xnvvm", "-Xptxas"];

/// Packs a device link. Returns `None` if nvlink would read an unknown file.
pub fn pack_link(run: &RunContext<'_>, step: &Step, program: &Located) -> Option<Packed> {
    let mut builder = ActionBuilder::new(run, step.tool)?;
    // nvlink loads other programs of the toolkit, and is small.
    builder.pack_programs();
    let mut arguments = builder.add_program(&program.path)?;
    builder.add_reads(step)?;
    let mut folders = Vec::new();
    let mut libraries = Vec::new();
    let mut names = Vec::new();
    let mut args = step.args.iter().enumerate();
    while let Some((at, arg)) = args.next() {
        let Some(text) = arg.as_text() else {
            arguments.push(names::word(run, arg)?);
            continue;
        };
        if let Some(folder) = text.strip_prefix("-L").filter(|folder| !folder.is_empty()) {
            let there = match is_plain(Path::new(folder)) {
                true => folder.to_owned(),
                false => stand_in(folder, names.len())?,
            };
            if there != folder {
                names.push((there.clone(), folder.to_owned()));
            }
            arguments.push(format!("-L{there}"));
            folders.push((folder, there));
        } else if let Some(name) = text
            .strip_prefix("-l")
            .filter(|_| !text.starts_with("-lto"))
        {
            libraries.push(name);
            arguments.push(text.to_owned());
        } else if let Some(folder) = text.strip_prefix("-nvvmpath=") {
            let library = Path::new(folder).join("lib64/libnvvm.so");
            builder.add_libraries(&library)?;
            builder.add("tc/nvvm/lib64/libnvvm.so".to_owned(), &library, true)?;
            arguments.push("-nvvmpath=tc/nvvm".to_owned());
        } else if WITH_VALUE.contains(&text) {
            arguments.push(text.to_owned());
            arguments.push(args.next()?.1.as_text()?.to_owned());
        } else if text.starts_with('-') {
            // Such an option may name an unknown file.
            let names_file = text.contains(['/', '@']) || text.starts_with("--options-file");
            if names_file || ["-optf", "-L", "-l", "-nvvmpath"].contains(&text) {
                return None;
            }
            arguments.push(text.to_owned());
        } else {
            arguments.push(add_object(run, &mut builder, text, at)?);
        }
    }
    for name in libraries {
        add_library(run, &mut builder, name, &folders)?;
    }
    let mut packed = builder.close(step, arguments)?;
    packed.names = names;
    Some(packed)
}

/// Adds an argument that is no option, mostly one of the user's objects or archives. Returns its name there.
fn add_object(
    run: &RunContext<'_>,
    builder: &mut ActionBuilder<'_, '_>,
    text: &str,
    at: usize,
) -> Option<String> {
    let here = run.options.directory.join(text);
    if !here.is_file() {
        // nvlink will report the missing file.
        return None;
    }
    let there = match is_plain(Path::new(text)) {
        true => text.to_owned(),
        false => format!("{MARK}/of-{at}/{}", here.file_name()?.to_str()?),
    };
    add_as_named(run, builder, there.clone(), text)?;
    Some(there)
}

/// Finds a library as nvlink does: the shared one in every folder, then the archive.
fn add_library(
    run: &RunContext<'_>,
    builder: &mut ActionBuilder<'_, '_>,
    name: &str,
    folders: &[(&str, String)],
) -> Option<()> {
    for file in [format!("lib{name}.so"), format!("lib{name}.a")] {
        for (folder, there) in folders {
            let path = format!("{folder}/{file}");
            if !run.options.directory.join(&path).exists() {
                builder.seen.missing.insert(Path::new(&path).into());
                continue;
            }
            if file.ends_with(".so") {
                // A shared library may be large, and nvlink handles it differently.
                return None;
            }
            let there = format!("{}/{file}", there.trim_end_matches('/'));
            let there = there.strip_prefix("./").unwrap_or(&there).to_owned();
            return add_as_named(run, builder, there, &path);
        }
    }
    // There is no such library for nvlink: the host linker may find it.
    Some(())
}

/// Adds one of the user's files under the name by which nvlink would find it here.
fn add_as_named(
    run: &RunContext<'_>,
    builder: &mut ActionBuilder<'_, '_>,
    there: String,
    name: &str,
) -> Option<()> {
    let file = run.options.directory.join(name);
    builder.put(CommandInput {
        path: there,
        digest: run.lasting_digest(&file)?,
        file,
        executable: false,
    })?;
    builder.seen.read.entry(Path::new(name).into()).or_default();
    Some(())
}

/// Whether a path can be the same there: it leads to a place below the folder of the command.
fn is_plain(path: &Path) -> bool {
    let first = path.components().next();
    let is_taken = |name: &std::ffi::OsStr| TAKEN.iter().any(|taken| name == *taken);
    match first {
        Some(Component::CurDir) => path == Path::new("."),
        Some(Component::Normal(name)) => {
            let is_down = |c: Component<'_>| matches!(c, Component::Normal(_));
            // An input tree cannot contain paths such as `a//b` and `a/`.
            let written = path
                .components()
                .map(|c| c.as_os_str().len() + 1)
                .sum::<usize>();
            path.components().all(is_down)
                && written == path.as_os_str().len() + 1
                && !is_taken(name)
        }
        _ => false,
    }
}

/// A folder's name on the other machine, as long as the name here; `None` if that is too short to be unmistakable.
fn stand_in(folder: &str, number: usize) -> Option<String> {
    let name = format!("{MARK}/L{number}");
    let padding = folder.len().checked_sub(name.len() + 1)?;
    Some(format!("{name}_{}", "_".repeat(padding)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_stay() {
        for plain in [".", "a.o", "build/a.o"] {
            assert!(is_plain(Path::new(plain)), "{plain}");
        }
        for other in [
            "/a.o", "../a.o", "a/../b.o", "lib/x.a", "tc/x", "a//b", "b/", "./a",
        ] {
            assert!(!is_plain(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn a_stand_in_is_as_long_as_the_folder_and_unlike_others() {
        let folder = "/usr/local/cuda/bin/../lib";
        let one = stand_in(folder, 1).expect("long enough");
        assert_eq!(one.len(), folder.len());
        assert_ne!(Some(one), stand_in(folder, 11));
        assert_eq!(stand_in("/usr/lib", 0), None);
    }
}
