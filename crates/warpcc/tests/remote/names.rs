//! Tests that the names of a call's outputs, from its command line alone, are those of nvcc's plan: in every mode, and for
//! every case of the suite. Where they differ, no result from elsewhere is taken, and none is stored.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use warpcc_plan::{FileKind, Invocation, TaskGraph, Transcript};

use crate::space::{Program, TestSpace, Toolkit, small};

const FILES: [&str; 16] = [
    "a.cu", "b.cu", "sub/c.cu", "a.b.cu", ".cu", "c.cpp", "d.c", "n.s", "i.ii", "noext", "o.o",
    "l.a", "p.ptx", "q.cubin", "r.fatbin", "l.cup",
];

const LINES: [&str; 58] = [
    "-c a.cu",
    "-c sub/c.cu",
    "-c a.cu b.cu -odir out",
    "-c a.cu b.cu -odir out/",
    "-c a.cu -odir out -o x.o",
    "-c ./a.cu",
    "-c a.cu -o ./x.o",
    "-c a.b.cu",
    "-c .cu",
    "-x cu -c noext",
    "-c a.cu o.o l.a",
    "-c c.cpp d.c n.s i.ii",
    "-dc a.cu p.ptx q.cubin",
    "-dw a.cu",
    "-rdc=true -c a.cu",
    "-ptx a.cu sub/c.cu c.cpp",
    "-x cu -ptx c.cpp",
    "-ptx l.cup",
    "-cubin a.cu -arch=sm_80",
    "-cubin p.ptx -arch=sm_80",
    "-fatbin a.cu p.ptx q.cubin o.o",
    "-fatbin -dlink o.o -odir out",
    "-cubin -dlink a.cu -arch=sm_80 -odir out",
    "-cuda sub/c.cu",
    "-cuda a.cu l.cup",
    "-optix-ir a.cu",
    "-ltoir -dlto a.cu -arch=sm_80",
    "-dlto -dc a.cu",
    "-dlink o.o",
    "-dlink a.cu b.cu -o link.o",
    "-lib o.o -odir out",
    "-lib a.cu b.cu",
    "-lib -c a.cu",
    "a.cu b.cu",
    "a.cu -odir out",
    "-shared a.cu -o b.so.1",
    "-shared -c a.cu",
    "-link a.cu",
    "-r o.o a.cu",
    "a.cu -o sub/app",
    "-MD -c sub/c.cu",
    "-MD -c a.cu -o x.y/app",
    "-MD -c a.cu -o a.tar.gz",
    "-MD -c a.cu -o .hid",
    "-MD -MF f.d -c a.cu",
    "-MD -c a.cu -odir out -o b.o",
    "-MD a.cu b.cu -odir out",
    "-MD a.cu -o app",
    "-MD -MF f.d o.o",
    "-MD -c .cu",
    "-MD -ptx c.cpp",
    "-MD -MF f.d -ptx c.cpp",
    "-MMD -c a.cu c.cpp n.s o.o",
    "-MD -x cu -c noext",
    "-MD -lib a.cu",
    "-MD -dlink o.o a.cu -o app.o",
    "-MMD -cuda a.cu",
    "-MD -dc a.cu p.ptx -odir out",
];

/// The outputs in nvcc's plan, as paths outside of the private folder; `None` where nvcc, or our reading of its plan,
/// fails.
fn planned(space: &TestSpace, line: &[String]) -> Option<BTreeSet<String>> {
    let private = "/tmp/warpcc-names/";
    let mut args = line.to_vec();
    args.extend(
        [
            "--dryrun",
            "--keep",
            "--keep-dir",
            private.trim_end_matches('/'),
        ]
        .map(str::to_owned),
    );
    let said = space.run(&Program::Nvcc, &args);
    let transcript = Transcript::parse(&said.stderr_text()).ok()?;
    let graph = TaskGraph::build(&transcript, private).ok()?;
    let outputs = graph
        .files
        .iter()
        .filter(|file| file.kind == FileKind::Output);
    (said.code == 0).then(|| outputs.map(|file| file.path.clone()).collect())
}

/// Compares the outputs where both sides understand the line. False where one side does not.
#[track_caller]
fn agree(space: &TestSpace, line: &[String]) -> bool {
    let read = |name: &str| fs::read(space.work().join(&space.stand_in).join(name)).ok();
    let Ok(invocation) = Invocation::parse(line, "", "", &read) else {
        return false;
    };
    if invocation.plain.is_some() || invocation.keep_dir().is_some() {
        return false;
    }
    let Some(planned) = planned(space, line) else {
        return false;
    };
    let outputs = invocation.outputs();
    let implied: BTreeSet<String> = outputs.into_iter().map(|output| output.path).collect();
    assert_eq!(implied, planned, "{line:?} of {}", space.toolkit.name);
    true
}

#[test]
fn in_every_mode() {
    for toolkit in Toolkit::all() {
        let space = TestSpace::with_toolkit("names-modes", small(toolkit));
        for file in FILES {
            space.write(file, "__global__ void k() {}\n");
        }
        fs::create_dir_all(space.work().join("out")).expect("a folder");
        let split = |line: &str| space.words(line);
        let compared = LINES
            .iter()
            .filter(|line| agree(&space, &split(line)))
            .count();
        assert!(
            compared >= LINES.len() - 3,
            "only {compared} lines were compared"
        );
    }
}

#[test]
fn of_every_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let mut space = TestSpace::new("names-cases");
    let mut compared = 0;
    for entry in fs::read_dir(cases).expect("the cases").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (text, folder) = match entry.path().is_dir() {
            true => (entry.path().join("case.cu"), PathBuf::from(&name)),
            false => (entry.path(), PathBuf::new()),
        };
        let Ok(text) = fs::read_to_string(text) else {
            continue;
        };
        space.stand_in = folder.clone();
        if entry.path().is_dir() {
            let mut copy = std::process::Command::new("cp");
            copy.arg("-r").arg(entry.path()).arg(space.work());
            assert!(copy.status().expect("cp").success());
        }
        space.write(&folder.join("case.cu").to_string_lossy(), &text);
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("//#Args:"));
        for line in lines.filter(|line| !line.contains(['{', '$', '`'])) {
            compared += usize::from(agree(&space, &space.words(line)));
        }
    }
    assert!(compared > 50, "only {compared} lines were compared");
}
