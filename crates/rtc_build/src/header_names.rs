//! The names of headers in an `#include`: their paths below a base folder.

use std::path::{Component, Path, PathBuf};

use crate::EmbedError;

/// The endings of the files that [`headers_below`] takes. Headers of C++'s library have none.
const ENDINGS: [&str; 10] = [
    "h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tpp", "tcc",
];
/// The deepest nesting of folders; links may form circles.
const DEEPEST: usize = 40;

/// The path of a file below the innermost of the base folders.
///
/// # Errors
/// It is in none of them, or its path is not UTF-8.
pub(crate) fn name_of(file: &Path, bases: &[PathBuf]) -> Result<String, EmbedError> {
    let below = |file: &Path, base: &Path| {
        let rest = file.strip_prefix(base).ok()?;
        Some((base.components().count(), rest.to_path_buf()))
    };
    let plain = bases
        .iter()
        .filter_map(|base| below(&whole(file), &whole(base)));
    // Through links: only if the names as they are written do not say it, because a header may itself be a link.
    let found = plain.max().or_else(|| {
        let file = file.canonicalize().ok()?;
        let real = bases.iter().filter_map(|base| base.canonicalize().ok());
        real.filter_map(|base| below(&file, &base)).max()
    });
    let (_, name) = found.ok_or_else(|| {
        let bases: Vec<_> = bases
            .iter()
            .map(|base| base.display().to_string())
            .collect();
        EmbedError::new(format!(
            "{} is in no base folder ({}), so it has no name to be included by",
            file.display(),
            bases.join(", ")
        ))
    })?;
    let text = name.to_str();
    let text = text.ok_or_else(|| EmbedError::new(format!("{} is not UTF-8", file.display())))?;
    Ok(text.to_owned())
}

/// An absolute path without `.` and `..`.
fn whole(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut whole = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(whole.pop()),
            other => whole.push(other),
        }
    }
    whole
}

/// All headers below a folder, sorted.
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn headers_below(folder: &Path) -> Result<Vec<PathBuf>, EmbedError> {
    let mut found = Vec::new();
    add_below(folder, 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn add_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), EmbedError> {
    let fails = |error: std::io::Error| {
        EmbedError::new(format!("{} cannot be read: {error}", folder.display()))
    };
    if depth > DEEPEST {
        return Err(EmbedError::new(format!(
            "{} is in more than {DEEPEST} folders",
            folder.display()
        )));
    }
    for entry in std::fs::read_dir(folder).map_err(fails)? {
        let path = entry.map_err(fails)?.path();
        if path.is_dir() {
            add_below(&path, depth + 1, found)?;
            continue;
        }
        let ending = path.extension().map(|ending| ending.to_string_lossy());
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_header = ending.is_none_or(|ending| ENDINGS.contains(&&*ending));
        if is_header && !hidden {
            found.push(path);
        }
    }
    Ok(())
}
