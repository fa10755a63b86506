//! Tests of the command line: what is ours, what each form parses to, what help says.

use std::ffi::OsStr;
use std::path::Path;

use clap::CommandFactory;

use super::{CacheCommand, Cli, Command, completions, parse, takes};
use crate::commands::completions::CompletionShell;
use crate::commands::run::GraphFormat;
use crate::subcommand_words::{OWN_WORDS, is_subcommand, meant_by, nearest_subcommand};

fn parsed(line: &str) -> Result<Command, clap::Error> {
    parse(std::iter::once("warpcc").chain(line.split_whitespace()))
}

fn message(line: &str) -> String {
    parsed(line).unwrap_err().to_string()
}

#[test]
fn clap_finds_no_contradiction() {
    Cli::command().debug_assert();
}

#[test]
fn own_words_are_exactly_what_clap_knows() {
    for known in Cli::command().get_subcommands() {
        assert!(
            OWN_WORDS.contains(&known.get_name()),
            "{}",
            known.get_name()
        );
    }
    for word in OWN_WORDS {
        let answer = parsed(word).err().map(|error| error.kind());
        assert_ne!(
            answer,
            Some(clap::error::ErrorKind::InvalidSubcommand),
            "{word}"
        );
    }
    for compiler in [
        "nvcc",
        "/usr/local/cuda/bin/nvcc",
        "clang++",
        "runs",
        "",
        "-c",
        "./run",
    ] {
        assert!(!is_subcommand(OsStr::new(compiler)), "{compiler}");
    }
    assert_eq!(nearest_subcommand("stast"), Some("stats"));
    assert_eq!(nearest_subcommand("nvcc"), None);
}

#[test]
fn words_of_other_caches_are_understood() {
    for (word, ours) in [
        ("-s", "warpcc stats"),
        ("-z", "warpcc stats --zero"),
        ("-C", "warpcc cache clear"),
        ("version", "warpcc --version"),
    ] {
        assert_eq!(meant_by(word), Some(ours));
        // The advice is a command of ours; the foreign word is not.
        assert!(parsed(word).is_err(), "{word}");
        let line = ours.trim_start_matches("warpcc ");
        assert!(line == "--version" || parsed(line).is_ok(), "{line}");
    }
    assert!(meant_by("--max-size=5G").is_some_and(|what| what.contains("WARPCC_MAX_SIZE")));
    assert_eq!(meant_by("nvcc"), None);
}

#[test]
fn a_word_is_a_mistake_where_the_command_takes_the_rest() {
    let takes = |word: &str, args: &[&str]| {
        let args: Vec<_> = args.iter().map(Into::into).collect();
        takes(word, &args)
    };
    assert!(takes("stats", &[]) && takes("stats", &["--json"]));
    assert!(!takes("stats", &["file"]));
    assert!(!takes("cache", &[]) && !takes("cache", &["nvcc", "-c", "x.cu"]));
    assert!(!takes("rtc", &["-vV"]) && !takes("rtc", &["--edition=2024", "x.rs"]));
}

#[test]
fn run_takes_its_flags_and_leaves_the_rest_alone() {
    let line =
        "run --graph a/plan.SVG --table t.csv -j4 --faithful --progress -- -c x.cu --graph -j 9";
    let Ok(Command::Run(run)) = parsed(line) else {
        panic!("not run")
    };
    let graph = run.graph.unwrap();
    assert_eq!(
        (graph.format, graph.path.as_path()),
        (GraphFormat::Svg, Path::new("a/plan.SVG"))
    );
    assert_eq!(run.jobs.map(std::num::NonZeroUsize::get), Some(4));
    assert!(
        matches!(parsed("run -j4 nvcc -c x.cu --graph"), Ok(Command::Run(run))
        if run.args == ["nvcc", "-c", "x.cu", "--graph"])
    );
    assert!(run.faithful && run.progress && !run.sequential && !run.no_cache);
    assert_eq!(run.args, ["-c", "x.cu", "--graph", "-j", "9"]);
}

