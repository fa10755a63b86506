//! Plans of recorded dry runs: what record.sh wrote down, parsed, linked up and compared with
//! the plan that was read through by a person.
//!
//! The toolkits must agree on a plan, or have one each. `INSTA_UPDATE=always` writes new ones. A toolkit may refuse a mode,
//! for want of an option or an architecture.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use warpcc_plan::{FileId, FileKind, TaskGraph, Transcript};

/// The value of `--keep-dir` in record.sh.
const PRIVATE: &str = "/keep/K/";

/// The toolkits that are recorded, newest first: where they differ, the plain name is that of the newest one that does not refuse.
const TOOLKITS: [&str; 8] = [
    "13.5", "13.4", "13.3", "13.2", "13.1", "13.0", "12.4", "11.8",
];

/// The text that record.sh writes where nvcc refuses a mode.
const REFUSED: &str = "refused\n";

fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The plan in readable form: what each step waits for, reads and writes.
fn plan(text: &str, private: &str) -> String {
    let graph = Transcript::parse(text).and_then(|t| TaskGraph::build(&t, private));
    let graph = match graph {
        Ok(graph) => graph,
        Err(why) => return format!("plain nvcc, because of {}\n", why.reason),
    };
    let mut out = String::new();
    for path in graph.steps.iter().flat_map(|step| &step.removes) {
        writeln!(out, "rm {path}").expect("a String");
    }
    let names = |ids: &[FileId]| {
        let names = ids.iter().map(|&id| {
            let file = graph.file(id);
            let kind = match file.kind {
                FileKind::Temp => "temp",
                FileKind::Output => "out",
                FileKind::External => "user",
            };
            let path = match file.kind {
                FileKind::Temp => file.path.strip_prefix(private).expect("is inside"),
                _ => &file.path,
            };
            format!("{kind}:{path}")
        });
        names.collect::<Vec<_>>().join("  ")
    };
    for (number, step) in graph.steps.iter().enumerate() {
        let arch = step.arch.as_deref().unwrap_or_default();
        let head = format!("{number} {} {arch}", step.tool);
        let needs = graph.needs(number);
        writeln!(
            out,
            "{}{}",
            head.trim_end(),
            if needs.is_empty() {
                String::new()
            } else {
                format!(" after {needs:?}")
            }
        )
        .expect("a String");
        writeln!(out, "    < {}", names(&step.reads)).expect("a String");
        writeln!(out, "    > {}", names(&step.writes)).expect("a String");
    }
    out
}

fn private_folder(mode: &str) -> &'static str {
    if mode.starts_with("keep") {
        ""
    } else {
        PRIVATE
    }
}

/// Compares with the plan kept under `name`, shown with the command line it belongs to.
fn compare(name: &str, command: &str, plan: &str) {
    insta::with_settings!({
        snapshot_path => transcripts().join("plans"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, format!("{command}\n\n{plan}"));
    });
}

#[test]
fn recorded_toolkits() {
    let modes = fs::read_to_string(transcripts().join("modes.txt")).expect("modes.txt");
    for line in modes.lines().filter(|l| !l.starts_with('#')) {
        let (mode, arguments) = line.split_once(' ').expect("a name and arguments");
        let command = format!("nvcc {}", arguments.trim());
        let mut plans: BTreeMap<String, &str> = BTreeMap::new();
        for toolkit in TOOLKITS {
            let file = transcripts().join(toolkit).join(format!("{mode}.txt"));
            let text = fs::read_to_string(&file)
                .unwrap_or_else(|e| panic!("{}: {e}: run record.sh", file.display()));
            if text == REFUSED {
                continue;
            }
            let count = plans.len();
            plans
                .entry(plan(&text, private_folder(mode)))
                .or_insert(if count == 0 { "" } else { toolkit });
        }
        assert!(!plans.is_empty(), "all refuse {mode}");
        for (plan, toolkit) in &plans {
            let name = [mode, toolkit].join(if toolkit.is_empty() { "" } else { "-" });
            compare(&name, &command, plan);
        }
    }
}

/// Shapes of toolkits that are not here, written by hand from what is known of them: the module id
/// made by the first cicc, a host pass that comes last, words without quotes, programs by name.
#[test]
fn older_toolkits() {
    for name in [
        "11-compile-one",
        "11-compile-two",
        "11-removes-fatbin",
        "12-compile-two",
        "12-device-c",
        "12-ptx",
    ] {
        let file = transcripts().join("older").join(format!("{name}.txt"));
        let text = fs::read_to_string(&file).expect("a transcript");
        compare(&format!("older-{name}"), name, &plan(&text, PRIVATE));
    }
}

