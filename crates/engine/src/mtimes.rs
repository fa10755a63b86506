//! File times that stand in a result.
//!
//! ptxas of CUDA 13.0 looks at the files that `.file` directives name and writes their
//! modification times into `.debug_line`; a PTX may also hold them itself
//! (`.file 1 "a.cu", 1763683200, 123`). 13.5 does not (seen). A touched file is then another build although its content is the same, and a result is
//! only good while the times are those it holds.
//!
//! Kept as text, a line for each file: the time in seconds, a space, the path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The times in a PTX text, of the files that have them now.
pub fn of_ptx(text: &[u8], directory: &Path) -> Vec<u8> {
    let mut times = Vec::new();
    for line in text.split(|b| *b == b'\n') {
        let Some(rest) = line.trim_ascii_start().strip_prefix(b".file") else {
            continue;
        };
        let Ok(rest) = std::str::from_utf8(rest) else {
            continue;
        };
        let mut parts = rest.splitn(3, '"');
        let (Some(_), Some(path), Some(after)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let time = after
            .split(',')
            .nth(1)
            .and_then(|t| t.trim().parse::<i64>().ok());
        if let Some(time) = time.filter(|time| time_of(directory, path) == Some(*time)) {
            times.extend_from_slice(format!("{time} {path}\n").as_bytes());
        }
    }
    times
}

/// The times of `files`, as far as they are files.
pub fn of_files<'a>(
    files: impl IntoIterator<Item = &'a warpcc_watch::PathText>,
    directory: &Path,
) -> Vec<u8> {
    let mut times = Vec::new();
    for path in files {
        let Some(text) = path.to_str().filter(|text| !text.contains('\n')) else {
            continue;
        };
        let Ok(found) = directory.join(path).metadata() else {
            continue;
        };
        if found.is_file() {
            times.extend_from_slice(format!("{} {text}\n", found.mtime()).as_bytes());
        }
    }
    times
}

/// The first file that has another time now, if there is one.
pub fn first_changed(times: &[u8], directory: &Path) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(times);
    text.lines().find_map(|line| match line.split_once(' ') {
        Some((time, path)) if time.parse().ok() == time_of(directory, path) => None,
        Some((_, path)) => Some(PathBuf::from(path)),
        None => Some(PathBuf::from(line)),
    })
}

fn time_of(directory: &Path, path: &str) -> Option<i64> {
    directory.join(path).metadata().ok().map(|m| m.mtime())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_and_checked() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("a.cu");
        std::fs::write(&file, "x")?;
        let time = file.metadata()?.mtime();
        let ptx = format!(
            "\t.file\t1 \"a.cu\", {time}, 1\n\t.file 2 \"b.h\"\n\t.file 3 \"/none\", 5, 1\n"
        );
        let times = of_ptx(ptx.as_bytes(), dir.path());
        assert_eq!(times, format!("{time} a.cu\n").as_bytes());
        assert_eq!(first_changed(&times, dir.path()), None);
        assert_eq!(first_changed(b"", dir.path()), None);
        std::fs::File::open(&file)?.set_modified(std::time::UNIX_EPOCH)?;
        assert_eq!(first_changed(&times, dir.path()), Some("a.cu".into()));
        assert!(first_changed(b"x", dir.path()).is_some());
        Ok(())
    }
}
