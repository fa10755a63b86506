//! A history by chance: a small project, then calls with changes between them. What the changes are stands in
//! `changes`; here is what sources say and what is asked of nvcc.

use super::changes;
use super::history::{History, Step};
use super::random::Random;

/// Folders that headers may stand in.
pub const FOLDERS: [&str; 5] = ["inc1", "inc2", "src", "{shm}/inc", "lnk"];
/// Headers.
pub const HEADERS: [&str; 3] = ["a.h", "b.h", "c.h"];
/// What directives look at.
pub const DATA: [&str; 6] = [
    "data/d1",
    "data/d2",
    "{shm}/d3",
    "lnkdata",
    "/proc/self/cwd/data/d1",
    "lnk/d4",
];
/// Variables that sources ask for.
pub const VARIABLES: [&str; 8] = [
    "SK_A",
    "SK_B",
    "GNUTARGET",
    "OCG_FLAGS",
    "GCC_ROOT",
    "CPATH",
    "LC_ALL",
    "HOME",
];
const STAGES: [&str; 9] = [
    "pp", "cudafe", "cicc", "ptxas", "fatbin", "host", "as", "nvlink", "link",
];

/// Sources that a project has.
pub const SOURCES: [&str; 3] = ["src/s.cu", "t.cu", "f.cpp"];

/// One directive of the fake tools.
fn directive(random: &mut Random) -> String {
    let stage = random.one(&STAGES);
    let condition = match random.below(10) {
        0 => "?80",
        1 => "?75",
        2 => "?host",
        _ => "",
    };
    let what = match random.below(36) {
        0..=8 => format!("read {}", random.one(&DATA)),
        9..=14 => format!("env {}", random.one(&VARIABLES)),
        15..=18 => format!("exists {}", random.one(&DATA)),
        19 => "list data".to_owned(),
        20 => format!("write out/side{} text", random.below(2)),
        21..=22 => "exec asked".to_owned(),
        23..=24 => "pwd".to_owned(),
        25 => "environ".to_owned(),
        26 => format!("link {}", random.one(&["lnkdata", "lnk"])),
        27 => format!("real {}", random.one(&DATA)),
        28..=29 => format!("warn number {}", random.below(3)),
        30 if random.chance(20) => "fail on purpose".to_owned(),
        _ if stage == "pp" => format!("has {}", random.one(&HEADERS)),
        _ => format!("read {}", random.one(&DATA)),
    };
    format!("@{stage}{condition} {what}")
}

/// The lines of a source, header or data file.
pub fn lines(random: &mut Random, path: &str, fake: bool) -> Vec<String> {
    if path.contains("data") || path.contains("/d") {
        return vec![format!("data {}", random.below(5))];
    }
    if !fake {
        return super::invent_real::lines(random, path);
    }
    let is_header = path.ends_with(".h");
    let mut all = Vec::new();
    let header = HEADERS.iter().position(|h| path.ends_with(h)).unwrap_or(3);
    for (at, name) in HEADERS.iter().enumerate() {
        // A header includes only those before it: no circles.
        if at < header && random.chance(if is_header { 20 } else { 50 }) {
            all.push(if random.chance(50) {
                format!("#include \"{name}\"")
            } else {
                format!("#include <{name}>")
            });
        }
    }
    for _ in 0..random.below(if is_header { 3 } else { 4 }) {
        all.push(directive(random));
    }
    all.push(format!("text {}", random.below(10)));
    if random.chance(30) {
        all.push(format!("void function{}", random.below(3)));
    }
    all
}

/// A step that writes a file.
pub fn writing(random: &mut Random, verb: &str, path: &str, fake: bool) -> Step {
    let mut words = vec![verb.to_owned(), path.to_owned()];
    words.extend(lines(random, path, fake));
    Step(words)
}

