//! Findings for a GPU: what to set, or which options to build with.

use warpcc_fatbin::{Gpu, Suffix};
use warpcc_jit::{JitSettings, MaxSize, Remark};

use crate::commands::jit::print::advise::OnGpu;
use crate::config::format_bytes;

/// The option that makes machine code for the GPU, with the suffix of the PTX.
pub(super) fn gencode(gpu: Gpu, suffixes: &[Suffix]) -> Option<String> {
    let Gpu::Known(number) = gpu else { return None };
    let letter = match suffixes {
        [] => return None,
        all if all.contains(&Suffix::Exact) => "a",
        all if all.contains(&Suffix::Family) => "f",
        _ => "",
    };
    Some(format!(
        "-gencode arch=compute_{number}{letter},code=sm_{number}{letter}"
    ))
}

/// A size for the setting with some reserve: a quarter more, in steps of 64 MiB.
fn room_for(bytes: u64) -> u64 {
    const STEP: u64 = 64 << 20;
    bytes.saturating_add(bytes / 4).next_multiple_of(STEP)
}

/// The findings for one GPU, with advice; `held` is the size of the cache's contents, in bytes.
pub(super) fn of_gpu(on: &OnGpu, settings: &JitSettings, held: u64) -> Vec<Remark> {
    let mut found = Vec::new();
    let gpu = on.gpu;
    let failing: usize = on.files.iter().map(|file| file.fail).sum();
    if failing > 0 {
        found.push(Remark::fix(
            format!("{failing} containers cannot be loaded on {gpu}"),
            "their kernels fail with an error when they are first used",
            format!("see `warpcc fatbin check --gpu {gpu}` for the reasons"),
        ));
    }
    if on.refused > 0 {
        found.push(Remark::fix(
            format!("ptxas refuses {} of the PTX texts for {gpu}", on.refused),
            "a driver of the same age would refuse them too",
            format!("see `warpcc jit prove --gpu {gpu}` for what is wrong"),
        ));
    }
    if on.texts == 0 {
        return found;
    }
    let build = on.gencode.as_ref().map_or_else(
        || "compile machine code for it".to_owned(),
        |words| format!("build with {words}"),
    );
    let size = format_bytes(on.kept_bytes);
    let limit = format_bytes(on.limit);
    if settings.disabled || on.limit == 0 {
        // The setting has its own remark; this is its effect on the program.
        found.push(Remark::fix(
            format!("every start on {gpu} compiles {size} again"),
            "nothing is stored",
            build,
        ));
    } else if !on.fits {
        let room = room_for(on.kept_bytes);
        let fix = match room <= MaxSize::largest() {
            true => format!("set CUDA_CACHE_MAXSIZE={room}, or {build}"),
            false => format!("{build}: a driver's cache holds at most 4 GiB"),
        };
        found.push(Remark::fix(
            format!("the results for {gpu} take {size}, more than a cache of {limit} holds"),
            "each start evicts what the next one needs: every start compiles again",
            fix,
        ));
    } else {
        let why = match on.limit - on.kept_bytes < held {
            true => format!(
                "other programs store {} there, and there is no room for both",
                format_bytes(held)
            ),
            false => "later starts find it in the driver's cache".to_owned(),
        };
        found.push(Remark::note(
            format!("the first start on {gpu} compiles {size} with its PTX, which fits into a cache of {limit}"),
            why,
            format!("to compile nothing at all, {build}; to do it ahead, `warpcc jit warm`"),
        ));
        let older = settings.max_size.of_older_drivers();
        if on.kept_bytes > older {
            let room = room_for(on.kept_bytes);
            found.push(Remark::note(
                format!("older drivers store only {}", format_bytes(older)),
                "on them every start would compile again",
                format!("set CUDA_CACHE_MAXSIZE={room}"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpcc_jit::Weight;

    fn on(kept_bytes: u64) -> OnGpu {
        OnGpu {
            gpu: Gpu::Known(90),
            files: Vec::new(),
            texts: 3,
            measured: 3,
            refused: 0,
            ptx_bytes: 5,
            cubin_bytes: 1,
            largest_cubin_bytes: 1,
            kept_bytes,
            seconds: 1.0,
            slowest_seconds: 1.0,
            limit: 1 << 30,
            fits: kept_bytes <= 1 << 30,
            gencode: gencode(Gpu::Known(90), &[Suffix::None]),
        }
    }

    fn advice(kept_bytes: u64) -> Vec<Remark> {
        let settings = JitSettings::read(&[("HOME".into(), "/h".into())]);
        of_gpu(&on(kept_bytes), &settings, 0)
    }

    #[test]
    fn a_fitting_cache_is_a_note_and_another_gets_a_size() {
        let small = advice(1 << 20);
        assert_eq!((small.len(), small[0].weight), (1, Weight::Note));
        assert!(
            small[0]
                .fix
                .contains("-gencode arch=compute_90,code=sm_90;")
        );
        let older = advice(300 << 20);
        assert!(
            older[1].fix.contains("CUDA_CACHE_MAXSIZE=402653184"),
            "{older:?}"
        );
        let large = advice(2 << 30);
        assert_eq!(large[0].weight, Weight::Fix);
        assert!(
            large[0].fix.contains("CUDA_CACHE_MAXSIZE=2684354560"),
            "{large:?}"
        );
        let huge = advice(4 << 30);
        assert!(huge[0].fix.contains("at most 4 GiB"), "{huge:?}");
    }

    #[test]
    fn the_option_has_the_letter_of_the_ptx() {
        let words = |suffixes: &[Suffix]| gencode(Gpu::Known(90), suffixes).unwrap_or_default();
        assert_eq!(
            words(&[Suffix::Exact]),
            "-gencode arch=compute_90a,code=sm_90a"
        );
        assert_eq!(words(&[]), "");
        assert_eq!(gencode(Gpu::Next, &[Suffix::None]), None);
    }
}
