//! Shrinks a failing history while it still fails: leaves out steps, then words, then lines of files.

use std::io;
use std::time::{Duration, Instant};

use super::history::{History, Step};
use super::judge::{Compared, judge};
use super::space::Space;

/// Tries at most this many shorter histories.
const TRIES: usize = 120;
/// Tries for at most this long.
const PATIENCE: Duration = Duration::from_secs(90);

/// Gives the shortest history found that fails, with its differences; `found` are those of the whole history.
///
/// # Errors
/// A history cannot be run.
pub fn shrink(
    space: &mut Space,
    failing: &History,
    mut found: Vec<String>,
) -> io::Result<(History, Vec<String>)> {
    let mut best = failing.clone();
    let Some(mut wrong) = failure(space, &mut best)? else {
        found.push("not wrong when it ran again".to_owned());
        return Ok((best, found));
    };
    let mut left = TriesLeft {
        tries: TRIES,
        end: Instant::now() + PATIENCE,
    };
    loop {
        let before = best.clone();
        for size in [16, 8, 4, 2, 1] {
            let mut at = best.0.len();
            while at > 0 && left.any() {
                at = at.min(best.0.len());
                let start = at.saturating_sub(size);
                let mut shorter = best.clone();
                shorter.0.drain(start..at);
                try_it(space, shorter, &mut best, &mut wrong, &mut left)?;
                at = start;
            }
        }
        let mut at = 0;
        while at < best.0.len() {
            let mut word = best.0[at].0.len();
            while word > 1 && left.any() {
                word -= 1;
                for shorter in simpler(&best, at, word) {
                    if try_it(space, shorter, &mut best, &mut wrong, &mut left)? {
                        break;
                    }
                }
                if at >= best.0.len() {
                    break;
                }
                word = word.min(best.0[at].0.len());
            }
            at += 1;
        }
        if best == before || !left.any() {
            return Ok((best, wrong));
        }
    }
}

/// The tries and the time that are left.
struct TriesLeft {
    tries: usize,
    end: Instant,
}

impl TriesLeft {
    fn any(&self) -> bool {
        self.tries > 0 && Instant::now() < self.end
    }
}

/// The history without one word of one step, or without an option and its value, or with a simpler word.
fn simpler(history: &History, at: usize, word: usize) -> Vec<History> {
    let Some(step) = history.0.get(at) else {
        return Vec::new();
    };
    let with = |words: Vec<String>| {
        let mut changed = history.clone();
        changed.0[at] = Step(words);
        changed
    };
    let mut all = Vec::new();
    let without = |count: usize| {
        let mut words = step.0.clone();
        words.drain(word..word + count);
        words
    };
    let Some(text) = step.0.get(word) else {
        return all;
    };
    if step.is_call() || matches!(step.verb(), "write" | "script" | "replace" | "thin") && word > 1
    {
        if text.starts_with('-') && word + 1 < step.0.len() && text != "--" {
            all.push(with(without(2)));
        }
        all.push(with(without(1)));
    }
    // A condition on the architecture.
    if let Some((head, rest)) = text.split_once('?')
        && head.starts_with('@')
        && let Some((_, verb)) = rest.split_once(' ')
    {
        let mut words = step.0.clone();
        words[word] = format!("{head} {verb}");
        all.push(with(words));
    }
    all
}

fn try_it(
    space: &mut Space,
    mut shorter: History,
    best: &mut History,
    wrong: &mut Vec<String>,
    left: &mut TriesLeft,
) -> io::Result<bool> {
    if !left.any() || shorter == *best {
        return Ok(false);
    }
    left.tries -= 1;
    let found = failure(space, &mut shorter)?;
    let fails = found.is_some();
    if let Some(found) = found {
        *best = shorter;
        *wrong = found;
    }
    Ok(fails)
}

/// The differences of the first wrong call. The history is cut after that call. `None` where all calls are right.
fn failure(space: &mut Space, history: &mut History) -> io::Result<Option<Vec<String>>> {
    let verdict = judge(space, history, Compared::Last)?;
    Ok(verdict.wrong.map(|(at, found)| {
        history.0.truncate(at + 1);
        found
    }))
}
