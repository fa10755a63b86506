//! Judges a history: each call runs with a fresh nvcc that keeps its files, then, with the folders put back, with warpcc.
//! Every difference is wrong.

use std::fs;
use std::io;
use std::path::Path;

use super::by_chance;
use super::calls::{
    CallOutcome, clear, differences, run_killed, run_nvcc, run_warpcc, run_without_cache,
};
use super::history::{History, Step};
use super::space::Space;
use super::threaded;
use super::tree::{BYTES_DIFFER, Tree};

/// The result of a history.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The step of the first wrong call, and its differences; `None` where all calls were right.
    pub wrong: Option<(usize, Vec<String>)>,
    /// Calls that were compared.
    pub calls: u64,
    /// Steps that were no calls.
    pub changes: u64,
    /// Lines of warpcc's log, one for each message, without the process id.
    pub log: Vec<String>,
    /// Calls in which nvcc failed.
    pub failing: u64,
    /// Calls in which warpcc reached a limit of the shell and warned of it, as documented, and nvcc did not.
    pub limit_warnings: u64,
}

/// The calls of a history that nvcc runs, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All calls.
    Every,
    /// The last call: enough, and faster, for a history that is known to go wrong there.
    Last,
}

/// Runs a whole history from an empty cache; it ends with the first wrong call.
///
/// # Errors
/// The space cannot be made, or a command cannot be started.
pub fn judge(space: &mut Space, history: &History, compared: Compared) -> io::Result<Verdict> {
    space.reset()?;
    let mut verdict = Verdict::default();
    let last = history.0.iter().rposition(Step::is_call);
    for (at, step) in history.0.iter().enumerate() {
        if !step.is_call() {
            verdict.changes += 1;
            match step.rest() {
                [signal, time, line @ ..] if step.verb() == "kill" => {
                    run_killed(space, signal, time.parse().unwrap_or(0), line)?;
                }
                _ => space.change(step),
            }
            continue;
        }
        let lines = lines_of(step);
        verdict.calls += lines.len() as u64;
        if space.race.is_some() {
            // nvcc's result is unknown where a file changes while nvcc runs. Only later calls are compared.
            for (_, log) in run_warpcc(space, &lines)? {
                verdict.log.extend(said_in(&log).map(str::to_owned));
            }
            space.race = None;
            clear(&space.root.join("tmp"));
            continue;
        }
        if compared == Compared::Last && Some(at) != last {
            run_warpcc(space, &lines)?;
            continue;
        }
        let found = call(space, &lines, &mut verdict)?;
        if !found.is_empty() {
            verdict.wrong = Some((at, found));
            break;
        }
    }
    Ok(verdict)
}

/// The command lines of a step, with `--` between them.
fn lines_of(step: &Step) -> Vec<Vec<String>> {
    let lines = step.rest().split(|word| word == "--");
    lines.map(<[String]>::to_vec).collect()
}

/// The lines of a log. A limit on the sizes of files may have cut the last one short.
fn whole_lines(log: &str) -> impl Iterator<Item = &str> {
    let lines = log.split_inclusive('\n');
    lines.filter_map(|line| line.strip_suffix('\n'))
}

/// The messages of a log, without the process id before each.
fn said_in(log: &str) -> impl Iterator<Item = &str> {
    whole_lines(log).map(|line| line.split_once(": ").map_or(line, |(_, said)| said))
}

/// Runs the lines as the expected results are made. Gives the endings, and whether warpcc left each line to nvcc.
fn run_wanted(space: &Space, lines: &[Vec<String>]) -> io::Result<(Vec<CallOutcome>, Vec<bool>)> {
    if !relocates(space) {
        return Ok((run_nvcc(space, lines)?, Vec::new()));
    }
    let fresh = run_without_cache(space, lines)?.into_iter();
    Ok(fresh.map(|(end, log)| (end, ran_nvcc(&log))).unzip())
}

/// Whether nvcc carried out the call with this log.
fn ran_nvcc(log: &str) -> bool {
    let mut said = said_in(log);
    said.any(|said| {
        let begins = |text| said.starts_with(text);
        begins("running nvcc") || begins("nothing to cache") || begins("nvcc refuses")
    })
}

