//! The direct level: a whole invocation by its command and what it saw. A hit starts no process.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use warpcc_cache::{
    Difference, Digest, DiskStore, Inspect, KeyVariant, KeyVariants, Level, Lookup, LookupMiss,
    Outcome, Packing, ProducedFile, Staged, StoreError, Upstream, foreign,
};
use warpcc_engine::Run;
use warpcc_engine::conditions::Conditions;
use warpcc_engine::modes;
use warpcc_engine::process::is_executable;
use warpcc_engine::traced_inputs::PathUse;
use warpcc_plan::{OutputKind, Unsupported};
use warpcc_report::record::Header;
use warpcc_watch::PathText;

use crate::dates::{Dates, Texts};
use crate::outputs::{ExpectedKind, Outputs};
use crate::request::Request;
use crate::standard_streams;

/// Roles of outputs whose place the command line names anew each time.
const OUTPUT: &str = "-o";
const DEPENDENCIES: &str = "-MF";
/// Before any other output's path.
const AT: &str = "at ";
/// Before the role of a dependency file that is kept with fixed names in it (see [`warpcc_path_map`]).
const LISTS: &str = "lists ";
/// Why a call is not kept whose plan writes a file that [`warpcc_plan::Invocation::outputs`] does not know.
const UNEXPECTED: &str = "an output under a name that the command line does not imply";

/// What became of a look-up.
#[derive(Debug)]
pub enum Served {
    /// Everything is in place; making it had cost so many microseconds of processor time.
    Hit(u64),
    /// The compiler has to do it; the first file that is different, where that is the reason.
    Miss(Option<Difference>),
    /// It is plain nvcc's to write these outputs.
    NotOurs(Unsupported),
}

/// Whether a result under a key is one for this call, as far as that can be told without files: what the run was told
/// besides files is what this call would be told.
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

