//! The direct level: a whole invocation by its command and what it saw. A hit starts no process.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use warpcc_cache::{
    Difference, Digest, DiskStore, Key, Level, Lookup, Outcome, Output, Packing, Staged,
    StoreError, Upstream, Why, WitnessBuilder,
};
use warpcc_engine::process::is_executable;
use warpcc_engine::{Run, times};
use warpcc_plan::Unsupported;
use warpcc_report::record::Header;

use crate::outputs::{Kind, Outputs};
use crate::request::Request;

/// Roles of outputs whose place the command line names anew each time.
const OUTPUT: &str = "-o";
const DEPENDENCIES: &str = "-MF";
/// Before any other output's path.
const AT: &str = "at ";
/// Before the role of a dependency file that is kept with fixed names in it (see [`warpcc_cache::roots`]).
const LISTS: &str = "lists ";

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

/// Looks the call up and, on a hit, puts everything in place.
///
/// # Errors
/// An output cannot be written; plain nvcc will say so in its own words.
pub fn serve(store: &DiskStore, request: &Request, key: &Key) -> Result<Served, StoreError> {
    let found = serve_shown(store, request, key)?;
    if request.roots.is_empty() {
        return Ok(found);
    }
    // What is good in every folder, then what is good in this one.
    match found {
        Served::Miss(difference) => match serve_shown(store, request, &bound(request, key))? {
            Served::Miss(other) => Ok(Served::Miss(difference.or(other))),
            hit => Ok(hit),
        },
        hit => Ok(hit),
    }
}

fn bound(request: &Request, key: &Key) -> Key {
    let directory = request.directory.as_os_str().as_encoded_bytes();
    request.roots.bound(key, directory)
}

fn serve_shown(store: &DiskStore, request: &Request, key: &Key) -> Result<Served, StoreError> {
    let Some(terminal) = &request.terminal else {
        return serve_under(key, store, request, |_| true);
    };
    // Most calls say nothing: one result for the terminal and for the pipe of a build system.
    match serve_under(key, store, request, |outcome| outcome.stderr.is_empty())? {
        Served::Miss(difference) => {
            match serve_under(&terminal.key(key), store, request, |_| true)? {
                Served::Miss(other) => Ok(Served::Miss(difference.or(other))),
                hit => Ok(hit),
            }
        }
        hit => Ok(hit),
    }
}

/// Asks others for the call. True where looking it up once more may find it.
pub fn fetch(upstream: &dyn Upstream, store: &DiskStore, request: &Request, key: &Key) -> bool {
    let mut keys = vec![*key];
    if !request.roots.is_empty() {
        keys.push(bound(request, key));
    }
    if let Some(terminal) = &request.terminal {
        keys.extend(keys.clone().iter().map(|key| terminal.key(key)));
    }
    upstream.fetch(store, Level::Direct, &keys, &request.directory)
}

fn serve_under(
    key: &Key,
    store: &DiskStore,
    request: &Request,
    suits: impl Fn(&Outcome) -> bool + Sync,
) -> Result<Served, StoreError> {
    let mut staged: Vec<(Digest, PathBuf, Staged)> = Vec::new();
    let meanwhile = |outcome: &Outcome| {
        if !suits(outcome) {
            return;
        }
        for output in &outcome.outputs {
            if !output.role.starts_with(LISTS)
                && let Some(path) = place_of(&output.role, request)
                && let Ok(Some(ready)) = store.stage(&output.digest, &path, output.executable)
            {
                staged.push((output.digest, path, ready));
            }
        }
    };
    let outcome = match store.look_up_meanwhile(Level::Direct, key, &request.directory, meanwhile) {
        Lookup::Hit(outcome, _) => outcome,
        Lookup::Miss(Why::Differs(mut differences)) => {
            return Ok(Served::Miss(differences.pop()));
        }
        Lookup::Miss(_) => return Ok(Served::Miss(None)),
    };
    let extra = request.roots.real_text(&outcome.extra);
    if !suits(&outcome) || !times::hold(&extra, &request.directory) {
        return Ok(Served::Miss(None));
    }
    if let Err(why) = decide_on_outputs(&outcome, request) {
        return Ok(Served::NotOurs(why));
    }
    for output in &outcome.outputs {
        let Some(path) = place_of(&output.role, request) else {
            return Ok(Served::Miss(None));
        };
        if output.role.starts_with(LISTS) {
            let real = |text: &[u8]| request.roots.real_text(text);
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
            None if store.get_to(&output.digest, &path, output.executable)? => {}
            None => return Ok(Served::Miss(None)),
        }
    }
    let real = |text: &[u8]| request.roots.real_text(text);
    emit(&real(&outcome.stdout), &real(&outcome.stderr));
    Ok(Served::Hit(outcome.micros))
}

