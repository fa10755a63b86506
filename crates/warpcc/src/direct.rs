//! The direct level: looks up a whole invocation by its command and its input manifest. A hit starts no process.

mod keep;

use std::io::Write;
use std::path::{Path, PathBuf};

use warpcc_cache::{
    Difference, Digest, DiskStore, Key, KeyVariant, KeyVariants, Level, Lookup, LookupMiss,
    Outcome, ProducedFile, Staged, StoreError, Upstream, Wanted, foreign,
};
use warpcc_engine::conditions::Conditions;
use warpcc_plan::{OutputKind, Unsupported};

pub use self::keep::{DATE_MACRO, Keeping, Made, NATIVE, NotKept};
use crate::outputs::{ExpectedKind, Outputs};
use crate::request::Request;
use crate::standard_streams;

/// The role of an output whose path each command line names.
const OUTPUT: &str = "-o";
const DEPENDENCIES: &str = "-MF";
/// Comes before the path in the role of any other output.
const AT: &str = "at ";
/// Comes before the role of a dependency file that is stored with fixed names in it (see [`warpcc_path_map`]).
const LISTS: &str = "lists ";
/// The reason not to store a call whose plan writes a file that [`warpcc_plan::Invocation::outputs`] does not know.
const UNEXPECTED: &str = "an output under a name that the command line does not imply";

/// The result of a look-up.
#[derive(Debug)]
pub enum Served {
    /// All outputs are in place. Making them had cost this many microseconds of processor time.
    Hit(u64),
    /// The call has to be built; the first file that differs, where that is the reason.
    Miss(Option<Difference>),
    /// Plain nvcc has to write these outputs.
    NotOurs(Unsupported),
}

/// Checks whether a stored result is valid for this call, as far as that can be told without files: everything but files
/// that the run observed must be the same for this call.
///
/// # Errors
/// The variable that differs, where it is one.
pub fn conditions_hold(
    variant: &KeyVariant,
    outcome: &Outcome,
    request: &Request,
) -> Result<(), Option<Difference>> {
    let conditions = Conditions::decode(&outcome.extra).filter(|_| variant.suits(outcome));
    conditions.ok_or(None)?.hold(request.place())
}

/// Looks the call up and, on a hit, puts everything in place.
///
/// # Errors
/// An output cannot be written; plain nvcc will say so in its own words.
pub fn serve(
    store: &DiskStore,
    request: &Request,
    keys: &KeyVariants,
) -> Result<Served, StoreError> {
    let mut first = None;
    for variant in keys.iter() {
        match serve_under(variant, store, request)? {
            Served::Miss(difference) => first = first.or(difference),
            hit => return Ok(hit),
        }
    }
    Ok(Served::Miss(first))
}

/// Asks the shared caches for a call under each of its names. True where another look-up may hit.
pub fn fetch(
    upstream: &dyn Upstream,
    store: &DiskStore,
    names: &[(&Request, &KeyVariants)],
) -> bool {
    // Only nvcc's plan knows the files that `-keep` leaves.
    let leaves_more = |request: &Request| request.invocation.kept_folder().is_some();
    if names.iter().any(|(request, _)| leaves_more(request)) {
        return false;
    }
    let implied: Vec<Vec<Implied>> = names.iter().map(|(request, _)| implied(request)).collect();
    let vets: Vec<_> = implied
        .iter()
        .map(|implied| move |outcome: &mut Outcome| accepts(outcome, implied))
        .collect();
    let keys: Vec<Vec<Key>> = names.iter().map(|(_, keys)| keys.keys()).collect();
    let mut wanted = Vec::new();
    for (((request, _), keys), vet) in names.iter().zip(&keys).zip(&vets) {
        wanted.extend(keys.iter().map(|key| Wanted {
            level: Level::Direct,
            key,
            at: request.work_dir(),
            vet,
        }));
    }
    upstream.fetch(store, &wanted)
}