/// Asks others for the call. True where looking it up once more may find it.
pub fn fetch(
    upstream: &dyn Upstream,
    store: &DiskStore,
    request: &Request,
    keys: &KeyVariants,
) -> bool {
    // What `-keep` leaves is known to nvcc's plan alone.
    if request.invocation.kept_folder().is_some() {
        return false;
    }
    let implied = implied(request);
    let vet = |outcome: &mut Outcome| accepts(outcome, &implied);
    upstream.fetch(store, Level::Direct, &keys.keys(), request.work_dir(), &vet)
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
        // Another run's outcome may be the one that holds.
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

/// Before the first output is touched: all of them must be such that a new file may take the name.
fn decide_on_outputs(
    outcome: &Outcome,
    implied: &[Implied],
    request: &Request,
) -> Result<(), Unsupported> {
    let mut outputs = Outputs::of(request)?;
    for output in &outcome.outputs {
        if let Some((path, _)) = place_of(&output.role, implied, request) {
            outputs.decide(&path, ExpectedKind::of(output.executable))?;
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

/// Where an output of a record goes, and whether it may be executable there; nothing for one that the command line does
/// not imply. Of records made here, and only of those ([`accepts`]), intermediate files in the folder of `-keep` too.
fn place_of(role: &str, implied: &[Implied], request: &Request) -> Option<(PathBuf, bool)> {
    if let Some(found) = implied.iter().find(|implied| implied.role == role) {
        return Some((found.place.clone(), found.kind == OutputKind::Linked));
    }
    let folder = Path::new(request.invocation.kept_folder()?);
    let path = Path::new(role.strip_prefix(AT)?);
    let is_kept = path.parent() == Some(folder) && path.file_name().is_some();
    is_kept.then(|| (request.directory.join(path), false))
}

/// Whether a result from elsewhere has the outputs that the command line implies, each once, and no other. It may hold any
/// object, but it must not choose the file that the object is written to. What it says is made fit to be shown.
fn accepts(outcome: &mut Outcome, implied: &[Implied]) -> bool {
    let suits = |output: &ProducedFile, implied: &Implied| {
        let (may_run, most) = match implied.kind {
            OutputKind::Linked => (true, foreign::LARGEST_OUTPUT),
            OutputKind::Result => (false, foreign::LARGEST_OUTPUT),
            // It is changed in memory on its way.
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

/// A final file of a run.
pub struct Made {
    /// Where it is now.
    pub now: PathBuf,
    /// As the plan names it.
    pub plan: String,
    /// It is a dependency file: names of files are what it holds.
    pub lists_files: bool,
}

/// Why a result that holds the day of its making is not stored.
pub const DATE_MACRO: &str = "a date macro";
/// Why a result for this machine's own GPU is not stored.
pub const NATIVE: &str = "-arch=native";

/// Why a finished run is not stored.
#[derive(Debug)]
pub enum NotKept {
    /// It would not be good for another time.
    Unfit(String),
    /// It could not be written.
    Store(StoreError),
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(why) => f.write_str(why),
            Self::Store(error) => {
                write!(f, "{error}")?;
                match error.source() {
                    Some(source) => write!(f, ": {source}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl From<StoreError> for NotKept {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Stores the final files of a run. Gives whether one of them has a folder's name in it that should not count.
fn store_outputs(
    store: &DiskStore,
    request: &Request,
    outputs: &[Made],
) -> Result<(Vec<ProducedFile>, bool), NotKept> {
    let mut stored = Vec::with_capacity(outputs.len());
    let implied = implied(request);
    let path_map = &request.path_map;
    let mut is_bound = false;
    for Made {
        now,
        plan,
        lists_files,
    } in outputs
    {
        let role = role_of(plan, request);
        let is_changed = *lists_files && !path_map.is_empty();
        let looked_for = match is_changed {
            true => format!("{LISTS}{role}"),
            false => role.clone(),
        };
        if place_of(&looked_for, &implied, request).is_none() {
            return Err(NotKept::Unfit(UNEXPECTED.to_owned()));
        }
        if !modes::is_usual(now) {
            return Err(NotKept::Unfit(modes::UNUSUAL.to_owned()));
        }
        let unreadable = |e: io::Error| NotKept::Unfit(e.to_string());
        if path_map.is_empty() {
            stored.push(ProducedFile {
                role,
                digest: store.put_file(now, Packing::Zstd)?,
                executable: is_executable(now),
            });
        } else if *lists_files {
            let fixed = path_map.fix_text(&fs::read(now).map_err(unreadable)?);
            stored.push(ProducedFile {
                role: format!("{LISTS}{role}"),
                digest: store.put_bytes(&fixed, Packing::Zstd)?,
                executable: false,
            });
        } else {
            is_bound = is_bound || path_map.is_named_in(&fs::read(now).map_err(unreadable)?);
            stored.push(ProducedFile {
                role,
                digest: store.put_file(now, Packing::Zstd)?,
                executable: is_executable(now),
            });
        }
    }
    Ok((stored, is_bound))
}

/// Stores a finished run. `outputs` are the final files, `texts` where dates could stand.
///
/// Gives the headers that were read.
///
/// # Errors
/// Why the call will not hit next time, in words.
pub fn keep(
    (store, upstream): (&DiskStore, Option<&dyn Upstream>),
    request: &Request,
    keys: &KeyVariants,
    run: &Run,
    outputs: &[Made],
    texts: &Texts<'_>,
    streams: (&[u8], &[u8]),
) -> Result<Vec<Header>, NotKept> {
    if let Some(why) = &run.seen.untracked {
        return Err(NotKept::Unfit(why.clone()));
    }
    if request.invocation.native {
        return Err(NotKept::Unfit(NATIVE.to_owned()));
    }
    // A tool that reads what stands at an output's place reads what an earlier call left there, unless the output is
    // written in place.
    let own: Vec<PathText> = outputs
        .iter()
        .flat_map(|made| {
            let in_place = request.absolute(&made.plan) == request.directory.join(&made.now);
            let named = in_place.then_some(Path::new(&made.plan));
            [Some(made.now.as_path()), named]
        })
        .flatten()
        .map(PathText::from)
        .collect();
    let own = |path: &Path, _: PathUse| own.iter().any(|own| own.as_os_str() == path.as_os_str());
    let mut builder = run.seen.manifest(run.began, own);
    for file in &request.invocation.options_files {
        builder.read(Path::new(file));
    }
    let mut dates = Dates::in_texts(texts);
    let need_files = dates.need_files();
    let mut inspect = |_: &Path, text: &[u8]| dates.inspect(text);
    let inspect = need_files.then_some(&mut inspect as Inspect<'_>);
    let manifest = builder
        .relative_to(&request.directory)
        .finish_knowing(store, inspect)
        .map_err(|e| NotKept::Unfit(e.to_string()))?;
    if dates.are_of_today() {
        return Err(NotKept::Unfit(DATE_MACRO.to_owned()));
    }
    let path_map = &request.path_map;
    let (stored, holds_folder) = store_outputs(store, request, outputs)?;
    let is_bound = holds_folder || run.tasks.iter().any(|task| task.is_path_specific);
    let outcome = Outcome {
        outputs: stored,
        stdout: path_map.fix_text(streams.0),
        stderr: path_map.fix_text(streams.1),
        extra: Conditions::of(&run.seen.asked, &run.seen.times, request.place()).encode(),
        micros: run
            .tasks
            .iter()
            // A step that hit has cost what making its result had.
            .map(|t| u64::try_from((t.user + t.system + t.saved).as_micros()).unwrap_or(0))
            .sum(),
    };
    let key = keys.for_result(is_bound, &outcome);
    let key = key.ok_or_else(|| NotKept::Unfit("a folder's name is in the result".to_owned()))?;
    store.store_mapped(Level::Direct, &key, path_map, &manifest, &outcome)?;
    if let Some(upstream) = upstream.filter(|_| request.invocation.kept_folder().is_none()) {
        upstream.offer(store, Level::Direct, &key);
    }
    let headers = manifest.files().filter(|file| is_header(&file.path));
    Ok(headers
        .map(|file| Header {
            path: file.path.to_string_lossy().into_owned(),
            bytes: file.signature.size,
        })
        .collect())
}

/// Whether a file that was read is one that people would call a header. The C++ library's have no ending.
fn is_header(path: &Path) -> bool {
    match path.extension() {
        Some(ending) => ["h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tcc"]
            .iter()
            .any(|known| ending == *known),
        None => path.components().any(|part| part.as_os_str() == "include"),
    }
}