fn project(random: &mut Random, fake: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for path in SOURCES {
        steps.push(writing(random, "write", path, fake));
    }
    for header in HEADERS {
        let folder = random.one(&FOLDERS[..4]);
        steps.push(writing(
            random,
            "write",
            &format!("{folder}/{header}"),
            fake,
        ));
        if random.chance(30) {
            let folder = random.one(&FOLDERS[..4]);
            steps.push(writing(
                random,
                "write",
                &format!("{folder}/{header}"),
                fake,
            ));
        }
    }
    steps.push(Step::new(&["write", "data/d1", "data"]));
    steps.push(Step::new(&["write", "options", "-DOPT=1"]));
    steps.push(Step::new(&["folder", "out"]));
    if random.chance(60) {
        steps.push(Step::new(&[
            "link",
            "lnk",
            random.one(&["inc1", "inc2", "data"]),
        ]));
    }
    if random.chance(60) {
        steps.push(Step::new(&[
            "link",
            "lnkdata",
            random.one(&["data/d1", "data/d2"]),
        ]));
    }
    if fake && random.chance(30) {
        steps.push(Step::new(&[
            "script",
            "{root}/host/asked",
            "#!/bin/sh",
            "echo one",
        ]));
    }
    if fake && random.chance(40) {
        steps.push(changes::wrapper(random, "{root}/host/mpicxx"));
    }
    steps.extend(changes::library(random, fake));
    steps
}

fn search_options(random: &mut Random) -> Vec<String> {
    let mut words = Vec::new();
    for folder in [
        "inc1",
        "inc2",
        "src",
        "{shm}/inc",
        "lnk",
        "/proc/self/cwd/inc1",
    ] {
        if random.chance(80) {
            words.insert(random.below(words.len() + 1), format!("-I{folder}"));
        }
    }
    words
}

/// Words for one call; `-o` names a file in `out`.
pub fn call(random: &mut Random, fake: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut push = |list: &str| words.extend(list.split(' ').map(str::to_owned));
    let source = random.one(&["src/s.cu", "src/s.cu", "t.cu"]);
    let mode = random.below(20);
    match mode {
        0..=8 => push(&format!("-c {source} -o out/s.o")),
        9 => push(&format!("-dc {source} -o out/s.o")),
        10 => push(&format!("-ptx {source} -o out/s.ptx")),
        11 => push(&format!("-cubin {source} -o out/s.cubin")),
        12 => push(&format!("-fatbin {source} -o out/s.fatbin")),
        13 => push("-dlink out/s.o -o out/l.o"),
        14..=15 => push("src/s.cu f.cpp -o out/app -Llib -lfoo"),
        16 => push("-lib src/s.cu -o out/x.a"),
        17 => push("-c src/s.cu t.cu -odir out"),
        18 => push(&format!("-c {source} -o out/s.o -keep -keep-dir out")),
        _ => push("-c f.cpp -o out/f.o"),
    }
    if random.chance(25) && (mode < 9 || mode == 10) {
        push("-MD -MF out/s.d");
    }
    match random.below(8) {
        0 => push("-arch=sm_80"),
        1 if mode < 10 || mode == 12 => {
            push("-gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80");
        }
        2 if mode < 10 => push("-gencode arch=compute_80,code=compute_80"),
        _ => {}
    }
    if random.chance(12) {
        push("-g");
    }
    if random.chance(12) {
        push("-lineinfo");
    }
    if random.chance(8) {
        push("-optf options");
    }
    if fake && random.chance(20) {
        push("-ccbin mpicxx");
    }
    if (14..=15).contains(&mode) && random.chance(40) {
        push(random.one(&[
            "-Xlinker -Map=out/map",
            "-Xlinker -Map -Xlinker out/map",
            "-Xlinker --dependency-file=out/map",
        ]));
    }
    words
}

/// A whole history.
pub fn invent(seed: u64, fake: bool) -> History {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut steps = project(random, fake);
    let search = search_options(random);
    let as_call = |random: &mut Random, line: &[String]| {
        let mut words = vec!["call".to_owned()];
        words.extend(line.iter().chain(&search).cloned());
        if random.chance(5) {
            words[0] = "pair".to_owned();
            words.push("--".to_owned());
            let other = line.iter().map(|w| w.replace("out/", "out2/"));
            words.extend(other.chain(search.iter().cloned()));
        }
        Step(words)
    };
    let usual = call(random, fake);
    if random.chance(30) {
        steps.push(Step::new(&["folder", "out2"]));
    }
    if random.chance(15) {
        steps.extend(changes::change(random, fake));
    }
    steps.push(as_call(random, &usual));
    for _ in 0..2 + random.below(5) {
        for _ in 0..1 + random.below(2) {
            steps.extend(changes::change(random, fake));
        }
        let line = if random.chance(75) {
            usual.clone()
        } else {
            call(random, fake)
        };
        steps.push(as_call(random, &line));
    }
    History(steps)
}
