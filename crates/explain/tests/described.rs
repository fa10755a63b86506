//! Every option of every recorded dry run has a line of its own: those of plan's golden files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use warpcc_explain::options;
use warpcc_plan::{TaskGraph, Transcript};

/// The value of `--keep-dir` in record.sh.
const PRIVATE: &str = "/keep/K/";
/// The folder of the plans, which has no dry runs.
const PLANS: &str = "plans";
/// The text that record.sh writes where nvcc refuses a mode.
const REFUSED: &str = "refused\n";

#[test]
fn every_option_of_the_recorded_dry_runs_is_described() {
    let transcripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plan/tests/transcripts");
    let mut unknown: BTreeMap<String, String> = BTreeMap::new();
    let mut described: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut refused = BTreeSet::new();
    let toolkits = fs::read_dir(&transcripts).expect("a folder");
    let toolkits = toolkits.map(|entry| entry.expect("an entry").path());
    for folder in toolkits.filter(|path| path.is_dir() && !path.ends_with(PLANS)) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a transcript");
            if text == REFUSED {
                continue;
            }
            let mode = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let private = if mode.starts_with("keep") {
                ""
            } else {
                PRIVATE
            };
            let Ok(graph) = Transcript::parse(&text).and_then(|t| TaskGraph::build(&t, private))
            else {
                refused.insert(mode);
                continue;
            };
            for step in &graph.steps {
                let words = options::words(step, |id| graph.file(id).path.clone());
                let rows = options::explain(step.tool, &words);
                // Nothing is lost on the way.
                let told: usize = rows.iter().map(|row| row.words.split(' ').count()).sum();
                let said: usize = words.iter().map(|word| word.split(' ').count()).sum();
                let definitions = words.iter().filter(|word| *word == "-D").count();
                assert_eq!(told + definitions, said, "{mode}: {}", step.raw);
                for row in rows {
                    *described.entry(step.tool.name()).or_default() += 1;
                    if !row.known || row.meaning.is_empty() {
                        unknown.insert(format!("{} {}", step.tool, row.words), mode.clone());
                    }
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    for tool in [
        "preprocess",
        "cudafe++",
        "cicc",
        "ptxas",
        "fatbinary",
        "nvlink",
        "host",
        "link",
        "ar",
    ] {
        let count = described.get(tool).copied().unwrap_or(0);
        assert!(count > 5, "{tool}: {count} words in all transcripts");
    }
    // Modes whose plans are bypassed: shell syntax, threads with dependencies, `rm` of a result.
    assert!(refused.len() < 12, "{refused:?}");
}
