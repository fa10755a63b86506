//! `warpcc jit cache`: shows where the driver stores the code that it compiled, and how full that cache is.

use warpcc_jit::{Folder, JitSettings, clear, contents, folder_remarks, setting_remarks};

use super::args::CacheArgs;
use super::exit_code::{FAILED, FINE, TO_FIX};
use super::print;
use super::print::cache::CacheView;
use crate::commands::output;
use crate::process_context::ProcessContext;
use warpcc_jit::Weight;

pub(super) fn cache(args: &CacheArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    let settings = JitSettings::read(&context.environment);
    if args.clear {
        let folder = settings.place.folder().ok_or_else(|| {
            anyhow::anyhow!("neither HOME nor CUDA_CACHE_PATH is set: there is no cache to clear")
        })?;
        if let Err(error) = folder.symlink_metadata()
            && error.kind() == std::io::ErrorKind::NotFound
        {
            output::print(|out| {
                writeln!(
                    out,
                    "{} does not exist: nothing to remove",
                    folder.display()
                )
            })?;
            return Ok(FINE);
        }
        let cleared = clear(&folder, settings.home.as_deref())?;
        output::print(|out| match args.json {
            true => print::parts::write_json(&cleared, out),
            false => print::cache::write_cleared(&cleared, out),
        })?;
        return Ok(if cleared.failed.is_empty() {
            FINE
        } else {
            FAILED
        });
    }
    let view = examine(&settings, context);
    output::print(|out| match args.json {
        true => print::parts::write_json(&view, out),
        false => print::cache::write(&view, out),
    })?;
    let to_fix = view.remarks.iter().any(|r| r.weight == Weight::Fix);
    Ok(if to_fix { TO_FIX } else { FINE })
}

/// Examines the cache of a process with these settings.
pub(super) fn examine(settings: &JitSettings, context: &ProcessContext) -> CacheView {
    let mut remarks = setting_remarks(&context.environment, settings);
    let path = settings.place.folder();
    let held = path.as_deref().map(contents).unwrap_or_default();
    let folder = match path.as_deref().map(Folder::examine) {
        Some(Ok(folder)) => {
            let limit = settings.max_size.bytes;
            remarks.extend(folder_remarks(&folder, held.bytes, limit));
            Some(folder)
        }
        Some(Err(error)) => {
            remarks.push(warpcc_jit::Remark::fix(
                format!("the cache's folder cannot be examined: {error}"),
                "it is unknown whether results are stored there",
                "set CUDA_CACHE_PATH to a folder on a local disk",
            ));
            None
        }
        None => None,
    };
    CacheView {
        folder,
        given: matches!(settings.place, warpcc_jit::Where::Given(_)),
        disabled: settings.disabled,
        max_size: settings.max_size,
        held,
        remarks,
    }
}
