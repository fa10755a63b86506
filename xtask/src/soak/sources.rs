//! Writes the files of a history's project: directives of the fake tools, or CUDA.

use super::history::Step;
use super::random::Random;

/// Folders that may contain headers.
pub const FOLDERS: [&str; 5] = ["inc1", "inc2", "src", "{shm}/inc", "lnk"];
/// Headers.
pub const HEADERS: [&str; 3] = ["a.h", "b.h", "c.h"];
/// Paths that directives look at.
pub const DATA: [&str; 6] = [
    "data/d1",
    "data/d2",
    "{shm}/d3",
    "lnkdata",
    "/proc/self/cwd/data/d1",
    "lnk/d4",
];
/// Variables that sources read.
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
pub const SOURCES: [&str; 4] = ["src/s.cu", "t.cu", "f.cpp", "g.cpp"];

/// One directive of the fake tools.
fn directive(random: &mut Random) -> String {
    let stage = random.one(&STAGES);
    let condition = match random.below(10) {
        0 => "?80",
        1 => "?75",
        2 => "?host",
        _ => "",
    };
    let what = match random.below(39) {
        0..=8 => format!("read {}", random.one(&DATA)),
        9..=14 => format!("env {}", random.one(&VARIABLES)),
        15..=18 => format!("exists {}", random.one(&DATA)),
        19 => "list data".to_owned(),
        20 => format!("write out/side{} text", random.below(2)),
        21..=22 => "exec asked".to_owned(),
        23..=24 => "pwd".to_owned(),
        25 => "environ".to_owned(),
        26 => format!("link {}", random.one(&["lnkdata", "lnk", "data/gone"])),
        // The order of steps that run at once is not known.
        36 if stage == "nvlink" => "first data/pipe".to_owned(),
        37 if random.chance(25) => "read /proc/self/limits".to_owned(),
        27 => format!("real {}", random.one(&DATA)),
        38 => "line __builtin_LINE".to_owned(),
        28..=29 => format!("warn number {}", random.below(3)),
        30 if random.chance(20) => "fail on purpose".to_owned(),
        _ if stage == "pp" && condition.is_empty() => format!("has {}", random.one(&HEADERS)),
        _ => format!("read {}", random.one(&DATA)),
    };
    format!("@{stage}{condition} {what}")
}

/// The lines of a source, header or data file.
fn lines(random: &mut Random, path: &str, fake: bool) -> Vec<String> {
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
        // A header includes only earlier headers, so that there are no circles.
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
