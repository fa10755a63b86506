//! Properties of any command line and any dry run, not only of those that nvcc writes today.
//!
//! The oracle of the splitting is `/bin/sh`, which runs nvcc's own commands.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use warpcc_plan::options::{Effect, Row, TABLE, Takes};
use warpcc_plan::words::{self, Word};
use warpcc_plan::{FileKind, Invocation, TaskGraph, Transcript};

const PRIVATE: &str = "/keep/K/";

/// The words of `line` according to `/bin/sh`, wherever it sends the streams; `None` if the shell reports an error.
fn shell(line: &str) -> Option<Vec<String>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redirected");
    fs::create_dir_all(&folder).expect("a folder for what the shell redirects");
    let script = format!("exec 9>&1\nshow() {{ printf '%s\\0' \"$@\" >&9; }}\nshow . {line}\n");
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .env_clear()
        .env("V", "a  $b*")
        .current_dir(folder)
        .stderr(Stdio::null())
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("UTF-8 in, UTF-8 out");
    let mut words = text.split_terminator('\0').map(str::to_owned);
    (output.status.success() && words.next()? == ".").then(|| words.collect())
}

/// Pieces of a command line that a shell has opinions on.
fn quoting() -> impl Strategy<Value = String> {
    let pieces = vec![
        "a", "b", "é", " ", "  ", "\t", "'", "\"", "\\", "\\\\", "\\\"", "''", "\"\"", "$V", "$",
        "\"$V\"", "`", "*", "?", "[", "]", "#", "~", ">", " > ", " 2>", "2", "{", "}", ",",
        "{a,b}", "=", "!", "-", "%", "^", ";", "&", "|", "(", "\u{a0}", "\u{b}", "\r",
    ];
    prop::collection::vec(select(pieces), 0..14).prop_map(|pieces| pieces.concat())
}

/// Lines of recorded plans, with damage.
fn damaged_plan() -> impl Strategy<Value = String> {
    let recorded: Vec<String> = [
        "compile-two",
        "rdc-program",
        "depend",
        "threads",
        "lto-program",
    ]
    .iter()
    .map(|mode| {
        let file = format!(
            "{}/tests/transcripts/13.5/{mode}.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        fs::read_to_string(file).expect("a transcript")
    })
    .collect();
    let damage = prop::collection::vec((0..5u8, any::<Index>(), any::<Index>()), 0..6);
    (select(recorded), damage).prop_map(|(text, damage)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (kind, one, other) in damage {
            if lines.is_empty() {
                break;
            }
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            match kind {
                0 => lines.swap(one, other),
                1 => drop(lines.remove(one)),
                2 => lines.push(lines[one].clone()),
                // A word of one line in place of a word of another.
                _ => {
                    let mut words: Vec<&str> = lines[one].split(' ').collect();
                    let theirs: Vec<&str> = lines[other].split(' ').collect();
                    let at = other % words.len();
                    words[at] = theirs[one % theirs.len()];
                    lines[one] = words.join(" ");
                }
            }
        }
        lines.join("\n")
    })
}

/// A value that every option takes as it is.
fn value() -> impl Strategy<Value = String> {
    "[a-z0-9./=,+ -]{1,6}|é|-o|sm_90|native"
}

fn two_values() -> impl Strategy<Value = (String, String)> {
    (value(), value()).prop_map(|(one, other)| {
        let differs = if one == other { "x" } else { "" };
        (one, other + differs)
    })
}

/// How an option and its value are spelled.
fn spell(row: &Row, value: &str, how: u8) -> Vec<String> {
    let dashes = if how & 1 == 0 { "-" } else { "--" };
    let name = if how & 2 == 0 && !row.short.is_empty() {
        row.short
    } else {
        row.long
    };
    if row.takes == Takes::Nothing {
        return vec![format!("{dashes}{name}")];
    }
    // -Xy is a value glued on; -Xyz=v and -X=v are not the same to us when the value has a `=`.
    let glued = dashes == "-" && name == row.short && name.len() == 1;
    match how >> 2 {
        0 if glued && !value.starts_with('=') && !value.contains('=') => {
            let word = format!("-{name}{value}");
            let found = warpcc_plan::options::find(&word);
            if found.is_some_and(|f| f.row == row) {
                return vec![word];
            }
            vec![format!("-{name}"), value.to_owned()]
        }
        1 => vec![format!("{dashes}{name}={value}")],
        _ => vec![format!("{dashes}{name}"), value.to_owned()],
    }
}

fn row_that(is: impl Fn(&Row) -> bool) -> impl Strategy<Value = &'static Row> {
    select(TABLE.iter().filter(|row| is(row)).collect::<Vec<_>>())
}

fn row() -> impl Strategy<Value = &'static Row> {
    row_that(|_| true)
}

/// Whether the value of an option may stay out of the key.
fn is_free(row: &Row) -> bool {
    matches!(
        row.effect,
        Effect::Threads
            | Effect::Unkeyed
            | Effect::Output
            | Effect::DependOutput
            | Effect::OptionsFile
    )
}

/// Options that neither leave the call to nvcc nor tie the result to its place.
fn harmless() -> impl Strategy<Value = Vec<String>> {
    let harmless = row_that(|row| matches!(row.effect, Effect::Keyed | Effect::Language));
    let option = (harmless, value(), 0..12u8);
    let options = option.prop_map(|(row, value, how)| spell(row, &value, how));
    prop::collection::vec(options, 0..4).prop_map(|words| words.concat())
}

