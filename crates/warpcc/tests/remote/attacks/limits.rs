//! Attacks on memory, disk and time: claimed sizes, records that unpack to more, files that never end.

use std::fs;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use warpcc_cache::{Digest, encode_record};

use super::ENOUGH;
use crate::faulty::{Faulty, Mode, STALLED_SIZE};
use crate::forger::{self, Forger};
use crate::{ONE, Project};

/// The memory limit of a call that reads a short record, in KiB.
const LITTLE: u64 = 1500 << 10;

#[test]
fn sizes_that_are_claimed_are_not_believed() {
    let mut forger = Forger::new(Project::new("attack-sizes"), ONE);
    for size in [6 << 30, 1 << 40, u64::MAX, u64::MAX - 200] {
        for level in ["direct", "steps"] {
            forger.forge(level, |variant| {
                for output in &mut variant.outcome.outputs {
                    // A blob that is nowhere, or the zeros below.
                    output.digest.size = size;
                }
            });
        }
        let call = forger.attack(ENOUGH);
        assert_eq!(call.stderr, "", "{size} was asked for");
        assert!(forger.refused() > 0);
    }
    // The cache may hold less than a single object.
    forger.forge("direct", |variant| {
        variant.outcome.outputs[0].digest.size = 700 << 20
    });
    forger.forget("steps");
    forger.project.space.set_env("WARPCC_MAX_SIZE", "1G");
    let call = forger.attack(ENOUGH);
    assert_eq!(call.stderr, "");
    forger.demand_refusal("more than the cache may hold");
}

#[test]
fn a_record_is_unpacked_only_so_far() {
    let mut forger = Forger::new(Project::new("attack-record"), ONE);
    let direct = forger.only_direct();
    // A blob of 200 KB that unpacks to 6 GiB, in place of a record.
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("packs");
    for _ in 0..6 << 10 {
        std::io::Write::write_all(&mut packer, &[0; 1 << 20]).expect("packs");
    }
    let bomb = packer.finish().expect("packs");
    for claimed in [6 << 30, i64::MAX, 1] {
        let digest = re::Digest {
            hash: "ab".repeat(32),
            size_bytes: claimed,
        };
        let record = re::OutputFile {
            path: "record".to_owned(),
            digest: Some(digest),
            ..Default::default()
        };
        let result = re::ActionResult {
            output_files: vec![record],
            ..Default::default()
        };
        fs::write(forger.path("cas", &"ab".repeat(32)), &bomb).expect("a blob");
        fs::write(
            forger.path("ac", &direct),
            prost::Message::encode_to_vec(&result),
        )
        .expect("a result");
        forger.attack(LITTLE).demand_one_warning("file:");
    }
    // In the result itself.
    let inline = re::ActionResult {
        stdout_raw: [b"WCCREM01", &bomb[..]].concat(),
        ..Default::default()
    };
    fs::write(
        forger.path("ac", &direct),
        prost::Message::encode_to_vec(&inline),
    )
    .expect("a result");
    forger.attack(LITTLE).demand_one_warning("malformed");
    // A result that names nothing but empty entries: a hundred bytes of memory for each two.
    fs::write(forger.path("ac", &direct), [0x12, 0].repeat(8 << 20)).expect("a result");
    forger.attack(LITTLE).demand_one_warning("more than 1 MiB");
    // A sparse file of 6 GiB.
    let file = fs::File::create(forger.path("ac", &direct)).expect("a result");
    file.set_len(6 << 30).expect("a sparse one");
    forger.attack(LITTLE).demand_one_warning("more than 1 MiB");
}

#[test]
fn short_records_do_not_say_much() {
    let mut forger = Forger::new(Project::new("attack-manifest"), ONE);
    let direct = forger.only_direct();
    let object = forger.honest(&direct)[0].outcome.outputs[0].digest;
    let outcome = forger::outcome("-o", &object);
    // A path of 4,000 bytes, then thousands that share all of it: 40 bytes in the record, 4,001 in memory. Repeated bytes
    // compress well.
    let long = format!("/{}", "d/".repeat(1999));
    let mut files = forger::file(&long, 1, &[7; 32]);
    for _ in 1..16_000 {
        files.extend(forger::varint(long.len() as u64));
        files.extend([0, 0, 0, 1, 0, 0, 0]);
        files.extend([7; 32]);
    }
    let manifest = forger::files(16_000, &files);
    forger.put(&direct, &forger::record(&direct, &manifest, &outcome, 6));
    forger.attack(LITTLE / 2).demand_one_warning("malformed");
    // A million files that are not there, and a million names in one folder.
    let files = forger::file("x", 1, &[7; 32]).repeat(1_000_000);
    let files = forger::files(1_000_000, &files);
    let mut names = vec![0, 0, 1];
    names.extend([0, 1, b'/', 0, 0, 0, 0, 0, 0, 0]);
    names.extend(forger::varint(4_000_000));
    for _ in 0..4_000_000 {
        names.extend([0, 0, 1, b'x']);
    }
    names.push(0);
    for manifest in [files, names] {
        forger.put(&direct, &forger::record(&direct, &manifest, &outcome, 1));
        forger.attack(LITTLE / 2).demand_one_warning("malformed");
    }
    // Thousands of variants, each of which differs.
    let manifest = forger::files(1, &forger::file("/nothing", 1, &[7; 32]));
    forger.put(
        &direct,
        &forger::record(&direct, &manifest, &outcome, 5_000),
    );
    assert_eq!(forger.attack(LITTLE).stderr, "");
}