#[test]
fn run_refuses_what_it_cannot_mean() {
    assert!(message("run --graph plan.gif -- x.cu").contains("must end in .dot, .svg or .png"));
    assert!(message("run --jobs 0 -- x.cu").contains("'--jobs <N>'"));
    assert!(message("run -j 2 --sequential -- x.cu").contains("cannot be used with"));
    assert!(message("run --graph plan.svg").contains("required"));
}

#[test]
fn why_takes_a_command_with_or_without_dashes() {
    for line in ["why -- nvcc -c x.cu --json", "why nvcc -c x.cu --json"] {
        let Ok(Command::Why(why)) = parsed(line) else {
            panic!("{line}")
        };
        assert_eq!(why.args, ["nvcc", "-c", "x.cu", "--json"], "{line}");
    }
    assert!(matches!(parsed("why"), Ok(Command::Why(why)) if why.args.is_empty()));
}

#[test]
fn the_small_commands() {
    assert!(matches!(parsed("stats --json"), Ok(Command::Stats(s)) if s.json && !s.zero));
    assert!(matches!(
        parsed("cache gc"),
        Ok(Command::Cache(CacheCommand::Gc {
            other_versions: false,
            older_than: None
        }))
    ));
    assert!(matches!(parsed("config"), Ok(Command::Config(c)) if !c.json));
    assert!(message("cache").contains("Usage: warpcc cache <COMMAND>"));
    assert!(message("--version").starts_with("warpcc "));
}

#[test]
fn report_takes_one_build_in_any_form() {
    let Ok(Command::Report(report)) = parsed("report --build a.1 -o x.html --json --trace t.json")
    else {
        panic!("not report")
    };
    assert_eq!(report.build.as_deref(), Some("a.1"));
    assert_eq!(report.output.as_deref(), Some(Path::new("x.html")));
    assert!(report.json && !report.last && !report.list);
    assert!(message("report --last --build x").contains("cannot be used with"));
    assert!(message("report --list -o x.html").contains("cannot be used with"));
}

#[test]
fn monitor_takes_a_sensible_interval() {
    let line = "monitor --interval 2.5 --plain";
    let Ok(Command::Monitor(monitor)) = parsed(line) else {
        panic!("not monitor")
    };
    assert_eq!(monitor.interval.as_secs_f64(), 2.5);
    assert!(monitor.plain);
    assert!(matches!(parsed("monitor"), Ok(Command::Monitor(m)) if !m.plain));
    for wrong in ["0", "nan", "-1", "1e9", "soon"] {
        let line = format!("monitor --interval={wrong}");
        assert!(message(&line).contains("from 0.1 to 3600"), "{wrong}");
    }
}

#[test]
fn doctor_takes_json_and_nothing_else() {
    assert!(matches!(parsed("doctor --json"), Ok(Command::Doctor(d)) if d.json));
    assert!(message("doctor nvcc").contains("unexpected argument"));
}

#[test]
fn completions_know_the_subcommands() {
    for shell in [
        CompletionShell::Bash,
        CompletionShell::Zsh,
        CompletionShell::Fish,
    ] {
        let mut script = Vec::new();
        completions::write(shell, Cli::command(), &mut script).unwrap();
        let script = String::from_utf8(script).unwrap();
        for word in ["stats", "--graph", "verify"] {
            // fish writes long options without their dashes.
            assert!(
                script.contains(word.trim_start_matches('-')),
                "{shell:?}: {word}"
            );
        }
    }
}

#[test]
fn help_reads_well() {
    for (name, line) in [
        ("help", "--help"),
        ("help_run", "run --help"),
        ("help_cache", "cache --help"),
        ("help_monitor", "monitor --help"),
        ("help_doctor", "doctor --help"),
        ("help_report", "report --help"),
        ("help_fatbin", "fatbin --help"),
        ("help_explain", "explain --help"),
        ("help_jit", "jit --help"),
        ("help_jit_advise", "jit advise --help"),
        ("help_rtc_compile", "rtc compile --help"),
        ("help_rtc_warm", "rtc warm --help"),
    ] {
        // A fixed width: the terminal's would change the text.
        let words = std::iter::once("warpcc").chain(line.split_whitespace());
        let help = Cli::command()
            .term_width(100)
            .try_get_matches_from(words)
            .unwrap_err();
        insta::assert_snapshot!(name, help.to_string());
    }
}