fn call(space: &Space, lines: &[Vec<String>], verdict: &mut Verdict) -> io::Result<Vec<String>> {
    let watched = space.watched();
    let before = Tree::take(&watched);
    let relocates = relocates(space);
    let (wanted, nvcc_was_wanted) = run_wanted(space, lines)?;
    let want = Tree::take(&watched);
    before.put_back(&want);
    let mut found = Vec::new();
    let mut nvcc_ran = Vec::new();
    let mut runs_twice = false;
    let mut others = Vec::new();
    for ((at, want), (mut got, log)) in wanted.iter().enumerate().zip(run_warpcc(space, lines)?) {
        verdict.failing += u64::from(want.code != 0);
        if space.is_tight() {
            verdict.limit_warnings += take_limit_warnings(&mut got);
        }
        let is_race = threaded::is_threaded(&lines[at]);
        let differences = differences(space, want, &got, is_race);
        if !differences.is_empty() {
            others.push((at, got, differences));
        }
        nvcc_ran.push(ran_nvcc(&log));
        runs_twice |= said_in(&log).any(|said| said.starts_with("ran twice"));
        verdict.log.extend(said_in(&log).map(str::to_owned));
    }
    let now = Tree::take(&watched);
    for (at, got, differences) in others {
        let is_chance = threaded::may_say(space, &lines[at], (&wanted[at], &got), (&before, &now))?;
        found.extend(differences.into_iter().filter(|_| !is_chance));
    }
    if space.is_tight() && wanted.iter().any(|want| want.code != 0) {
        // A limit ended nvcc. A hit, which writes less, need not reach the limit.
        found.retain(|line| line.contains("hangs"));
        clear(&space.root.join("tmp"));
        return Ok(found);
    }
    let got = Tree::take(&watched);
    let left = fs::read_dir(space.root.join("tmp"))?.flatten();
    found.extend(left.map(|e| format!("tmp/{}: left in TMPDIR", e.file_name().to_string_lossy())));
    clear(&space.root.join("tmp"));
    let bypassed = nvcc_ran.contains(&true);
    let want = match relocates && nvcc_ran != nvcc_was_wanted {
        false => want,
        true if !nvcc_ran.contains(&false) => files_of_nvcc(space, lines, &before, &got)?,
        true => return Ok(found),
    };
    let trees = (&before, &want, &got);
    found.extend(threaded::differences_of_files(
        space, lines, &wanted, trees,
    )?);
    let in_any_number = bypassed || nvcc_was_wanted.contains(&true) || runs_twice;
    found.retain(|line| !is_of_a_wrappers_log(space, line, (&want, &got), in_any_number));
    if !space.is_fake() {
        let name = |line: &str| line.split(": ").next().unwrap_or_default().to_owned();
        found.retain(|line| !by_chance::is_left_by_cicc(Path::new(&name(line))));
    }
    if !space.is_fake() && found.iter().any(|line| line.contains(BYTES_DIFFER)) {
        // A linker's map names the intermediate files.
        found.retain(|line| !line.contains(&format!("map{BYTES_DIFFER}")));
        // nvcc's objects contain random names without --keep, the folder of kept files with -g, and sometimes a process id.
        let flags = space.environment().remove("NVCC_APPEND_FLAGS");
        let debug = flags.as_deref() == Some("-g")
            || lines.iter().flatten().any(|w| w == "-g" || w == "-G");
        let differs = bypassed || debug || {
            before.put_back(&got);
            run_nvcc(space, lines)?;
            let again = want.differences(&Tree::take(&watched), &space.root);
            again.iter().any(|line| line.contains(BYTES_DIFFER))
        };
        if differs {
            found.retain(|line| !line.contains(BYTES_DIFFER));
        }
    }
    Ok(found)
}

/// Whether a difference is only the order of the lines in a wrapper's log, or their number: commands run at once, and those
/// before a second run or before nvcc took over called the wrapper too. docs/troubleshooting.md says so.
fn is_of_a_wrappers_log(
    space: &Space,
    difference: &str,
    (want, got): (&Tree, &Tree),
    in_any_number: bool,
) -> bool {
    let name = difference
        .split_once(BYTES_DIFFER)
        .map_or("", |(name, _)| name);
    name.ends_with("/data/log")
        && want.has_the_same_lines(got, &space.root.join(name), in_any_number)
}

/// The files that nvcc leaves, where warpcc's own were wanted and nvcc carried out the call: nvcc's result contains the
/// caller's folders, and warpcc's does not. Both are right. Which one a call gives can depend on the cache, because it
/// remembers which calls nvcc has to carry out.
fn files_of_nvcc(
    space: &Space,
    lines: &[Vec<String>],
    before: &Tree,
    got: &Tree,
) -> io::Result<Tree> {
    before.put_back(got);
    run_nvcc(space, lines)?;
    clear(&space.root.join("tmp"));
    Ok(Tree::take(&space.watched()))
}

/// Removes warpcc's warnings of a limit that nvcc does not reach from standard error: a result could not be stored.
fn take_limit_warnings(got: &mut CallOutcome) -> u64 {
    const NOT_STORED: &[u8] = b"warpcc: warning: built, but not stored: ";
    let lines = got.stderr.split_inclusive(|&byte| byte == b'\n');
    let (warnings, others): (Vec<&[u8]>, Vec<&[u8]>) =
        lines.partition(|line| line.starts_with(NOT_STORED));
    let others = others.concat();
    let taken = warnings.len() as u64;
    got.stderr = others;
    taken
}

/// Whether the expected results are warpcc's own without a cache, in place of nvcc's: in clones, and where the folder of
/// intermediate files shows.
fn relocates(space: &Space) -> bool {
    space.fresh || space.environment().contains_key("WARPCC_BASE_DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_short_is_none() {
        let lines = |log| whole_lines(log).collect::<Vec<_>>();
        assert_eq!(lines("a\n\nb\n"), ["a", "", "b"]);
        assert_eq!(lines("a\nhost not stored: /w/so"), ["a"]);
        assert_eq!(lines(""), [""; 0]);
    }
}
