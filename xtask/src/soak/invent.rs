//! Invents a random history: a small project, then calls with changes between them. The changes are made in `changes`; the
//! sources and the calls are made here.

use super::changes;
use super::history::{History, Step};
use super::programs;
use super::random::Random;
use super::sources::{HEADERS, SOURCES, writing};
use super::surroundings;

/// Steps that make the files that a call needs and no step has made.
fn missing(random: &mut Random, steps: &[Step], line: &[String], fake: bool) -> Vec<Step> {
    let uses = |name: &str| line.iter().any(|word| word.contains(name));
    let is_there = |path: &str| {
        steps
            .iter()
            .any(|s| s.rest().first().is_some_and(|p| p == path))
    };
    let mut more = Vec::new();
    for path in SOURCES {
        let linked = path == "src/s.cu" && uses("-dlink");
        if !(uses(path) || linked) || is_there(path) {
            continue;
        }
        // The same content under two names makes two objects.
        match path {
            "g.cpp" if is_there("f.cpp") && random.chance(70) => {
                more.push(Step::new(&["copy", "f.cpp", path]));
            }
            _ => more.push(writing(random, "write", path, fake)),
        }
    }
    if uses("mpicxx") && !is_there("{root}/host/mpicxx") {
        more.push(if fake && random.chance(25) {
            Step::new(&["static", "{root}/host/mpicxx"])
        } else {
            programs::wrapper(random, "{root}/host/mpicxx")
        });
    }
    if uses("-lfoo") && !is_there("lib/libfoo.a") {
        more.extend(changes::library(random, fake));
    }
    more
}

fn project(random: &mut Random, line: &[String], fake: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let uses = |name: &str| line.iter().any(|word| word.contains(name));
    steps.extend(missing(random, &[], line, fake));
    for header in HEADERS {
        for chance in if header == "a.h" { [100, 30] } else { [92, 20] } {
            if random.chance(chance) {
                let folder = random.one(&["inc1", "inc1", "inc2", "inc2", "src", "{shm}/inc"]);
                let path = format!("{folder}/{header}");
                steps.push(writing(random, "write", &path, fake));
            }
        }
    }
    if random.chance(60) {
        steps.push(Step::new(&["write", "data/d1", "data"]));
    }
    if uses("-optf") {
        steps.push(Step::new(&["write", "options", "-DOPT=1"]));
    }
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
    let walking = [
        ("@cudafe", "tk/bin/cudafe++"),
        ("@cicc", "tk/nvvm/bin/cicc"),
        ("@ptxas", "tk/bin/ptxas"),
        ("@fatbin", "tk/bin/fatbinary"),
        ("@nvlink", "tk/bin/nvlink"),
        ("@pp", "host/g++"),
        ("@host", "host/g++"),
        ("@as", "host/as"),
        ("@link", "host/ld"),
    ];
    for (stage, tool) in walking {
        let looks = |word: &String| word.starts_with(stage) && word.ends_with("environ");
        if steps.iter().any(|step| step.0.iter().any(looks)) {
            steps.push(Step::new(&["walker", &format!("{{root}}/{tool}")]));
        }
    }
    if fake && random.chance(30) {
        steps.push(Step::new(&[
            "script",
            "{root}/host/asked",
            "#!/bin/sh",
            "echo one",
        ]));
    }
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
        if random.chance(if folder == "lnk" || folder.starts_with("/proc") {
            60
        } else {
            96
        }) {
            words.insert(random.below(words.len() + 1), format!("-I{folder}"));
        }
    }
    words
}

/// Words for one call; `-o` names a file in `out`.
pub fn call(random: &mut Random, fake: bool) -> Vec<String> {
    if !fake {
        return super::invent_real::call(random);
    }
    let mut words: Vec<String> = Vec::new();
    let mut push = |list: &str| words.extend(list.split(' ').map(str::to_owned));
    let source = random.one(&["src/s.cu", "src/s.cu", "t.cu"]);
    let mode = random.below(21);
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
        19 => push("-c g.cpp -o out/f.o"),
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
    if random.chance(20) {
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

/// The same call, ended by a signal after a random time.
fn killed(random: &mut Random, line: &[String], search: &[String], fake: bool) -> Step {
    let signal = random.one(&["KILL", "KILL", "KILL", "TERM", "INT", "HUP"]);
    let milliseconds = random.below(if fake { 150 } else { 1500 }).to_string();
    let words = ["kill", signal, &milliseconds].map(str::to_owned);
    Step(words.iter().chain(line).chain(search).cloned().collect())
}

/// A whole history.
pub fn invent(seed: u64, fake: bool) -> History {
    let mut random = Random::new(seed);
    let random = &mut random;
    let usual = call(random, fake);
    let mut steps = project(random, &usual, fake);
    let setting = surroundings::Setting::choose(random, fake);
    setting.begin(random, &mut steps);
    let search = search_options(random);
    let as_call = |random: &mut Random, line: &[String]| {
        let mut words = vec!["call".to_owned()];
        words.extend(line.iter().chain(&search).cloned());
        // Both calls would keep their files in one folder, and the order of the calls would decide which ones stay.
        let shares_a_folder =
            (line.iter()).any(|w| ["-keep", "-keep-dir", "-odir"].contains(&&**w));
        if random.chance(5) && !shares_a_folder {
            words[0] = "together".to_owned();
            for number in 2..=2 + random.below(3) {
                words.push("--".to_owned());
                let folder = format!("out/{number}");
                words.extend(line.iter().map(|w| w.replace("out/", &folder)));
                words.extend(search.iter().cloned());
            }
        }
        Step(words)
    };
    if usual.iter().any(|word| word == "-dlink") {
        let line = ["-dc", "src/s.cu", "-o", "out/s.o"].map(str::to_owned);
        steps.push(as_call(random, &line));
    }
    if random.chance(15) {
        steps.extend(changes::change(
            random,
            &changes::About::new(&steps, &usual),
            fake,
        ));
    }
    steps.push(as_call(random, &usual));
    for _ in 0..1 + random.below(4) {
        for _ in 0..1 + random.below(2) {
            steps.extend(changes::change(
                random,
                &changes::About::new(&steps, &usual),
                fake,
            ));
        }
        let line = if random.chance(75) {
            usual.clone()
        } else {
            call(random, fake)
        };
        let more = missing(random, &steps, &line, fake);
        steps.extend(more);
        if random.chance(5) {
            steps.push(killed(random, &line, &search, fake));
        }
        if setting.go_on(random, &mut steps) {
            steps.push(as_call(random, &usual));
        }
        steps.push(as_call(random, &line));
    }
    History(steps)
}

/// The same history without the parts that contain any of these words: kinds of steps, lines of files, words of calls.
pub fn without(history: History, avoided: &[String]) -> History {
    let hit = |text: &String| avoided.iter().any(|word| text.contains(word.as_str()));
    let mut steps = history.0;
    steps.retain(|step| !avoided.iter().any(|word| step.verb() == word));
    for step in steps.iter_mut().filter(|step| !step.is_call()) {
        let mut at = 0;
        step.0.retain(|word| {
            at += 1;
            at <= 2 || !hit(word)
        });
    }
    steps.retain(|step| !matches!(step.verb(), "set" | "unset") || !step.rest().iter().any(hit));
    History(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_history() {
        for seed in 0..200 {
            let history = invent(seed, true);
            assert_eq!(history, invent(seed, true));
            let text = history.to_string();
            assert_eq!(History::parse(&text).expect("parses"), history, "{text}");
        }
    }
}
