//! Invents changes between two calls: to files, links, folders, variables, programs, toolkits and old outputs.

use super::history::Step;
use super::programs;
use super::random::Random;
use super::sources::{DATA, FOLDERS, HEADERS, SOURCES, VARIABLES, writing};

/// The files, variables and outputs that a history uses so far. A change to one of them is likely to change a result.
#[derive(Debug, Default)]
pub struct About {
    files: Vec<String>,
    variables: Vec<String>,
    outputs: Vec<String>,
}

impl About {
    /// Collects them from the steps, and from the call that most steps surround.
    pub fn new(steps: &[Step], line: &[String]) -> Self {
        let mut about = Self::default();
        for step in steps {
            if step.verb() == "write" || step.verb() == "script" {
                about.files.extend(step.rest().first().cloned());
            }
            for word in step.rest() {
                let mut parts = word.split(' ').skip(1);
                match (parts.next(), parts.next()) {
                    (Some("read" | "exists" | "real"), Some(file)) => {
                        about.files.push(file.to_owned());
                    }
                    (Some("env"), Some(name)) => about.variables.push(name.to_owned()),
                    (Some("environ"), _) => about.variables.push("SK_A".to_owned()),
                    (Some("first" | "link"), Some(file)) if file.starts_with("data/") => {
                        about.files.push(file.to_owned());
                    }
                    _ if word.contains("MAKELEVEL") => about.variables.push("MAKELEVEL".to_owned()),
                    _ if word.contains("SPACK_CXX") => about.variables.push("SPACK_CXX".to_owned()),
                    _ => {}
                }
            }
        }
        let outputs = line
            .iter()
            .filter_map(|w| w.find("out/").map(|at| &w[at..]));
        about.outputs = outputs.map(str::to_owned).collect();
        about
    }
}

