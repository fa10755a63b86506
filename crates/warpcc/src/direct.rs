//! The direct level of the cache: looks up a whole call by its direct key and its input manifest. A hit starts no process.

mod store_result;

use std::io::Write;
use std::path::{Path, PathBuf};

use warpcc_cache::{
    Difference, Digest, DiskStore, FetchRequest, Key, KeyVariant, KeyVariants, Level, Lookup,
    LookupMiss, Outcome, ProducedFile, Staged, StoreError, Upstream, foreign,
};
use warpcc_engine::conditions::Conditions;
use warpcc_plan::{OutputKind, Unsupported};

pub use self::store_result::{DATE_MACRO, FinalFile, NATIVE, NotStored, ResultToStore};
use crate::outputs::{ExpectedKind, Outputs};
use crate::request::Request;
use crate::standard_streams;

/// The role, in a record, of the output that `-o` names. Its path is not in the key: every call gets it at its own path.
const OUTPUT: &str = "-o";
/// The same for the dependency file that `-MF` names.
const DEPENDENCIES: &str = "-MF";
/// The role of any other output: this word, and the path.
const AT: &str = "at ";
/// Comes before the role of a dependency file that is stored without the names of mapped folders (see [`warpcc_path_map`]).
const LISTS: &str = "lists ";
/// The reason for not storing a call: its plan writes a file that [`warpcc_plan::Invocation::outputs`] does not list.
const UNEXPECTED: &str = "an output under a name that the command line does not imply";

/// The result of a look-up.
#[derive(Debug)]
pub enum DirectLookup {
    /// All outputs are in place. They took this many microseconds of processor time to make.
    Hit(u64),
    /// The call has to be built. If a record was found that is not valid, the first file that differs.
    Miss(Option<Difference>),
    /// Plain nvcc has to carry out the call: warpcc cannot write these outputs as nvcc would.
    Bypass(Unsupported),
}

/// Checks the part of a record that is not about files: variables, limits and the like, which the tools asked for when the
/// result was made, must be the same now.
///
/// # Errors
/// The variable that differs, if it is a variable.
pub fn conditions_hold(
    variant: &KeyVariant,
    outcome: &Outcome,
    request: &Request,
) -> Result<(), Option<Difference>> {
    let conditions = Conditions::decode(&outcome.extra).filter(|_| variant.suits(outcome));
    conditions.ok_or(None)?.hold(request.run_environment())
}

/// Looks the call up in the cache on this disk. On a hit, puts the outputs in place and prints the messages.
///
/// # Errors
/// An output cannot be written. Plain nvcc then reports it in its own words.
pub fn look_up(
    store: &DiskStore,
    request: &Request,
    keys: &KeyVariants,
) -> Result<DirectLookup, StoreError> {
    let mut first = None;
    for variant in keys.iter() {
        match look_up_under(variant, store, request)? {
            DirectLookup::Miss(difference) => first = first.or(difference),
            hit => return Ok(hit),
        }
    }
    Ok(DirectLookup::Miss(first))
}

/// Asks the shared caches for a call, under its direct key and its content keys. True if a look-up on disk may hit now.
pub fn fetch(
    upstream: &dyn Upstream,
    store: &DiskStore,
    candidates: &[(&Request, &KeyVariants)],
) -> bool {
    // Only nvcc's plan knows the files that `-keep` leaves.
    let leaves_more = |request: &Request| request.invocation.keep_dir().is_some();
    if candidates.iter().any(|(request, _)| leaves_more(request)) {
        return false;
    }
    let implied: Vec<Vec<Implied>> = (candidates.iter())
        .map(|(request, _)| implied(request))
        .collect();
    let checks: Vec<_> = implied
        .iter()
        .map(|implied| move |outcome: &mut Outcome| accepts(outcome, implied))
        .collect();
    let keys: Vec<Vec<Key>> = candidates.iter().map(|(_, keys)| keys.keys()).collect();
    let mut wanted = Vec::new();
    for (((request, _), keys), vet) in candidates.iter().zip(&keys).zip(&checks) {
        wanted.extend(keys.iter().map(|key| FetchRequest {
            level: Level::Direct,
            key,
            at: request.work_dir(),
            vet,
        }));
    }
    upstream.fetch(store, &wanted)
}

