//! The counters that a call adds to: reasons without paths, and the steps of each tool.

use warpcc_engine::StepOutcome as TaskOutcome;
use warpcc_plan::Tool;

use crate::build::Built;
use crate::direct::NotStored;

/// The reason without the path in it, for a counter. Each path would make one more counter, and counters are never removed.
pub(super) fn counted_reason(why: &NotStored) -> String {
    let NotStored::NotReusable(why) = why else {
        return "the cache cannot be written".to_owned();
    };
    let known = [
        "changed while it was in use",
        "is gone",
        "appeared meanwhile",
        "not a regular file",
        "#pragma GCC dependency",
    ];
    if let Some(kind) = known.into_iter().find(|kind| why.contains(kind)) {
        return kind.to_owned();
    }
    let words: Vec<&str> = why.split(' ').collect();
    let is_of_path = |word: &&str| word.contains('/');
    // A path may have spaces in it.
    let Some(first) = words.iter().position(is_of_path) else {
        return why.clone();
    };
    let last = words.iter().rposition(is_of_path).unwrap_or(first);
    let others: Vec<&str> = [&words[..first], &words[last + 1..]].concat();
    match others.is_empty() {
        true => "a file".to_owned(),
        false => others.join(" "),
    }
}

/// Counts for `warpcc stats`: hits and misses of each tool, the time that hits saved, and the time that the other steps took.
pub(super) fn step_counts(built: &Built) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = Vec::new();
    let mut add = |name: String, count: u64| match counts.iter_mut().find(|(n, _)| *n == name) {
        Some((_, n)) => *n += count,
        None => counts.push((name, count)),
    };
    for task in &built.run.tasks {
        let tool = built.graph.steps[task.step].tool;
        let counted = matches!(
            tool,
            Tool::CudaFe
                | Tool::Cicc
                | Tool::Nvvm
                | Tool::Ptxas
                | Tool::HostCompile
                | Tool::Clang
                | Tool::HostAssembly
                | Tool::Nvlink
                | Tool::Fatbinary
        );
        let kind = match task.outcome {
            TaskOutcome::Hit => "hits",
            TaskOutcome::Ran | TaskOutcome::Failed(_) => "misses",
            TaskOutcome::Skipped => continue,
        };
        if task.is_remote {
            add("remote.executed".to_owned(), 1);
        }
        if counted {
            add(format!("steps.{}.{kind}", tool.name()), 1);
        }
        let (name, time) = match task.outcome {
            TaskOutcome::Hit => ("saved.micros", task.saved),
            _ => ("spent.micros", task.user + task.system),
        };
        let micros = u64::try_from(time.as_micros()).unwrap_or(0);
        add(name.to_owned(), micros);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_counted_without_the_path_in_it() {
        for (why, kind) in [
            ("/w/a b/side-1.txt is written too", "is written too"),
            ("/w/a.h is gone", "is gone"),
            (
                "what started /bin/cc could not be watched",
                "what started could not be watched",
            ),
            ("-arch=native", "-arch=native"),
            ("/w/a", "a file"),
        ] {
            assert_eq!(
                counted_reason(&NotStored::NotReusable(why.to_owned())),
                kind,
                "{why}"
            );
        }
    }
}