/// Each case changes a recorded dry run in one place, so that it is no longer understood.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of changes")]
fn the_unknown_is_refused_with_its_reason() {
    let recorded = fs::read_to_string(transcripts().join("13.5/compile-two.txt")).expect("it");
    let with_line = |line: &str| format!("{recorded}#$ {line}\n");
    let without = |part: &str| {
        let kept = recorded.lines().filter(|line| !line.contains(part));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    let changed = |old: &str, new: &str| {
        assert!(recorded.contains(old), "{old}");
        recorded.replace(old, new)
    };
    for (text, reason) in [
        (with_line("-- Something --"), "unknown dry-run line"),
        (with_line("LATE=1"), "unknown dry-run line"),
        (with_line("rm /keep/K/a /keep/K/b"), "unknown dry-run line"),
        (with_line("rm /keep/K/a.fatbin"), "unknown dry-run line"),
        (format!("{recorded}#$novelty\n"), "unknown dry-run line"),
        (with_line("novel-tool a.cu -o a.x"), "unknown tool"),
        (with_line("tileiras a.tile -o a.cubin"), "unknown tool"),
        (
            with_line("\"`gcc -print-prog-name=ld`\" -r a.o"),
            "unknown tool",
        ),
        (
            changed("#$ gcc ", "#$ \"/opt/nv\"/nvc++ "),
            "nvc++ as host compiler",
        ),
        (with_line("rm *.o"), "shell syntax in the dry run"),
        (
            with_line("gcc -c a.c -o a.o && true"),
            "shell syntax in the dry run",
        ),
        (
            changed(
                "\"--image3=kind=elf,sm=80,file=",
                "\"--image3=kind=elf,sm=80,path=",
            ),
            "unknown tool arguments",
        ),
        (
            changed("--embedded-fatbin=", "--embedded-image="),
            "the host code's stub is not understood",
        ),
        (
            changed("--gen_device_file_name", "--gen_other_file_name"),
            "the private folder in an unexpected place",
        ),
        (
            changed("-c -x c++", "-c -o x -x c++"),
            "unknown tool arguments",
        ),
        (
            changed(
                "\"/keep/K/a.compute_80.cubin\"",
                "\"/keep/K/a.compute_90.sm_90.cubin\"",
            ),
            "two commands write the same file",
        ),
        (
            changed("--stub_file_name \"a.", "--stub_file_name \"b."),
            "the host code's stub is not understood",
        ),
        (
            changed("--include_file_name \"a.", "--include_file_name \"b."),
            "the host code's stub is not understood",
        ),
        (
            without("fatbinary"),
            "the host code's stub is not understood",
        ),
        (
            without("cudafe++"),
            "a command reads a file that no command writes",
        ),
        (
            without("gcc -D__CUDA_ARCH__=800 "),
            "the private folder in an unexpected place",
        ),
        (
            without("ptxas -arch=sm_80"),
            "a command reads a file that no command writes",
        ),
        ("#$ A=1\n".to_owned(), "the dry run has no commands"),
    ] {
        let graph = Transcript::parse(&text).and_then(|t| TaskGraph::build(&t, PRIVATE));
        match graph {
            Ok(_) => panic!("not {reason}:\n{text}"),
            Err(why) => assert_eq!(why.reason, reason, "{}\n{text}", why.detail),
        }
    }
}

/// cicc writes device source that no tool reads. With `--keep` it is the user's.
#[test]
fn unused_files_are_not_needed() {
    let unneeded = |mode: &str| -> Vec<String> {
        let path = transcripts().join("13.5").join(format!("{mode}.txt"));
        let text = fs::read_to_string(&path).expect("a transcript");
        let transcript = Transcript::parse(&text).expect("a plan");
        let graph = TaskGraph::build(&transcript, private_folder(mode)).expect("a graph");
        let written = graph.steps.iter().flat_map(|step| &step.writes);
        let unneeded = written.filter(|&&id| !graph.is_needed(id));
        unneeded
            .map(|&id| graph.file(id).name().to_owned())
            .collect()
    };
    insta::assert_snapshot!(
        ["compile-two", "rdc-program", "keep"].map(|mode| [format!("{mode}:")].into_iter().chain(unneeded(mode)).collect::<Vec<_>>().join(" ")).join("\n"),
        @r"
    compile-two: a.compute_80.cudafe1.c a.compute_80.cudafe1.gpu a.compute_90.cudafe1.c a.compute_90.cudafe1.gpu a.fatbin
    rdc-program: a.compute_80.cudafe1.c a.compute_80.cudafe1.gpu a.compute_90.cudafe1.c a.compute_90.cudafe1.gpu a.fatbin b.compute_80.cudafe1.c b.compute_80.cudafe1.gpu b.compute_90.cudafe1.c b.compute_90.cudafe1.gpu b.fatbin prog_dlink.fatbin
    keep:
    "
    );
}
