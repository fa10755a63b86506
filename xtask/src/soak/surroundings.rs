//! Chooses the surroundings of a whole history: one clone of several, a shared cache, limits, a clock; or changes made
//! while a call runs.

use super::changes;
use super::history::Step;
use super::random::Random;

/// The surroundings of a history; most often [`Setting::Usual`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nothing special.
    Usual,
    /// The project is in two folders whose names do not count.
    Clones,
    /// The project is copied to another folder.
    Copies,
    /// Two caches share a folder.
    Shared,
    /// A limit on file sizes or on open files is set.
    Limits,
    /// A source holds the time.
    Clock,
    /// A change is made while a call runs.
    Race,
    /// Equal objects in two folders are linked, then one of them changes.
    Relinked,
    /// So many files of one folder are read that their contents are noted together.
    Crowd,
    /// Two headers with the same content, of which one is read where their times are also equal.
    EqualFiles,
}

const TIMES: [&str; 3] = ["10:00:00", "11:11:11", "12:34:56"];

impl Setting {
    /// A random setting.
    pub fn choose(random: &mut Random, fake: bool) -> Self {
        match random.below(50) {
            0 => Self::Clones,
            1..=2 => Self::Shared,
            3 if fake => Self::Limits,
            4 if fake => Self::Clock,
            5..=7 if fake => Self::Race,
            8 => Self::Relinked,
            9 => Self::Copies,
            10..=12 if fake => Self::Crowd,
            13 if fake => Self::EqualFiles,
            _ => Self::Usual,
        }
    }

    /// The steps before the first call.
    pub fn begin(self, random: &mut Random, steps: &mut Vec<Step>) {
        match self {
            Self::Usual | Self::Copies => {}
            Self::Clones => steps.push(Step::new(&["set", "WARPCC_BASE_DIR", "{root}/w"])),
            Self::Shared => {
                steps.push(Step::new(&["set", "WARPCC_REMOTE", "file:{root}/shared"]));
            }
            Self::Limits => steps.push(limit(random)),
            Self::Relinked => relink(steps),
            Self::Crowd => crowd(random, steps),
            Self::EqualFiles => equal_files(random, steps),
            Self::Clock => {
                steps.push(Step::new(&["clock", random.one(&TIMES)]));
                add_line(random, steps, "@pp time {root}/soak __TIME__");
            }
            Self::Race => {
                let stage = random.one(&["pp", "pp", "pp", "host", "cudafe", "cicc", "ptxas"]);
                for folder in ["inc1", "inc2"] {
                    let (file, text) = (format!("{folder}/a.h"), format!("that of {folder}"));
                    steps.push(Step::new(&["write", &file, &text]));
                }
                steps.push(Step::new(&["link", "lnk", random.one(&["inc1", "inc2"])]));
                add_line(random, steps, &format!("@{stage} meet {{root}}/soak"));
            }
        }
    }

    /// Adds steps before a later call. True where the usual call comes between the steps and that call.
    pub fn go_on(self, random: &mut Random, steps: &mut Vec<Step>) -> bool {
        match self {
            Self::Usual | Self::Relinked => {}
            Self::Crowd => {
                let verb = random.one(&["write", "replace"]);
                let file = format!("{CROWD}/d{}", random.below(9));
                steps.push(data(random, verb, &file));
            }
            Self::EqualFiles => {
                let second = random.one(&["1700000000", "1700000001"]);
                steps.push(Step::new(&["touch", random.one(&EQUAL_FILES), second]));
            }
            Self::Clones => {
                let other = random.one(&["{root}/w2", "{root}/w2", "{root}/w"]);
                if other != "{root}/w" && random.chance(60) {
                    steps.push(Step::new(&["clone", other]));
                }
                steps.push(Step::new(&["set", "WARPCC_BASE_DIR", other]));
                steps.push(Step::new(&["cd", other]));
                steps.push(Step::new(&["unset", "PWD"]));
            }
            Self::Copies => {
                if random.chance(60) {
                    steps.push(Step::new(&["clone", "{root}/w2"]));
                }
                steps.push(Step::new(&[
                    "cd",
                    random.one(&["{root}/w2", "{root}/w2", "{root}/w"]),
                ]));
            }
            Self::Shared => match random.below(4) {
                0 => steps.push(Step::new(&["forget"])),
                _ => steps.push(Step::new(&["cache", random.one(&["cache", "cache2"])])),
            },
            Self::Limits => steps.push(limit(random)),
            Self::Clock => steps.push(Step::new(&["clock", random.one(&TIMES)])),
            Self::Race => {
                if random.chance(50) {
                    steps.push(match random.below(3) {
                        0 => Step::new(&["race", "swap", "inc1", "inc2"]),
                        1 => Step::new(&["race", "link", "lnk", "inc1"]),
                        _ => Step::new(&["race", "link", "lnk", "inc2"]),
                    });
                    return true;
                }
                let about = changes::About::new(steps, &[]);
                for _ in 0..20 {
                    let made = changes::change(random, &about, true);
                    let of_files = ["write", "replace", "swap", "link", "delete", "touch"];
                    if let [step] = &made[..]
                        && of_files.contains(&step.verb())
                    {
                        let words = ["race".to_owned()].into_iter();
                        steps.push(Step(words.chain(step.0.iter().cloned()).collect()));
                        return true;
                    }
                }
            }
        }
        false
    }
}

