//! Stores a call's result under its direct key and, where the result contains no path, under its content keys.

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
use warpcc_engine::folder_in_inputs;
use warpcc_engine::known_programs::KnownPrograms;
use warpcc_engine::modes;
use warpcc_engine::run_environment::RunEnvironment;
use warpcc_engine::search_path::is_executable;
use warpcc_engine::traced_inputs::PathUse;
use warpcc_path_map::PathMap;
use warpcc_plan::Step;
use warpcc_report::record::Header;
use warpcc_watch::PathText;

use super::{LISTS, UNEXPECTED, implied, path_of, role_of};
use crate::content_key::{ContentKey, PathCheck};
use crate::dates::{Dates, Texts};
use crate::request::Request;

/// An output that a run has written.
pub struct FinalFile {
    /// The file's current path.
    pub current_path: PathBuf,
    /// The file's path in the plan.
    pub plan_path: String,
    /// Whether it is a dependency file. Its text contains paths, which are stored in a form for every folder.
    pub is_dependency_file: bool,
}

/// Why a result that contains the current date or time is not stored.
pub const DATE_MACRO: &str = "a date macro";
/// Why a result for this machine's own GPU is not stored.
pub const NATIVE: &str = "-arch=native";

/// Why the result of a finished run is not stored.
#[derive(Debug)]
pub enum NotStored {
    /// The result must not be used again, for this reason.
    NotReusable(String),
    /// The cache could not be written.
    Store(StoreError),
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReusable(why) => f.write_str(why),
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

impl From<StoreError> for NotStored {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Stores the final files of a run. The second value is true where one of them contains the path of a mapped folder.
fn store_outputs(
    store: &DiskStore,
    request: &Request,
    outputs: &[FinalFile],
) -> Result<(Vec<ProducedFile>, bool), NotStored> {
    let mut stored = Vec::with_capacity(outputs.len());
    let implied = implied(request);
    let path_map = &request.path_map;
    let mut is_path_specific = false;
    for FinalFile {
        current_path,
        plan_path,
        is_dependency_file,
    } in outputs
    {
        let role = role_of(plan_path, request);
        let is_changed = *is_dependency_file && !path_map.is_empty();
        let looked_for = match is_changed {
            true => format!("{LISTS}{role}"),
            false => role.clone(),
        };
        if path_of(&looked_for, &implied, request).is_none() {
            return Err(NotStored::NotReusable(UNEXPECTED.to_owned()));
        }
        if !modes::is_usual(current_path) {
            return Err(NotStored::NotReusable(modes::UNUSUAL.to_owned()));
        }
        let unreadable = |e: io::Error| NotStored::NotReusable(e.to_string());
        if path_map.is_empty() {
            stored.push(ProducedFile {
                role,
                digest: store.put_file(current_path, Packing::Zstd)?,
                executable: is_executable(current_path),
            });
        } else if *is_dependency_file {
            let fixed = path_map.fix_text(&fs::read(current_path).map_err(unreadable)?);
            stored.push(ProducedFile {
                role: format!("{LISTS}{role}"),
                digest: store.put_bytes(&fixed, Packing::Zstd)?,
                executable: false,
            });
        } else {
            is_path_specific = is_path_specific
                || path_map.is_named_in(&fs::read(current_path).map_err(unreadable)?);
            stored.push(ProducedFile {
                role,
                digest: store.put_file(current_path, Packing::Zstd)?,
                executable: is_executable(current_path),
            });
        }
    }
    Ok((stored, is_path_specific))
}

/// A finished run whose result is to be stored.
pub struct ResultToStore<'a> {
    /// The cache on this disk.
    pub store: &'a DiskStore,
    /// The shared caches behind it.
    pub upstream: Option<&'a dyn Upstream>,
    /// The call.
    pub request: &'a Request,
    /// The call's keys.
    pub keys: &'a KeyVariants,
    /// The content keys, for the same source elsewhere.
    pub content_keys: &'a [ContentKey],
    /// Finds out whether the result may be stored under the content keys; `None` where it may not.
    pub path_check: Option<PathCheck>,
    /// The run of the plan.
    pub run: &'a Run,
    /// The final files.
    pub outputs: &'a [FinalFile],
    /// The commands of the plan.
    pub commands: &'a [Step],
    /// The texts in which a date may be.
    pub texts: &'a Texts<'a>,
    /// The tools' standard output and standard error.
    pub streams: (&'a [u8], &'a [u8]),
}

impl ResultToStore<'_> {
    /// Stores the result. Gives the headers that were read.
    ///
    /// # Errors
    /// The reason why the same call will not be a direct hit next time.
    pub fn store(&self) -> Result<Vec<Header>, NotStored> {
        let request = self.request;
        if let Some(why) = &self.run.seen.untracked {
            return Err(NotStored::NotReusable(why.clone()));
        }
        if request.invocation.native {
            return Err(NotStored::NotReusable(NATIVE.to_owned()));
        }
        let manifest = self.manifest()?;
        let (stored, names_folder) = store_outputs(self.store, request, self.outputs)?;
        let tasks = &self.run.tasks;
        let is_path_specific = names_folder
            || tasks.iter().any(|task| task.is_path_specific)
            || folder_in_inputs::is_named(&self.run.seen, &request.directory, &request.path_map);
        let outcome = self.outcome(request, stored);
        let key = self.keys.for_result(is_path_specific, &outcome);
        let not_reusable = || NotStored::NotReusable("a folder's name is in the result".to_owned());
        self.store_under(&key.ok_or_else(not_reusable)?, request, &manifest, &outcome)?;
        self.store_under_content_keys(&manifest, &outcome.outputs);
        let headers = manifest.files().filter(|file| is_header(&file.path));
        Ok(headers
            .map(|file| Header {
                path: file.path.to_string_lossy().into_owned(),
                bytes: file.signature.size,
            })
            .collect())
    }