/// One of `about` in three of four cases, else one of `any`.
fn choose<'a>(random: &mut Random, about: &'a [String], any: &[&'a str]) -> &'a str {
    if about.is_empty() || random.chance(25) {
        return random.one(any);
    }
    &about[random.below(about.len())]
}

/// A library for the linkers, as a regular or a thin archive.
pub fn library(random: &mut Random, fake: bool) -> Vec<Step> {
    if !fake {
        return Vec::new();
    }
    let mut steps = vec![Step::new(&["write", "lib/m.o", "member 1"])];
    steps.push(if random.chance(50) {
        Step::new(&["thin", "lib/libfoo.a", "m.o"])
    } else {
        Step::new(&[
            "write",
            "lib/libfoo.a",
            "!<arch>",
            "/member m.o",
            "member 1",
        ])
    });
    steps
}

fn any_file(random: &mut Random, about: &About) -> String {
    if !about.files.is_empty() && random.chance(75) {
        return about.files[random.below(about.files.len())].clone();
    }
    match random.below(10) {
        0..=1 => random.one(&SOURCES).to_owned(),
        2..=5 => format!("{}/{}", random.one(&FOLDERS), random.one(&HEADERS)),
        6..=8 => random.one(&DATA).to_owned(),
        _ => random
            .one(&["lib/libfoo.a", "lib/m.o", "options"])
            .to_owned(),
    }
}

/// One change, as one or a few steps.
pub fn change(random: &mut Random, about: &About, fake: bool) -> Vec<Step> {
    match random.below(if fake { 41 } else { 27 }) {
        0..=4 => {
            let path = any_file(random, about);
            vec![edited(random, "write", &path, fake)]
        }
        5 => {
            let path = any_file(random, about);
            vec![edited(random, "replace", &path, fake)]
        }
        6 => vec![Step::new(&["touch", &any_file(random, about)])],
        7 => {
            let path = any_file(random, about);
            let is_source =
                path.ends_with(".cu") || path.ends_with(".cpp") || path.contains("host");
            if is_source && random.chance(85) {
                return vec![edited(random, "write", &path, fake)];
            }
            vec![Step::new(&["delete", &path])]
        }
        8..=12 => surroundings(random, about, fake),
        13..=15 => links(random),
        16..=19 => outputs(random, about, fake),
        20..=22 => variables(random, about, fake),
        23..=25 => {
            let path = any_file(random, about);
            let before = random.below(6).to_string();
            vec![Step::new(&[
                "insert",
                &path,
                &before,
                random.one(&["", "// words", "  "]),
            ])]
        }
        26..=29 => programs::toolkits(random, fake),
        30..=31 => elsewhere(random),
        _ => programs::programs(random),
    }
}

fn edited(random: &mut Random, verb: &str, path: &str, fake: bool) -> Step {
    match path {
        "data/pipe" => {
            let line = random.one(&["one", "two"]);
            Step::new(&["pipe", path, line])
        }
        "data/gone" => Step::new(&["link", path, random.one(&["nowhere", "d1"])]),
        _ if path.starts_with("{shm}") && fake && random.chance(30) => {
            Step::new(&["map", path, &format!("text {}", random.below(10))])
        }
        _ if path.ends_with("mpicxx") => programs::wrapper(random, path),
        _ if path.ends_with("asked") => Step::new(&["script", path, "#!/bin/sh", "echo two"]),
        "lib/libfoo.a" => {
            let text = format!("member {}", random.below(4));
            Step::new(&["write", path, "!<arch>", "/member m.o", &text])
        }
        "lib/m.o" => Step::new(&[verb, path, &format!("member {}", random.below(4))]),
        "options" => Step::new(&[verb, path, &format!("-DOPT={}", random.below(4))]),
        _ => writing(random, verb, path, fake),
    }
}

fn surroundings(random: &mut Random, about: &About, fake: bool) -> Vec<Step> {
    match random.below(6) {
        0 => vec![Step::new(&["umask", random.one(&["022", "027", "077"])])],
        1 => vec![
            Step::new(&["link", "{root}/here", "{root}/w"]),
            Step::new(&["cd", "{root}/here"]),
        ],
        2 => vec![Step::new(&["cd", "{root}/w"])],
        3 => vec![Step::new(&[
            "set",
            "TMPDIR",
            random.one(&["{root}/tmp", "{shm}", "{root}/tmp2"]),
        ])],
        4 => vec![Step::new(&[
            "set",
            "PWD",
            random.one(&["{root}/here", "{root}/w", "/nowhere"]),
        ])],
        _ => variables(random, about, fake),
    }
}

fn links(random: &mut Random) -> Vec<Step> {
    match random.below(6) {
        0 => vec![Step::new(&[
            "link",
            "lnk",
            random.one(&["inc1", "inc2", "data", "nowhere"]),
        ])],
        1 => vec![Step::new(&[
            "link",
            "lnkdata",
            random.one(&["data/d1", "data/d2", "nowhere"]),
        ])],
        2 => vec![Step::new(&["swap", "inc1", "inc2"])],
        3 => vec![Step::new(&[
            "delete",
            random.one(&["inc1", "inc2", "data", "{shm}/inc"]),
        ])],
        4 => {
            let header = format!("inc1/{}", random.one(&HEADERS));
            let other = format!("inc2/{}", random.one(&HEADERS));
            vec![Step::new(&["link", &header, &format!("../{other}")])]
        }
        _ => vec![Step::new(&[
            "folder",
            random.one(&["inc1/a.h", "data/d2", "{shm}/inc"]),
        ])],
    }
}

/// A change in the file systems around: a link whose target comes later, a file written through memory, a pipe, a limit.
fn elsewhere(random: &mut Random) -> Vec<Step> {
    let header = format!("inc1/{}", random.one(&HEADERS));
    match random.below(6) {
        0 => vec![
            Step::new(&["folder", "elsewhere"]),
            Step::new(&["link", &header, "../elsewhere/h"]),
        ],
        1 => vec![Step::new(&["write", "elsewhere/h", "text elsewhere"])],
        2 => vec![Step::new(&[
            "map",
            "{shm}/d3",
            &format!("data {}", random.below(5)),
        ])],
        3 => vec![Step::new(&[
            "pipe",
            "data/pipe",
            random.one(&["one", "two"]),
        ])],
        4 => vec![Step::new(&["limit", "n", random.one(&["512", "600"])])],
        _ => vec![Step::new(&["set", "MAKELEVEL", random.one(&["1", "2"])])],
    }
}

fn outputs(random: &mut Random, about: &About, fake: bool) -> Vec<Step> {
    let any = [
        "out/s.o",
        "out/app",
        "out/s.ptx",
        "out/s.d",
        "out/x.a",
        "out/map",
    ];
    let output = choose(random, &about.outputs, &any);
    let old = Step::new(&["write", output, "old"]);
    match random.below(9) {
        8 => vec![Step::new(&[
            "write",
            "out/x.a",
            "!<arch>",
            random.one(&["/member s.o ar 1", "/member other.o ar 1"]),
            "old",
        ])],
        0 => vec![Step::new(&["link", output, "real"])],
        1 => vec![
            Step::new(&["write", "out/real", "old"]),
            Step::new(&["link", output, "real"]),
        ],
        2 => vec![old, Step::new(&["hardlink", "out/other", output])],
        3 => vec![
            old,
            Step::new(&["mode", output, random.one(&["600", "755", "444"])]),
        ],
        4 => vec![Step::new(&["delete", output])],
        5 => vec![Step::new(&["delete", "out"]), Step::new(&["folder", "out"])],
        6 => vec![Step::new(&[
            "link",
            output,
            // The real tools would run as root on a device that every process needs.
            if fake && random.chance(50) {
                "/dev/null"
            } else {
                "no/where"
            },
        ])],
        _ => vec![old],
    }
}

fn variables(random: &mut Random, about: &About, fake: bool) -> Vec<Step> {
    if !fake {
        return super::invent_real::variables(random);
    }
    let name = choose(random, &about.variables, &VARIABLES);
    match random.below(8) {
        0 => vec![Step::new(&["unset", name])],
        1 => vec![Step::new(&[
            "set",
            random.one(&["OCG_FLAGS", "NVVM_FLAGS"]),
            random.one(&["-O0", "-O1", ""]),
        ])],
        2 => vec![Step::new(&[
            "set",
            "LPATH",
            random.one(&["lib", "lib2", "{root}/w/lib"]),
        ])],
        3 => vec![Step::new(&[
            "set",
            "CPATH",
            random.one(&["inc1", "inc2", "{shm}/inc"]),
        ])],
        4 => vec![Step::new(&[
            "set",
            "SPACK_CXX",
            random.one(&["g++", "{root}/host2/g++", "gcc"]),
        ])],
        5 => vec![Step::new(&[
            "set",
            "NVCC_APPEND_FLAGS",
            random.one(&["-lineinfo", "-g", "-DAPPENDED=1"]),
        ])],
        _ => vec![Step::new(&[
            "set",
            name,
            random.one(&["one", "two", "-O1", ""]),
        ])],
    }
}