fn look_up_under(
    variant: &KeyVariant,
    store: &DiskStore,
    request: &Request,
) -> Result<DirectLookup, StoreError> {
    let implied = implied(request);
    let mut staged: Vec<(Digest, PathBuf, Staged)> = Vec::new();
    let stage_outputs = |outcome: &Outcome| {
        if !variant.suits(outcome) {
            return;
        }
        for output in &outcome.outputs {
            if !output.role.starts_with(LISTS)
                && let Some((path, may_run)) = path_of(&output.role, &implied, request)
                && let Ok(Some(ready)) =
                    store.stage(&output.digest, &path, output.executable && may_run)
            {
                staged.push((output.digest, path, ready));
            }
        }
    };
    let holds = |outcome: &Outcome| conditions_hold(variant, outcome, request);
    let at = request.work_dir();
    let outcome = match store.look_up_if(Level::Direct, &variant.key, at, &holds, stage_outputs) {
        Lookup::Hit(outcome, _) => outcome,
        Lookup::Miss(LookupMiss::Differs(mut differences)) => {
            return Ok(DirectLookup::Miss(differences.pop()));
        }
        Lookup::Miss(_) => return Ok(DirectLookup::Miss(None)),
    };
    if !outcome.stdout.is_empty() && !outcome.stderr.is_empty() && standard_streams::are_one() {
        return Ok(DirectLookup::Bypass(Unsupported::new(
            standard_streams::MIXED,
            "",
        )));
    }
    if let Err(why) = decide_on_outputs(&outcome, &implied, request) {
        return Ok(DirectLookup::Bypass(why));
    }
    for output in &outcome.outputs {
        let Some((path, may_run)) = path_of(&output.role, &implied, request) else {
            return Ok(DirectLookup::Miss(None));
        };
        if output.role.starts_with(LISTS) {
            let real = |text: &[u8]| request.path_map.real_text(text);
            if store.get_changed_to(&output.digest, &path, real)? {
                continue;
            }
            return Ok(DirectLookup::Miss(None));
        }
        // Outputs of each candidate record were staged. Only those of the valid record are put in place.
        let ready = staged
            .iter()
            .position(|(digest, at, _)| *digest == output.digest && *at == path);
        match ready {
            Some(ready) => staged.swap_remove(ready).2.commit()?,
            None if store.get_to(&output.digest, &path, output.executable && may_run)? => {}
            None => return Ok(DirectLookup::Miss(None)),
        }
    }
    let real = |text: &[u8]| request.path_map.real_text(text);
    emit(&real(&outcome.stdout), &real(&outcome.stderr));
    Ok(DirectLookup::Hit(outcome.micros))
}

/// Checks all outputs before the first one is changed: warpcc must be allowed to replace each of them by a new file.
fn decide_on_outputs(
    outcome: &Outcome,
    implied: &[Implied],
    request: &Request,
) -> Result<(), Unsupported> {
    let mut outputs = Outputs::new(request)?;
    for output in &outcome.outputs {
        if let Some((path, _)) = path_of(&output.role, implied, request) {
            outputs.decide(&path, ExpectedKind::from_record(output.executable))?;
        }
    }
    Ok(())
}

/// Writes the messages to standard output and standard error, each in one piece.
pub fn emit(stdout: &[u8], stderr: &[u8]) {
    // Nobody may read the stream any more. nvcc ignores that too.
    if !stdout.is_empty() {
        _ = std::io::stdout().write_all(stdout);
        _ = std::io::stdout().flush();
    }
    if !stderr.is_empty() {
        _ = std::io::stderr().write_all(stderr);
    }
}

/// An output that the command line implies, and its role in a record.
struct Implied {
    role: String,
    path: PathBuf,
    kind: OutputKind,
}

/// Every output that the command line implies, except the intermediate files of `-keep`.
fn implied(request: &Request) -> Vec<Implied> {
    let outputs = request.invocation.outputs().into_iter();
    let outputs = outputs.map(|output| {
        let role = role_of(&output.path, request);
        let is_changed = output.kind == OutputKind::Dependencies && !request.path_map.is_empty();
        Implied {
            role: match is_changed {
                true => format!("{LISTS}{role}"),
                false => role,
            },
            path: request.absolute(&output.path),
            kind: output.kind,
        }
    });
    outputs.collect()
}

/// The path of an output of a record, and whether the file may be executable. `None` for an output that the command line
/// does not imply. Records made on this machine may also have intermediate files in the folder of `-keep`; records from
/// shared caches may not ([`accepts`]).
fn path_of(role: &str, implied: &[Implied], request: &Request) -> Option<(PathBuf, bool)> {
    if let Some(found) = implied.iter().find(|implied| implied.role == role) {
        return Some((found.path.clone(), found.kind == OutputKind::Linked));
    }
    let folder = Path::new(request.invocation.keep_dir()?);
    let path = Path::new(role.strip_prefix(AT)?);
    let is_kept = path.parent() == Some(folder) && path.file_name().is_some();
    is_kept.then(|| (request.directory.join(path), false))
}

/// Whether a record from a shared cache has exactly the outputs that the command line implies, each once. Somebody else
/// chose the contents of the outputs; the record must not also choose the files that they are written to. Removes terminal
/// control characters from its messages.
fn accepts(outcome: &mut Outcome, implied: &[Implied]) -> bool {
    let suits = |output: &ProducedFile, implied: &Implied| {
        let (may_run, most) = match implied.kind {
            OutputKind::Linked => (true, foreign::LARGEST_OUTPUT),
            OutputKind::Result => (false, foreign::LARGEST_OUTPUT),
            // Paths in this file are replaced in memory before it is written.
            OutputKind::Dependencies => (false, foreign::LARGEST_TEXT),
        };
        output.role == implied.role && (may_run || !output.executable) && output.digest.size <= most
    };
    let outputs = &outcome.outputs;
    let is_whole = outputs.len() == implied.len()
        && implied.iter().all(|i| outputs.iter().any(|o| suits(o, i)))
        && outputs.iter().all(|o| implied.iter().any(|i| suits(o, i)));
    outcome.stdout = foreign::shown(&outcome.stdout);
    outcome.stderr = foreign::shown(&outcome.stderr);
    is_whole
}

fn role_of(path: &str, request: &Request) -> String {
    let invocation = &request.invocation;
    if invocation.output_is_free() {
        if invocation.output.as_deref() == Some(path) {
            return OUTPUT.to_owned();
        }
        if invocation.depend.as_ref().and_then(|d| d.output.as_deref()) == Some(path) {
            return DEPENDENCIES.to_owned();
        }
    }
    format!("{AT}{}", request.path_map.fixed(path))
}