#[test]
fn files_that_never_end_are_not_read() {
    let mut forger = Forger::new(Project::new("attack-files"), ONE);
    let pipe = forger.project.space.beside("pipe");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    );
    made.expect("a pipe");
    let huge = forger.project.space.beside("huge");
    let file = fs::File::create(&huge).expect("a file");
    file.set_len(1 << 43).expect("a sparse one");
    let direct = forger.only_direct();
    let object = forger.honest(&direct)[0].outcome.outputs[0].digest;
    let outcome = forger::outcome("-o", &object);
    let kernel = fs::metadata("/proc/kcore").map_or(0, |found| found.len());
    let files = [
        (pipe.display().to_string(), 0),
        (huge.display().to_string(), 1 << 43),
        ("/dev/zero".to_owned(), 0),
        ("/dev/full".to_owned(), u64::MAX),
        ("/proc/self/mem".to_owned(), 1),
        ("/proc/kmsg".to_owned(), 1),
        ("/proc/kcore".to_owned(), kernel),
    ];
    for (path, size) in files {
        let manifest = forger::files(1, &forger::file(&path, size, &[7; 32]));
        forger.put(&direct, &forger::record(&direct, &manifest, &outcome, 1));
        assert_eq!(forger.attack(ENOUGH).stderr, "", "{path}");
    }
}

#[test]
fn a_shared_folder_may_hold_what_is_no_file() {
    let mut forger = Forger::with(Project::new("attack-folder"), ONE, "|timeout=2");
    let pipe = |path: &std::path::Path| {
        _ = fs::remove_file(path);
        let fifo = rustix::fs::FileType::Fifo;
        let made = rustix::fs::mknodat(rustix::fs::CWD, path, fifo, rustix::fs::Mode::RWXU, 0);
        made.expect("a pipe");
    };
    let direct = forger.only_direct();
    let object = forger.honest(&direct)[0].outcome.outputs[0].digest;
    let result = forger.path("ac", &direct);
    let whole = fs::read(&result).expect("a result");
    let blob = forger.path("cas", &object.hex());
    pipe(&blob);
    forger.attack(ENOUGH);
    fs::remove_file(&blob).expect("the pipe");
    std::os::unix::fs::symlink("/dev/zero", &blob).expect("a link");
    forger.attack(ENOUGH);
    for other in ["/dev/zero", "/proc/self/mem"] {
        fs::remove_file(&result).expect("a result");
        std::os::unix::fs::symlink(other, &result).expect("a link");
        forger.attack(ENOUGH);
    }
    pipe(&result);
    forger.attack(ENOUGH);
    fs::remove_file(&result).expect("the pipe");
    fs::create_dir(&result).expect("a folder");
    forger.attack(ENOUGH);
    fs::remove_dir(&result).expect("the folder");
    // Another key's, and one that ends early.
    let step = forger.keys("steps").remove(0);
    fs::copy(forger.path("ac", &step), &result).expect("a result");
    forger.attack(ENOUGH).demand_one_warning("another key");
    fs::write(&result, &whole[..whole.len() / 2]).expect("a result");
    forger
        .attack(ENOUGH)
        .demand_one_warning("not an ActionResult");
}

#[test]
fn claimed_sizes_cost_no_time_and_no_memory() {
    let shared = Project::new("attack-server");
    let mut forger = Forger::new(shared, ONE);
    let server = Faulty::start();
    let direct = forger.only_direct();
    let mut forged = forger.honest(&direct);
    forged[0].outcome.outputs[0].digest = Digest {
        hash: [7; 32],
        size: STALLED_SIZE,
    };
    let record = encode_record(&forger::key(&direct), &forged).expect("a record");
    server.put(&format!("/ac/{direct}"), forger::result(&record));
    let url = format!("http://127.0.0.1:{}|timeout=3", server.port);
    forger.project.through(&url);
    for (mode, about) in [
        (Mode::Stall, "did not answer"),
        (Mode::Huge, "did not answer"),
        (Mode::Endless, "more than 1 MiB"),
    ] {
        server.set(mode);
        let call = forger.attack(LITTLE);
        let refused = forger.refused();
        assert_eq!(refused, 0, "is less than 4 GiB of this disk free?");
        call.demand_one_warning(about);
    }
}