/// The folder of many files, by its whole path: only such folders have notes.
const CROWD: &str = "{root}/w/many";

fn data(random: &mut Random, verb: &str, file: &str) -> Step {
    Step::new(&[verb, file, &format!("data {}", random.below(3))])
}

fn crowd(random: &mut Random, steps: &mut Vec<Step>) {
    let stage = random.one(&["pp", "cudafe", "cicc", "ptxas", "host"]);
    for number in 0..9 {
        let file = format!("{CROWD}/d{number}");
        add_line(random, steps, &format!("@{stage} read {file}"));
        steps.push(data(random, "write", &file));
    }
}

const EQUAL_FILES: [&str; 2] = ["{root}/w/once/1.h", "{root}/w/once/2.h"];

fn equal_files(random: &mut Random, steps: &mut Vec<Step>) {
    for file in EQUAL_FILES {
        add_line(random, steps, &format!("#include \"{file}\""));
    }
    for file in EQUAL_FILES {
        steps.push(Step::new(&["write", file, "#pragma once", "text"]));
        steps.push(Step::new(&["touch", file, "1700000000"]));
    }
}

/// Links an object, an equal one in another folder, and another that takes its place there.
fn relink(steps: &mut Vec<Step>) {
    for source in ["src/s.cu", "other/s.cu"] {
        let has = |step: &Step| step.verb() == "write" && step.rest()[0] == source;
        if !steps.iter().any(has) {
            let line = if source == "src/s.cu" { "one" } else { "two" };
            let text = format!("__device__ int number_{line};");
            steps.push(Step::new(&["write", source, &text]));
        }
    }
    let to_object =
        |source: &str, to: &str| Step::new(&["call", "-dc", source, "-Iinc1", "-Iinc2", "-o", to]);
    let linked = |from: &str| Step::new(&["call", "-dlink", from, "-o", "out/l.o"]);
    steps.extend([
        to_object("src/s.cu", "out/s.o"),
        linked("out/s.o"),
        Step::new(&["copy", "out/s.o", "other/s.o"]),
        linked("other/s.o"),
        to_object("other/s.cu", "other/s.o"),
        linked("other/s.o"),
    ]);
}

fn limit(random: &mut Random) -> Step {
    match random.below(3) {
        0 => Step::new(&["limit", "f", random.one(&["1", "2", "8", "100000"])]),
        1 => Step::new(&["limit", "n", random.one(&["16", "24", "64", "1024"])]),
        _ => Step::new(&["limit", "f", "unlimited"]),
    }
}

/// Adds a line to one of the files written so far that are sources or headers.
fn add_line(random: &mut Random, steps: &mut [Step], line: &str) {
    let is_code = |step: &&mut Step| {
        let name = step.rest().first().map_or("", String::as_str);
        step.verb() == "write" && [".cu", ".cpp", ".h"].iter().any(|end| name.ends_with(end))
    };
    let mut files: Vec<&mut Step> = steps.iter_mut().filter(is_code).collect();
    let at = random.below(files.len());
    if let Some(file) = files.get_mut(at) {
        file.0.push(line.to_owned());
    }
}