fn parse(words: &[String]) -> Option<Invocation> {
    Invocation::parse(words, "", "", &|_| None).ok()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, // What it found becomes a test of its own.
        ..ProptestConfig::default()
    })]

    #[test]
    fn splitting_is_the_shells(line in quoting()) {
        let variable = |name: &str| (name == "V").then(|| "a  $b*".to_owned());
        let Ok(split) = words::split(&line, variable) else {
            return Ok(());
        };
        let texts: Option<Vec<String>> = split
            .words
            .into_iter()
            .map(|word| match word {
                Word::Text(text) => Some(text),
                Word::Substitution(_) => None, // Not to be run here.
            })
            .collect();
        if let Some(texts) = texts {
            prop_assert_eq!(Some(texts), shell(&line));
        }
    }

    #[test]
    fn any_text_is_split_or_refused(line in any::<String>()) {
        let _ = words::split(&line, |_| None);
        let _ = Transcript::parse(&line);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, line in quoting()) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = Transcript::parse(&text);
        let _ = Transcript::parse(&format!("#$ {text}\n#$ {line}\n#$ -- {text}"));
    }

    /// So that a plan has no cycle, and nothing runs before what it reads is there.
    #[test]
    fn steps_wait_for_earlier_ones_only(text in damaged_plan()) {
        let Ok(graph) = Transcript::parse(&text).and_then(|t| TaskGraph::build(&t, PRIVATE)) else {
            return Ok(());
        };
        let mut writers: HashMap<&str, usize> = HashMap::new();
        for (number, step) in graph.steps.iter().enumerate() {
            prop_assert!(graph.needs(number).iter().all(|&needed| needed < number));
            for &file in &step.reads {
                let file = graph.file(file);
                match writers.get(file.path.as_str()) {
                    Some(writer) => prop_assert!(graph.needs(number).contains(writer)),
                    None => prop_assert_ne!(file.kind, FileKind::Temp),
                }
            }
            writers.extend(step.writes.iter().map(|&f| (graph.file(f).path.as_str(), number)));
        }
    }

    #[test]
    fn any_command_line_is_read_or_refused(
        words in prop::collection::vec(
            prop_oneof![
                (row(), value(), 0..12u8).prop_map(|(row, value, how)| spell(row, &value, how).concat()),
                row().prop_map(|row| format!("-{}", row.short)),
                value(),
                any::<String>(),
            ],
            0..8,
        ),
        flags in quoting(),
    ) {
        // An options file that names itself has to end too.
        let read = |name: &str| name.len().is_multiple_of(2).then(|| format!("{flags} -optf {name}").into_bytes());
        let _ = Invocation::parse(&words, &flags, "", &read);
        if let Ok(invocation) = Invocation::parse(&words, "", &flags, &read) {
            let _ = (invocation.key_parts(), invocation.is_absolute(), invocation.output_is_free());
        }
    }

    #[test]
    fn a_changed_value_changes_the_key(
        row in row_that(|row| row.takes != Takes::Nothing && !is_free(row)),
        (one, other) in two_values(),
        before in harmless(),
        after in harmless(),
        how in 0..12u8,
    ) {
        let key = |value: &str| {
            let words = [before.clone(), spell(row, value, how), after.clone(), owned(&["-c", "a.cu"])];
            parse(&words.concat()).map(|invocation| invocation.key_parts())
        };
        prop_assert_ne!(key(&one).expect("parses"), key(&other).expect("parses"));
    }

    #[test]
    fn a_switch_changes_the_key(
        row in row_that(|row| row.takes == Takes::Nothing && !is_free(row)),
        around in harmless(),
    ) {
        let without = [around, owned(&["-c", "a.cu"])].concat();
        let with = [without.clone(), spell(row, "", 0)].concat();
        let key = |words: &[String]| parse(words).map(|invocation| invocation.key_parts());
        prop_assert_ne!(key(&without).expect("parses"), key(&with).expect("parses"));
    }

    #[test]
    fn spelling_does_not_change_the_key(row in row_that(|row| row.effect != Effect::OptionsFile), value in value(), one in 0..12u8, other in 0..12u8) {
        let key = |how: u8| {
            let words = [spell(row, &value, how), owned(&["-c", "a.cu"])].concat();
            parse(&words).map(|invocation| invocation.key_parts())
        };
        prop_assert_eq!(key(one), key(other));
    }

    #[test]
    fn threads_and_the_place_of_results_are_not_in_the_key(
        around in harmless(),
        one in (value(), value(), value()),
        other in (value(), value(), value()),
        depends: bool,
    ) {
        let key = |(threads, output, rule): &(String, String, String)| {
            let mut words = [around.clone(), owned(&["-c", "a.cu", "-t", threads, "-o", output])].concat();
            if depends {
                words.extend(owned(&["-MD", "-MT", "target", "-MF", rule]));
            }
            parse(&words).map(|invocation| invocation.key_parts())
        };
        prop_assert_eq!(key(&one).expect("parses"), key(&other).expect("parses"));
    }

    /// Where the object's name is in its dependency file, it counts.
    #[test]
    fn a_rule_without_a_target_ties_the_key_to_the_object((one, other) in two_values()) {
        let key = |output: &str| {
            let words = owned(&["-c", "a.cu", "-MD", "-MF", "a.d", "-o", output]);
            parse(&words).map(|invocation| invocation.key_parts())
        };
        prop_assert_ne!(key(&one), key(&other));
    }
}
