//! Stores a call's result under its own key, and under those of its twins.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use warpcc_cache::{
    DiskStore, Fact, InputManifest, Inspect, Key, KeyVariants, Level, Outcome, Packing,
    ProducedFile, StoreError, Upstream,
};
use warpcc_engine::Run;
use warpcc_engine::conditions::Conditions;
use warpcc_engine::modes;
use warpcc_engine::place::RunPlace;
use warpcc_engine::process::is_executable;
use warpcc_engine::traced_inputs::PathUse;
use warpcc_path_map::PathMap;
use warpcc_report::record::Header;
use warpcc_watch::PathText;

use super::{LISTS, UNEXPECTED, implied, place_of, role_of};
use crate::dates::{Dates, Texts};
use crate::request::Request;
use crate::twin::{Evidence, Twin};

/// A final file of a run.
pub struct Made {
    /// The file's current path.
    pub now: PathBuf,
    /// The file's path in the plan.
    pub plan: String,
    /// Whether it is a dependency file, whose contents are names of files.
    pub lists_files: bool,
}

/// Why a result that holds the day of its making is not stored.
pub const DATE_MACRO: &str = "a date macro";
/// Why a result for this machine's own GPU is not stored.
pub const NATIVE: &str = "-arch=native";

/// Why a finished run is not stored.
#[derive(Debug)]
pub enum NotKept {
    /// The result would not be valid another time.
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

/// Stores the final files of a run. Also tells whether one of them contains a folder's name that should not count.
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

/// A finished run, about to be stored.
pub struct Keeping<'a> {
    /// The store that gets the run.
    pub store: &'a DiskStore,
    /// The shared caches behind it.
    pub upstream: Option<&'a dyn Upstream>,
    /// The call.
    pub request: &'a Request,
    /// The call's keys.
    pub keys: &'a KeyVariants,
    /// Calls that may share the result.
    pub twins: &'a [Twin],
    /// The files that show whether the twins may share it; `None` where that cannot be judged.
    pub evidence: Option<Evidence>,
    /// The run of the plan.
    pub run: &'a Run,
    /// The final files.
    pub outputs: &'a [Made],
    /// Where dates could stand.
    pub texts: &'a Texts<'a>,
    /// The tools' standard output and standard error.
    pub streams: (&'a [u8], &'a [u8]),
}

