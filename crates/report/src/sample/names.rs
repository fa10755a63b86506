//! The sample's files, headers and reasons: what a project of kernels looks like.

use std::time::Duration;

use super::planned::{Planned, change, read, record, tasks};
use super::random::Random;
use super::shape::Shape;
use crate::record::{CallOutcome, Task};

/// Folders, their kernels, and how heavy those are.
const FOLDERS: [(&str, &[&str], f64); 6] = [
    (
        "attention",
        &["fwd", "bwd", "fwd_split", "fwd_paged", "bwd_deterministic"],
        2.2,
    ),
    (
        "gemm",
        &["gemm", "gemm_grouped", "gemm_fp8", "gemm_w4a16"],
        1.6,
    ),
    ("moe", &["topk", "permute", "align", "fused"], 0.9),
    ("norm", &["rms_norm", "layer_norm", "fused_add"], 0.4),
    ("quant", &["int8", "fp8", "awq", "marlin"], 0.7),
    (
        "ops",
        &["activation", "rotary", "cache", "sampling", "copy"],
        0.3,
    ),
];

const VARIANTS: [&str; 8] = [
    "hdim64_bf16",
    "hdim64_fp16",
    "hdim96_bf16",
    "hdim128_bf16",
    "hdim128_fp16",
    "hdim192_bf16",
    "hdim256_bf16",
    "hdim256_fp16",
];

/// Headers, and how large they are in KiB.
const HEADERS: [(&str, u64); 18] = [
    ("third_party/templates/include/tensor/layout.hpp", 182),
    (
        "third_party/templates/include/tensor/algorithm/copy.hpp",
        96,
    ),
    (
        "third_party/templates/include/atom/mma_traits_sm90.hpp",
        410,
    ),
    (
        "third_party/templates/include/atom/mma_traits_sm100.hpp",
        520,
    ),
    ("third_party/templates/include/numeric/conversion.h", 260),
    (
        "third_party/templates/include/gemm/kernel/gemm_universal.hpp",
        88,
    ),
    ("kernels/attention/kernel_traits.h", 31),
    ("kernels/attention/softmax.h", 22),
    ("kernels/core/dispatch.h", 14),
    ("/usr/local/cuda/include/cuda_runtime_api.h", 690),
    ("/usr/local/cuda/include/cuda_fp16.hpp", 240),
    ("/usr/local/cuda/include/cuda_bf16.hpp", 265),
    ("/usr/local/cuda/include/crt/sm_90_rt.hpp", 40),
    (
        "/usr/local/cuda/include/cub/device/device_radix_sort.cuh",
        210,
    ),
    ("/usr/local/cuda/include/thrust/detail/type_traits.h", 36),
    ("/usr/include/c++/12/type_traits", 120),
    ("/usr/include/c++/12/bits/stl_algo.h", 212),
    ("/opt/torch/include/ATen/core/TensorBody.h", 330),
];

pub(super) fn call(at: usize, shape: &Shape, random: &mut Random) -> Planned {
    let (folder, kernels, heavy) = FOLDERS[random.below(FOLDERS.len() as u64) as usize];
    let kernel = kernels[random.below(kernels.len() as u64) as usize];
    let variant = VARIANTS[at % VARIANTS.len()];
    let source = format!("kernels/{folder}/{kernel}_{variant}_{at:04}.cu");
    let draw = random.below(1000);
    if draw < shape.direct_hits {
        let mut record = record(at, shape, source, CallOutcome::DirectHit);
        record.wall = Duration::from_micros(5_000 + random.below(4_000));
        record.saved = Duration::from_millis((9_000.0 * heavy) as u64 + random.below(4000));
        return Planned {
            record,
            takes: Vec::new(),
        };
    }
    if draw >= 990 {
        return plain(record(at, shape, source, fallback(draw)), random);
    }
    let mut record = record(at, shape, source, CallOutcome::Built);
    let from_cache = match random.below(10) {
        0..4 => {
            let header = format!("kernels/{folder}/traits.h");
            record.missed = vec![change("header", &header, None, None)];
            60
        }
        4..6 => {
            record.missed = vec![change("header", "kernels/core/dispatch.h", None, None)];
            650
        }
        6 => {
            record.missed = vec![change("option", "-O", Some("-O2"), Some("-O3"))];
            500
        }
        7 => {
            record.missed = vec![change(
                "host compiler",
                "g++",
                Some("12.2.0"),
                Some("12.3.0"),
            )];
            300
        }
        _ => 0,
    };
    let (tasks, takes) = tasks(&shape.architectures, heavy, from_cache, random);
    record.tasks = tasks;
    if random.below(40) == 0 {
        record.tasks[1].not_stored = Some("an input changed while it ran".into());
    }
    let used = HEADERS
        .iter()
        .filter(|header| folder == "attention" || !header.0.contains("attention"));
    record.headers = read(used.map(|(path, kib)| (path_of(path), kib << 10)));
    Planned { record, takes }
}

fn path_of(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/src/sample/{path}")
    }
}

fn fallback(draw: u64) -> CallOutcome {
    let reason = match draw % 3 {
        0 => "option --fdevice-time-trace",
        1 => "an unknown line in nvcc's dry run",
        _ => "option -hls",
    };
    CallOutcome::Fallback {
        reason: reason.into(),
    }
}

fn plain(mut record: crate::record::InvocationRecord, random: &mut Random) -> Planned {
    let took = Duration::from_millis(3000 + random.below(9000));
    record.wall = took;
    record.tasks = vec![Task {
        tool: crate::build::PLAIN.into(),
        label: "plain nvcc".into(),
        user: took.mul_f64(0.9),
        system: took.mul_f64(0.05),
        peak_kib: 1_400_000,
        ..Task::default()
    }];
    Planned {
        takes: vec![u64::try_from(took.as_micros()).unwrap_or(1)],
        record,
    }
}