    /// The run's input manifest. Fails where the run must not be stored.
    fn manifest(&self) -> Result<InputManifest, NotStored> {
        let (request, run) = (self.request, self.run);
        // Outputs are no inputs. But outputs that are not written in place are elsewhere until the run has ended: a tool
        // that reads a file at such an output's path reads an earlier call's file, and that is an input.
        let own = self.outputs.iter().flat_map(|made| {
            let in_place =
                request.absolute(&made.plan_path) == request.directory.join(&made.current_path);
            let named = in_place.then_some(Path::new(&made.plan_path));
            [Some(made.current_path.as_path()), named]
        });
        let own: Vec<PathText> = own.flatten().map(PathText::from).collect();
        let own =
            |path: &Path, _: PathUse| own.iter().any(|own| own.as_os_str() == path.as_os_str());
        let mut builder = run.seen.manifest(run.began, own);
        for file in &request.invocation.options_files {
            builder.read(Path::new(file));
        }
        for command in self.commands {
            builder.command(&command.raw);
        }
        let mut dates = Dates::in_texts(self.texts);
        let need_files = dates.need_files();
        let mut inspect = |_: &Path, text: &[u8]| dates.inspect(text);
        let inspect = need_files.then_some(&mut inspect as Inspect<'_>);
        let manifest = builder
            .relative_to(&request.directory)
            .finish_knowing(self.store, inspect)
            .map_err(|e| NotStored::NotReusable(e.to_string()))?;
        match dates.are_of_today() {
            true => Err(NotStored::NotReusable(DATE_MACRO.to_owned())),
            false => Ok(manifest),
        }
    }

    /// The run's outcome with the paths of `request`, which is the call itself or one of its content keys.
    fn outcome(&self, request: &Request, outputs: Vec<ProducedFile>) -> Outcome {
        let seen = &self.run.seen;
        let micros = self.run.tasks.iter().map(|task| {
            // For a step that hit, this is the time that its result took to make.
            u64::try_from((task.user + task.system + task.saved).as_micros()).unwrap_or(0)
        });
        Outcome {
            outputs,
            stdout: request.path_map.fix_text(self.streams.0),
            stderr: request.path_map.fix_text(self.streams.1),
            extra: Conditions::observe(&seen.asked, &seen.times, request.run_environment())
                .encode(),
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
        let keeps_others = request.invocation.keep_dir().is_some();
        if let Some(upstream) = self.upstream.filter(|_| !keeps_others) {
            upstream.offer(self.store, level, key);
        }
        Ok(())
    }

    /// Stores the result under each content key, if nvcc would make the same bytes for every call with that key. Failures
    /// are ignored: those calls then miss.
    fn store_under_content_keys(&self, manifest: &InputManifest, outputs: &[ProducedFile]) {
        let Some(path_check) = &self.path_check else {
            return;
        };
        let streams = [self.streams.0, self.streams.1];
        for content_key in self.content_keys {
            let may_share = self.tools_learned_no_path(content_key)
                && path_check.finds_no_path_of(content_key, &streams);
            content_key.note(self.store, may_share);
            if !may_share {
                continue;
            }
            let produced = self.outputs.iter().zip(outputs);
            let produced = produced
                .map(|(made, stored)| self.output_under(&content_key.request, made, stored));
            let Some(outputs) = produced.collect() else {
                continue;
            };
            let outcome = self.outcome(&content_key.request, outputs);
            if let Some(key) = content_key.keys.for_result(false, &outcome) {
                _ = self.store_under(&key, &content_key.request, manifest, &outcome);
            }
        }
    }

    /// Whether no answer that the tools got (variables, links, times) contained a path that the content key leaves out.
    fn tools_learned_no_path(&self, content_key: &ContentKey) -> bool {
        let seen = &self.run.seen;
        let place = content_key.request.run_environment();
        let no_map = PathMap::default();
        let here = RunEnvironment {
            path_map: &no_map,
            ..place
        };
        let asked = |place| Conditions::observe(&seen.asked, &seen.times, place).encode();
        seen.is_of_compilers(&KnownPrograms::new(Some(self.store)))
            && asked(place) == asked(here)
            && !seen.facts.iter().any(|((_, fact), answer)| {
                // gcc resolves the links in its own path. If it uses that path, its results contain it, and they are
                // searched.
                *fact != Fact::Resolved && place.path_map.is_named_in(answer)
            })
    }

    /// An output with the role and the paths that it has for the request of a content key.
    fn output_under(
        &self,
        request: &Request,
        made: &FinalFile,
        stored: &ProducedFile,
    ) -> Option<ProducedFile> {
        let role = role_of(&made.plan_path, request);
        if !made.is_dependency_file {
            return Some(ProducedFile {
                role,
                ..stored.clone()
            });
        }
        let fixed = request
            .path_map
            .fix_text(&fs::read(&made.current_path).ok()?);
        Some(ProducedFile {
            role: format!("{LISTS}{role}"),
            digest: self.store.put_bytes(&fixed, Packing::Zstd).ok()?,
            executable: false,
        })
    }
}

/// Whether people would call the file a header. Headers of the C++ library have no extension.
fn is_header(path: &Path) -> bool {
    match path.extension() {
        Some(ending) => ["h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tcc"]
            .iter()
            .any(|known| ending == *known),
        None => path.components().any(|part| part.as_os_str() == "include"),
    }
}
