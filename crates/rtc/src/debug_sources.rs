//! Gives debuggers the source: debug information names a file that has the text, and not a name that nobody can open.
//!
//! The source is named by the caller's file. Other texts are written to a folder. Only `-G` asks for that: with `-lineinfo`
//! images would depend on the cache's folder, and would not be found in packs.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure_dump::{prepare, remove_old, short};
use crate::option_rules::debugs;
use crate::request::{CompileRequest, plain};

/// The most files; those that were not used for the longest time are removed.
const MOST: usize = 1000;

/// Sets the names that `request` gives its texts in debug information. Texts that are in no file of the caller's are written
/// to `folder`, if there is one.
pub(crate) fn name_texts(request: &mut CompileRequest, folder: Option<&Path>) {
    let folder = folder.filter(|_| request.options.iter().any(|option| debugs(option)));
    if !request.keeps_paths() || !request.debug_names.is_empty() {
        return;
    }
    if folder.is_none() && request.file.is_none() {
        return;
    }
    let place = |name: &str, text: &str| {
        let path = write(folder?, name, text).ok()?;
        as_name(&path)
    };
    let own = |name: &str| plain(name);
    let file = request.file.as_deref().and_then(|file| {
        let absolute = std::path::absolute(file).ok()?;
        as_name(&absolute)
    });
    let source = file
        .or_else(|| place(&request.name, &request.source))
        .unwrap_or_else(|| own(&request.name));
    let before = request.preamble.iter();
    let before =
        before.map(|part| place(&part.name, &part.text).unwrap_or_else(|| own(&part.name)));
    request.debug_names = before.chain([source]).map(Into::into).collect();
}

/// A path as a name for `#line`; `None` for characters that NVRTC does not pass on as they are.
fn as_name(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    let is_plain = |c: char| !c.is_control() && !"\"\\".contains(c);
    name.chars().all(is_plain).then(|| name.to_owned())
}

/// Writes a text to a file that is named after it, unless it is there.
fn write(folder: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    prepare(folder).ok_or(io::ErrorKind::PermissionDenied)?;
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let name = short(&plain(name));
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, ending),
        _ => (name.as_str(), "cu"),
    };
    let path = folder.join(format!("{stem}-{}.{ending}", &hash[..16]));
    let is_there = fs::metadata(&path).is_ok_and(|found| found.len() == text.len() as u64);
    if is_there {
        // It is in use. If that cannot be noted, it is removed and written again sooner.
        drop(File::open(&path).and_then(|file| file.set_modified(SystemTime::now())));
        return Ok(path);
    }
    let thread = std::thread::current().id();
    let private = folder.join(format!(".{}-{thread:?}", std::process::id()));
    // A killed process of this number may have left one.
    drop(fs::remove_file(&private));
    let written = File::create_new(&private)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&private, &path));
    if written.is_err() {
        drop(fs::remove_file(&private));
    }
    written?;
    remove_old(folder, MOST);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Text;

    fn request(options: &[&str], file: Option<&str>) -> CompileRequest {
        let mut one = CompileRequest::new("k<a>", "text", "sm_90".parse().expect("a target"));
        one.preamble.push(Text::new("p.h", "before"));
        one.options = options.iter().map(|option| (*option).into()).collect();
        one.file = file.map(Into::into);
        one
    }

    fn names(mut one: CompileRequest, folder: &Path) -> Vec<String> {
        name_texts(&mut one, Some(folder));
        one.debug_names
            .iter()
            .map(|name| name.replace(folder.to_str().expect("text"), "F"))
            .collect()
    }

    #[test]
    fn texts_are_written_once_where_a_debugger_is_told() {
        let base = tempfile::tempdir().expect("a folder");
        let folder = base.path().join("sources");
        assert!(names(request(&["-DA"], Some("/a/b.cu")), &folder).is_empty());
        assert!(names(request(&["-lineinfo"], None), &folder).is_empty());
        assert!(!folder.exists());
        let line = names(request(&["-lineinfo"], Some("/a/b c.cu")), &folder);
        assert_eq!(line, ["p.h", "/a/b c.cu"]);
        let both = names(request(&["-G"], None), &folder);
        let [before, source] = &both[..] else {
            panic!("{both:?}");
        };
        assert!(
            before.starts_with("F/p-") && before.ends_with(".h"),
            "{both:?}"
        );
        assert!(
            source.starts_with("F/k_a_-") && source.ends_with(".cu"),
            "{both:?}"
        );
        let read = |name: &str| fs::read_to_string(folder.join(&name[2..])).expect("a text");
        assert_eq!((&*read(before), &*read(source)), ("before", "text"));
        // One that was removed or cut comes back.
        fs::remove_file(folder.join(&before[2..])).expect("removed");
        fs::write(folder.join(&source[2..]), "t").expect("written");
        assert_eq!(names(request(&["-G"], None), &folder), both);
        assert_eq!((&*read(before), &*read(source)), ("before", "text"));
        // NVRTC would write such a name into its assembly text as it is.
        let odd = names(request(&["-G"], Some("/a/\"b.cu")), &folder);
        assert_eq!(odd, both);
        // Without a folder of our own, names are as they were.
        let missing = names(request(&["-G"], None), Path::new("/dev/null/x"));
        assert_eq!(missing, ["p.h", "k_a_"]);
    }
}