fn serve_under(
    variant: &KeyVariant,
    store: &DiskStore,
    request: &Request,
) -> Result<Served, StoreError> {
    let implied = implied(request);
    let mut staged: Vec<(Digest, PathBuf, Staged)> = Vec::new();
    let meanwhile = |outcome: &Outcome| {
        if !variant.suits(outcome) {
            return;
        }
        for output in &outcome.outputs {
            if !output.role.starts_with(LISTS)
                && let Some((path, may_run)) = place_of(&output.role, &implied, request)
                && let Ok(Some(ready)) =
                    store.stage(&output.digest, &path, output.executable && may_run)
            {
                staged.push((output.digest, path, ready));
            }
        }
    };
    let holds = |outcome: &Outcome| conditions_hold(variant, outcome, request);
    let at = request.work_dir();
    let outcome = match store.look_up_if(Level::Direct, &variant.key, at, &holds, meanwhile) {
        Lookup::Hit(outcome, _) => outcome,
        Lookup::Miss(LookupMiss::Differs(mut differences)) => {
            return Ok(Served::Miss(differences.pop()));
        }
        Lookup::Miss(_) => return Ok(Served::Miss(None)),
    };
    if !outcome.stdout.is_empty() && !outcome.stderr.is_empty() && standard_streams::are_one() {
        return Ok(Served::NotOurs(Unsupported::new(
            standard_streams::MIXED,
            "",
        )));
    }
    if let Err(why) = decide_on_outputs(&outcome, &implied, request) {
        return Ok(Served::NotOurs(why));
    }
    for output in &outcome.outputs {
        let Some((path, may_run)) = place_of(&output.role, &implied, request) else {
            return Ok(Served::Miss(None));
        };
        if output.role.starts_with(LISTS) {
            let real = |text: &[u8]| request.path_map.real_text(text);
            if store.get_changed_to(&output.digest, &path, real)? {
                continue;
            }
            return Ok(Served::Miss(None));
        }
        // Another run's outcome may be the valid one.
        let ready = staged
            .iter()
            .position(|(digest, at, _)| *digest == output.digest && *at == path);
        match ready {
            Some(ready) => staged.swap_remove(ready).2.commit()?,
            None if store.get_to(&output.digest, &path, output.executable && may_run)? => {}
            None => return Ok(Served::Miss(None)),
        }
    }
    let real = |text: &[u8]| request.path_map.real_text(text);
    emit(&real(&outcome.stdout), &real(&outcome.stderr));
    Ok(Served::Hit(outcome.micros))
}

/// Checks all outputs before the first one is touched: a new file must be allowed to take each name.
fn decide_on_outputs(
    outcome: &Outcome,
    implied: &[Implied],
    request: &Request,
) -> Result<(), Unsupported> {
    let mut outputs = Outputs::new(request)?;
    for output in &outcome.outputs {
        if let Some((path, _)) = place_of(&output.role, implied, request) {
            outputs.decide(&path, ExpectedKind::from_record(output.executable))?;
        }
    }
    Ok(())
}

/// Writes both streams, each in one piece.
pub fn emit(stdout: &[u8], stderr: &[u8]) {
    // A closed stream is the reader's decision; the build goes on as nvcc's would.
    if !stdout.is_empty() {
        _ = std::io::stdout().write_all(stdout);
        _ = std::io::stdout().flush();
    }
    if !stderr.is_empty() {
        _ = std::io::stderr().write_all(stderr);
    }
}

/// An output that the command line implies, and the role under which a record has it.
struct Implied {
    role: String,
    place: PathBuf,
    kind: OutputKind,
}

/// Every output that the command line implies, but for the intermediate files of `-keep`.
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
            place: request.absolute(&output.path),
            kind: output.kind,
        }
    });
    outputs.collect()
}

/// The path of a record's output, and whether the file may be executable; `None` for an output that the command line
/// does not imply. Records made here, and only those ([`accepts`]), may also have intermediate files in the folder of
/// `-keep`.
fn place_of(role: &str, implied: &[Implied], request: &Request) -> Option<(PathBuf, bool)> {
    if let Some(found) = implied.iter().find(|implied| implied.role == role) {
        return Some((found.place.clone(), found.kind == OutputKind::Linked));
    }
    let folder = Path::new(request.invocation.kept_folder()?);
    let path = Path::new(role.strip_prefix(AT)?);
    let is_kept = path.parent() == Some(folder) && path.file_name().is_some();
    is_kept.then(|| (request.directory.join(path), false))
}

/// Whether a result from elsewhere has exactly the outputs that the command line implies, each once. The result may hold
/// any object, but must not choose the file that the object is written to. Also makes its messages fit to be shown.
fn accepts(outcome: &mut Outcome, implied: &[Implied]) -> bool {
    let suits = |output: &ProducedFile, implied: &Implied| {
        let (may_run, most) = match implied.kind {
            OutputKind::Linked => (true, foreign::LARGEST_OUTPUT),
            OutputKind::Result => (false, foreign::LARGEST_OUTPUT),
            // The file is changed in memory before it is written.
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
