//! `warpcc fatbin thin`: writes a smaller file under a temporary name, and renames it when it is complete.

use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use warpcc_fatbin::{Binary, BinaryInput, Format, Keep, ReadLimits, thin, thin_wheel};

use super::args::ThinArgs;
use super::exit_code::FINE;
use super::print;
use crate::commands::output;

pub(super) fn thin_file(args: &ThinArgs) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let input = BinaryInput::file(&args.file);
    let binary = Binary::open(input, &limits)?;
    let output = output_path(args)?;
    let same = output.canonicalize().ok() == args.file.canonicalize().ok();
    if same && output.exists() {
        bail!("the output would overwrite its input; write elsewhere and move it");
    }
    let keep = match (&args.keep, &args.gpu[..]) {
        (None, []) => Keep::everything(),
        (keep, gpus) => keep.clone().unwrap_or_default().and_for(gpus),
    };
    let unchanged = || format!("{} is left unchanged", args.file.display());
    let permissions = args.file.metadata()?.permissions();
    let before = binary.bytes().len() as u64;
    if binary.format == Format::Wheel {
        let (done, after) = with_new_file(&output, permissions, |file| {
            let done = thin_wheel(&args.file, file, &keep, args.compress, &limits);
            done.with_context(unchanged)
        })?;
        output::print(|out| print::thin::write_wheel(&done, before, after, out))?;
        return Ok(FINE);
    }
    let thinned = thin(&binary, &keep, args.compress, &limits).with_context(unchanged)?;
    output::replace_file(&output, &thinned.bytes, permissions)?;
    let after = thinned.bytes.len() as u64;
    output::print(|out| print::thin::write(&thinned, before, after, out))?;
    Ok(FINE)
}

/// The file to write: in a folder, under the name of the input. A wheel's name says what it is, and pip wants it so.
fn output_path(args: &ThinArgs) -> anyhow::Result<PathBuf> {
    let folder = args.output.is_dir() || args.output.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !folder {
        return Ok(args.output.clone());
    }
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make {}", args.output.display()))?;
    let name = args.file.file_name().context("the input has no name")?;
    Ok(args.output.join(name))
}

/// Gives `write` a file next to `path`, and moves it there if that succeeds. Also returns its length.
fn with_new_file<T>(
    path: &Path,
    permissions: Permissions,
    write: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> anyhow::Result<T>,
) -> anyhow::Result<(T, u64)> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let temporary = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut temporary = temporary.with_context(cannot)?;
    let mut buffered = BufWriter::new(temporary.as_file_mut());
    let done = write(&mut buffered)?;
    buffered.flush().with_context(cannot)?;
    drop(buffered);
    let file = temporary.as_file();
    file.set_permissions(permissions).with_context(cannot)?;
    let length = file.metadata().with_context(cannot)?.len();
    temporary.persist(path).with_context(cannot)?;
    Ok((done, length))
}
