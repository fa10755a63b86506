//! The parts of a sample call: its tasks, its record, what it read.

use std::time::Duration;

use super::random::Random;
use super::shape::Shape;
use crate::record::{
    Budget, CallOutcome, Header, Headers, InvocationRecord, KeyPartChange, Task, TaskEnd,
};

/// A call that is not finished: its tasks with how long each will take, in µs.
pub(crate) struct Planned {
    pub(crate) record: InvocationRecord,
    pub(crate) takes: Vec<u64>,
}

/// The tasks of a call for some architectures, and how long each takes, in µs.
pub(crate) fn tasks(
    architectures: &[String],
    heavy: f64,
    from_cache: u64,
    random: &mut Random,
) -> (Vec<Task>, Vec<u64>) {
    let mut tasks = Vec::new();
    let mut takes = Vec::new();
    let mut add =
        |tool: &str, arch: Option<String>, label: &str, ms: f64, mib: f64, needs: &[u32]| {
            let ms = ms * random.spread();
            let hit = random.below(1000) < from_cache && tool != "host";
            let took = Duration::from_micros((ms * 1000.0) as u64);
            tasks.push(Task {
                tool: tool.into(),
                architecture: arch,
                label: label.into(),
                state: if hit { TaskEnd::Hit } else { TaskEnd::Ran },
                user: if hit {
                    Duration::ZERO
                } else {
                    took.mul_f64(0.93)
                },
                system: if hit {
                    Duration::ZERO
                } else {
                    took.mul_f64(0.05)
                },
                saved: if hit { took } else { Duration::ZERO },
                peak_kib: if hit {
                    0
                } else {
                    (mib * 1024.0 * random.spread()) as u64
                },
                input_bytes: (ms * 900.0) as u64,
                output_bytes: (ms * 350.0) as u64,
                needs: needs.to_vec(),
                ..Task::default()
            });
            takes.push((ms * 1000.0) as u64 + 1);
            u32::try_from(tasks.len() - 1).unwrap_or(0)
        };
    let pre = add("host", None, "preprocess", 700.0, 190.0, &[]);
    let front = add(
        "cudafe++",
        None,
        "split host and device code",
        900.0,
        420.0,
        &[pre],
    );
    let mut cubins = Vec::new();
    for arch in architectures {
        // Newer ones have more to choose from.
        let newer = 1.0 + f64::from(arch.len() as u32) * 0.12;
        let pre = add(
            "host",
            Some(format!("compute_{arch}")),
            "preprocess",
            650.0,
            180.0,
            &[],
        );
        let cicc = add(
            "cicc",
            Some(format!("compute_{arch}")),
            "compile to PTX",
            2600.0 * heavy * newer,
            900.0 * heavy,
            &[pre, front],
        );
        cubins.push(add(
            "ptxas",
            Some(format!("sm_{arch}")),
            "assemble",
            2100.0 * heavy * heavy * newer,
            600.0 * heavy,
            &[cicc],
        ));
    }
    let fat = add("fatbinary", None, "pack", 30.0, 30.0, &cubins);
    add("host", None, "compile", 1900.0, 520.0, &[front, fat]);
    (tasks, takes)
}

/// The parts that say what a call was and why it missed.
pub(crate) fn record(
    at: usize,
    shape: &Shape,
    source: String,
    outcome: CallOutcome,
) -> InvocationRecord {
    let object = source.replace(".cu", ".o").replace('/', "_");
    let mut args = vec!["nvcc".to_owned(), "-O3".into(), "-std=c++17".into()];
    for arch in &shape.architectures {
        args.push(format!("-gencode=arch=compute_{arch},code=sm_{arch}"));
    }
    args.extend([
        "-c".into(),
        format!("/src/sample/{source}"),
        "-o".into(),
        object,
    ]);
    InvocationRecord {
        id: at as u64 + 1,
        build: format!("sample-{}", shape.seed),
        driver: Some(format!("ninja -j{} (sample data)", shape.jobs)),
        host: "sample-machine".into(),
        args,
        directory: "/src/sample/build".into(),
        sources: vec![format!("/src/sample/{source}")],
        outcome,
        budget: Budget {
            slots: shape.slots,
            memory_kib: shape.memory_kib,
        },
        ..InvocationRecord::default()
    }
}

/// The headers that a call read, from a list of paths and sizes.
pub(crate) fn read(headers: impl Iterator<Item = (String, u64)>) -> Headers {
    Headers::from_read(headers.map(|(path, bytes)| Header { path, bytes }))
}

/// One part of a key that changed.
pub(crate) fn change(
    kind: &str,
    name: &str,
    old: Option<&str>,
    new: Option<&str>,
) -> KeyPartChange {
    KeyPartChange {
        kind: kind.into(),
        name: name.into(),
        old: old.map(Into::into),
        new: new.map(Into::into),
    }
}