/// Before the first output is touched: all of them must be such that a new file may take the name.
fn decide_on_outputs(outcome: &Outcome, request: &Request) -> Result<(), Unsupported> {
    let mut outputs = Outputs::of(request)?;
    for output in &outcome.outputs {
        if let Some(path) = place_of(&output.role, request) {
            outputs.decide(&path, Kind::of(output.executable))?;
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

fn place_of(role: &str, request: &Request) -> Option<PathBuf> {
    let real;
    let path = match role.strip_prefix(LISTS).unwrap_or(role) {
        OUTPUT => request.invocation.output.as_deref()?,
        DEPENDENCIES => request.invocation.depend.as_ref()?.output.as_deref()?,
        role => {
            let path = request.roots.real(role.strip_prefix(AT)?.as_bytes())?;
            real = String::from_utf8(path.into_owned()).ok()?;
            is_ours_to_write(&real, request).then_some(&*real)?
        }
    };
    Some(request.absolute(path))
}

/// Whether the command line can have meant this place. A result may come from another machine: it may hold any object,
/// but it must not choose the file that the object is written to.
fn is_ours_to_write(path: &str, request: &Request) -> bool {
    let below = |c: std::path::Component<'_>| {
        matches!(
            c,
            std::path::Component::Normal(_) | std::path::Component::CurDir
        )
    };
    if Path::new(path).components().all(below) {
        return true;
    }
    let invocation = &request.invocation;
    let depend = invocation.depend.as_ref().and_then(|d| d.output.as_deref());
    // `-o ../x.o` names `../x.o`, and with -MD `../x.d`.
    let beside = |named: &str| {
        let (named, path) = (Path::new(named), Path::new(path));
        named.parent() == path.parent() && named.file_stem() == path.file_stem()
    };
    let named = [invocation.output.as_deref(), depend];
    if named.into_iter().flatten().any(beside) {
        return true;
    }
    // -odir, --keep-dir and their like name a folder, as a word or behind `=`.
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    if invocation.output_directory.as_deref().map(Path::new) == Some(folder) {
        return true;
    }
    request.args.iter().any(|word| {
        let word = word.as_encoded_bytes();
        let value = word
            .iter()
            .position(|b| *b == b'=')
            .map_or(word, |at| &word[at + 1..]);
        [word, value]
            .iter()
            .any(|named| Path::new(std::ffi::OsStr::from_bytes(named)) == folder)
    })
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
    format!("{AT}{}", request.roots.fixed(path))
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

/// Stores a finished run. `outputs` are the final files, `texts` the preprocessed ones.
///
/// Gives the headers that were read.
///
/// # Errors
/// Why the call will not hit next time, in words.
pub fn keep(
    (store, upstream): (&DiskStore, Option<&dyn Upstream>),
    request: &Request,
    key: &Key,
    run: &Run,
    outputs: &[Made],
    texts: &[PathBuf],
    streams: (&[u8], &[u8]),
) -> Result<Vec<Header>, NotKept> {
    if let Some(why) = &run.seen.blind {
        return Err(NotKept::Unfit(why.clone()));
    }
    if request.invocation.native {
        return Err(NotKept::Unfit("-arch=native".to_owned()));
    }
    let mut builder = WitnessBuilder::new(run.began);
    let own = |path: &Path| {
        outputs
            .iter()
            .any(|made| path == made.now || path.as_os_str() == made.plan.as_str())
    };
    for path in run.seen.read.iter().filter(|p| !own(p)) {
        builder.read(path);
    }
    for path in run.seen.missing.iter().filter(|p| !own(p)) {
        builder.absent(path);
    }
    for file in &request.invocation.options_files {
        builder.read(Path::new(file));
    }
    let mut dated = false;
    let mut inspect = |_: &Path, text: &[u8]| {
        dated = dated
            || [&b"__DATE__"[..], b"__TIME__", b"__TIMESTAMP__"]
                .iter()
                .any(|m| memchr::memmem::find(text, m).is_some());
    };
    let witness = builder
        .relative_to(&request.directory)
        .finish_knowing(store, Some(&mut inspect))
        .map_err(|e| NotKept::Unfit(e.to_string()))?;
    // A header that mentions the macros is no reason yet: many only document them.
    if dated
        && texts
            .iter()
            .any(|t| fs::read(t).is_ok_and(|text| holds_date(&text)))
    {
        return Err(NotKept::Unfit("a date macro".to_owned()));
    }
    let mut stored = Vec::with_capacity(outputs.len());
    let roots = &request.roots;
    let mut is_bound = run.tasks.iter().any(|task| task.bound);
    for Made {
        now,
        plan,
        lists_files,
    } in outputs
    {
        let role = role_of(plan, request);
        let unreadable = |e: io::Error| NotKept::Unfit(e.to_string());
        if roots.is_empty() {
            stored.push(Output {
                role,
                digest: store.put_file(now, Packing::Zstd)?,
                executable: is_executable(now),
            });
        } else if *lists_files {
            let fixed = roots.fix_text(&fs::read(now).map_err(unreadable)?);
            stored.push(Output {
                role: format!("{LISTS}{role}"),
                digest: store.put_bytes(&fixed, Packing::Zstd)?,
                executable: false,
            });
        } else {
            is_bound = is_bound || roots.stand_in(&fs::read(now).map_err(unreadable)?);
            stored.push(Output {
                role,
                digest: store.put_file(now, Packing::Zstd)?,
                executable: is_executable(now),
            });
        }
    }
    let outcome = Outcome {
        outputs: stored,
        stdout: roots.fix_text(streams.0),
        stderr: roots.fix_text(streams.1),
        extra: roots.fix_text(&run.seen.times),
        micros: run
            .tasks
            .iter()
            // A step that hit has cost what making its result had.
            .map(|t| u64::try_from((t.user + t.system + t.saved).as_micros()).unwrap_or(0))
            .sum(),
    };
    let shown = request.terminal.as_ref();
    let shown = shown.filter(|_| !outcome.stderr.is_empty());
    let key = if is_bound { bound(request, key) } else { *key };
    let key = shown.map_or(key, |terminal| terminal.key(&key));
    store.store(Level::Direct, &key, &witness, &outcome)?;
    if let Some(upstream) = upstream {
        upstream.offer(store, Level::Direct, &key);
    }
    let headers = witness.files().filter(|file| is_header(&file.path));
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

/// Whether the text holds a string that `__DATE__`, `__TIME__` or `__TIMESTAMP__` may have left:
/// `"Nov 21 2026"`, `"00:27:11"`, `"Sat Nov 21 00:27:11 2026"`.
pub fn holds_date(text: &[u8]) -> bool {
    let time = |t: &[u8]| {
        t.len() == 8
            && t.iter().enumerate().all(|(i, c)| {
                if i == 2 || i == 5 {
                    *c == b':'
                } else {
                    c.is_ascii_digit()
                }
            })
    };
    let month = |t: &[u8]| {
        t.len() == 3
            && [
                &b"Jan"[..],
                b"Feb",
                b"Mar",
                b"Apr",
                b"May",
                b"Jun",
                b"Jul",
                b"Aug",
                b"Sep",
                b"Oct",
                b"Nov",
                b"Dec",
                b"???",
            ]
            .contains(&t)
    };
    memchr::memchr_iter(b'"', text).any(|quote| {
        let rest = &text[quote + 1..];
        let literal = |len: usize| (rest.get(len) == Some(&b'"')).then(|| &rest[..len]);
        literal(8).is_some_and(time)
            || literal(11).is_some_and(|t| {
                month(&t[..3])
                    && t[3] == b' '
                    && t[7..].iter().all(|c| c.is_ascii_digit() || *c == b'?')
            })
            || literal(24).is_some_and(|t| month(&t[4..7]) && time(&t[11..19]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for text in [
            "x \"Nov 21 2026\" y",
            "f(\"00:27:11\")",
            "\"Sat Nov  1 00:27:11 2026\"",
        ] {
            assert!(holds_date(text.as_bytes()), "{text}");
        }
        for text in [
            "\"Nov\"",
            "\"Now 21 2026\"",
            "\"12:34\"",
            "\"",
            "\"00-27-11\"",
            "# 1 \"/usr/x.h\" 1",
        ] {
            assert!(!holds_date(text.as_bytes()), "{text}");
        }
    }
}