impl Keeping<'_> {
    /// Stores the run. Gives the headers that were read.
    ///
    /// # Errors
    /// Why the call will not hit next time, in words.
    pub fn keep(&self) -> Result<Vec<Header>, NotKept> {
        let request = self.request;
        if let Some(why) = &self.run.seen.untracked {
            return Err(NotKept::Unfit(why.clone()));
        }
        if request.invocation.native {
            return Err(NotKept::Unfit(NATIVE.to_owned()));
        }
        let manifest = self.manifest()?;
        let (stored, holds_folder) = store_outputs(self.store, request, self.outputs)?;
        let tasks = &self.run.tasks;
        let is_bound = holds_folder || tasks.iter().any(|task| task.is_path_specific);
        let outcome = self.outcome(request, stored);
        let key = self.keys.for_result(is_bound, &outcome);
        let unfit = || NotKept::Unfit("a folder's name is in the result".to_owned());
        self.store_under(&key.ok_or_else(unfit)?, request, &manifest, &outcome)?;
        self.keep_for_twins(&manifest, &outcome.outputs);
        let headers = manifest.files().filter(|file| is_header(&file.path));
        Ok(headers
            .map(|file| Header {
                path: file.path.to_string_lossy().into_owned(),
                bytes: file.signature.size,
            })
            .collect())
    }

    /// The run's input manifest. Fails where the run must not be stored.
    fn manifest(&self) -> Result<InputManifest, NotKept> {
        let (request, run) = (self.request, self.run);
        // A tool that reads a file at an output's path reads an earlier call's file, unless the output is written in place.
        let own = self.outputs.iter().flat_map(|made| {
            let in_place = request.absolute(&made.plan) == request.directory.join(&made.now);
            let named = in_place.then_some(Path::new(&made.plan));
            [Some(made.now.as_path()), named]
        });
        let own: Vec<PathText> = own.flatten().map(PathText::from).collect();
        let own =
            |path: &Path, _: PathUse| own.iter().any(|own| own.as_os_str() == path.as_os_str());
        let mut builder = run.seen.manifest(run.began, own);
        for file in &request.invocation.options_files {
            builder.read(Path::new(file));
        }
        let mut dates = Dates::in_texts(self.texts);
        let need_files = dates.need_files();
        let mut inspect = |_: &Path, text: &[u8]| dates.inspect(text);
        let inspect = need_files.then_some(&mut inspect as Inspect<'_>);
        let manifest = builder
            .relative_to(&request.directory)
            .finish_knowing(self.store, inspect)
            .map_err(|e| NotKept::Unfit(e.to_string()))?;
        match dates.are_of_today() {
            true => Err(NotKept::Unfit(DATE_MACRO.to_owned())),
            false => Ok(manifest),
        }
    }

    /// The run's outcome, as it is stored for `request`: the call, or one of its twins.
    fn outcome(&self, request: &Request, outputs: Vec<ProducedFile>) -> Outcome {
        let seen = &self.run.seen;
        let micros = self.run.tasks.iter().map(|task| {
            // A step that hit has cost what making its result had.
            u64::try_from((task.user + task.system + task.saved).as_micros()).unwrap_or(0)
        });
        Outcome {
            outputs,
            stdout: request.path_map.fix_text(self.streams.0),
            stderr: request.path_map.fix_text(self.streams.1),
            extra: Conditions::observe(&seen.asked, &seen.times, request.place()).encode(),
            micros: micros.sum(),
        }
    }

    fn store_under(
        &self,
        key: &Key,
        request: &Request,
        manifest: &InputManifest,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        let map = &request.path_map;
        let level = Level::Direct;
        self.store
            .store_mapped(level, key, map, manifest, outcome)?;
        let keeps_others = request.invocation.kept_folder().is_some();
        if let Some(upstream) = self.upstream.filter(|_| !keeps_others) {
            upstream.offer(self.store, level, key);
        }
        Ok(())
    }

    /// Stores the run for the twins whose result from nvcc would be the same, byte for byte. After a failure the twins miss.
    fn keep_for_twins(&self, manifest: &InputManifest, outputs: &[ProducedFile]) {
        let Some(evidence) = &self.evidence else {
            return;
        };
        let streams = [self.streams.0, self.streams.1];
        for twin in self.twins {
            let may_share =
                self.tools_may_not_know(twin) && evidence.is_silent_about(twin, &streams);
            twin.note(self.store, may_share);
            if !may_share {
                continue;
            }
            let produced = self.outputs.iter().zip(outputs);
            let produced = produced.map(|(made, stored)| self.of_twin(&twin.request, made, stored));
            let Some(outputs) = produced.collect() else {
                continue;
            };
            let outcome = self.outcome(&twin.request, outputs);
            if let Some(key) = twin.keys.for_result(false, &outcome) {
                _ = self.store_under(&key, &twin.request, manifest, &outcome);
            }
        }
    }

    /// Whether nothing that the tools asked for has told them where they were.
    fn tools_may_not_know(&self, twin: &Twin) -> bool {
        let seen = &self.run.seen;
        let place = twin.request.place();
        let nowhere = PathMap::default();
        let here = RunPlace {
            path_map: &nowhere,
            ..place
        };
        let asked = |place| Conditions::observe(&seen.asked, &seen.times, place).encode();
        seen.is_of_compilers()
            && asked(place) == asked(here)
            && !seen.facts.iter().any(|((_, fact), told)| {
                // A compiler's own file, without links. What it makes of that name is looked for in its results.
                *fact != Fact::Resolved && place.path_map.is_named_in(told)
            })
    }

    /// An output as a twin finds it.
    fn of_twin(&self, twin: &Request, made: &Made, stored: &ProducedFile) -> Option<ProducedFile> {
        let role = role_of(&made.plan, twin);
        if !made.lists_files {
            return Some(ProducedFile {
                role,
                ..stored.clone()
            });
        }
        let fixed = twin.path_map.fix_text(&fs::read(&made.now).ok()?);
        Some(ProducedFile {
            role: format!("{LISTS}{role}"),
            digest: self.store.put_bytes(&fixed, Packing::Zstd).ok()?,
            executable: false,
        })
    }
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
