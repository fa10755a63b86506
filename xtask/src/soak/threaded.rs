//! What a build under `-t` may print and leave: commands run at once, so a failing build with nvcc has several results.

use std::collections::BTreeSet;
use std::io;

use super::by_chance;
use super::calls::{CallOutcome, differences, run_nvcc};
use super::space::Space;
use super::tree::Tree;

/// How often nvcc runs to see whether its result is one of those that a race can have.
const TIMES: usize = 40;

/// Whether commands of a call run at once, so that the order of their messages is a race.
pub(super) fn is_threaded(line: &[String]) -> bool {
    let mut words = line.iter();
    words.any(|word| {
        word.starts_with("-t") && !word.starts_with("-time") || word.starts_with("--threads")
    })
}

/// Whether a failing build of nvcc may print what warpcc printed. The trees are those before and after warpcc.
pub(super) fn may_say(
    space: &Space,
    line: &[String],
    (want, got): (&CallOutcome, &CallOutcome),
    trees: (&Tree, &Tree),
) -> io::Result<bool> {
    Ok(got.code != 0
        && got.code == want.code
        && is_threaded(line)
        && (says_the_same_lines(space, want, got) || is_said_at_times(space, line, got, trees)?))
}

/// How the files that warpcc left differ from those of nvcc, and from all that nvcc may leave in a failing build. The trees
/// are those before, after nvcc, and after warpcc.
pub(super) fn differences_of_files(
    space: &Space,
    lines: &[Vec<String>],
    wanted: &[CallOutcome],
    (before, want, got): (&Tree, &Tree, &Tree),
) -> io::Result<Vec<String>> {
    let found = want.differences(got, &space.root);
    let mut calls = wanted.iter().zip(lines);
    let is_race = calls.all(|(want, line)| want.code != 0 && is_threaded(line));
    match !found.is_empty() && is_race && are_left_at_times(space, lines, (before, got))? {
        true => Ok(Vec::new()),
        false => Ok(found),
    }
}

/// Whether two failing builds print the same lines, in any number: with `-t`, nvcc reports a missing program once for each
/// command that it started before it knew of the first failure.
fn says_the_same_lines(space: &Space, want: &CallOutcome, got: &CallOutcome) -> bool {
    let lines = |said: &[u8]| -> BTreeSet<String> {
        let plain = by_chance::without_names(&space.root, said);
        plain.lines().map(str::to_owned).collect()
    };
    lines(&want.stdout) == lines(&got.stdout) && lines(&want.stderr) == lines(&got.stderr)
}

/// Whether nvcc, run several times from the tree before, ends like that at least once: its messages for a failing build
/// under `-t` are a race. The tree is put back to its current state.
fn is_said_at_times(
    space: &Space,
    line: &[String],
    got: &CallOutcome,
    (before, now): (&Tree, &Tree),
) -> io::Result<bool> {
    let mut is_said = false;
    for _ in 0..TIMES {
        before.put_back(&Tree::take(&space.watched()));
        let again = run_nvcc(space, &[line.to_vec()])?;
        is_said = again
            .iter()
            .all(|again| differences(space, again, got, true).is_empty());
        if is_said {
            break;
        }
    }
    now.put_back(&Tree::take(&space.watched()));
    Ok(is_said)
}

/// Whether nvcc, run several times from the tree before, leaves these files at least once: under `-t`, a failing command ends
/// nvcc while others are at work. The tree is put back to its current state.
fn are_left_at_times(
    space: &Space,
    lines: &[Vec<String>],
    (before, got): (&Tree, &Tree),
) -> io::Result<bool> {
    let mut are_left = false;
    for _ in 0..TIMES {
        before.put_back(&Tree::take(&space.watched()));
        run_nvcc(space, lines)?;
        let again = Tree::take(&space.watched());
        are_left = again.differences(got, &space.root).is_empty();
        if are_left {
            break;
        }
    }
    got.put_back(&Tree::take(&space.watched()));
    Ok(are_left)
}
