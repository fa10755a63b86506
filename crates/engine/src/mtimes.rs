//! File times and sizes that are part of a result.
//!
//! ptxas of CUDA 13.0 looks at the files that `.file` directives name and writes their modification times and sizes
//! into `.debug_line`; nvlink does the same with the files that LTO code names. The tools of 13.5 do not (seen). A PTX
//! may also contain them itself (`.file 1 "a.cu", 1763683200, 123`). So the result changes if a file is touched, even
//! if its content stays the same. It also changes if a file is edited within one second and the device code stays the
//! same. A result can be used only while its files have the times and sizes that it contains.
//!
//! They are stored as text, a line for each file: the time in seconds, the size in bytes, the path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The times and sizes in a PTX text of those files that still have them.
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
        let mut numbers = after.split(',').skip(1).map(str::trim);
        let (Some(time), Some(size)) = (numbers.next(), numbers.next()) else {
            continue;
        };
        if let Some(now) =
            time_and_size(directory, path).filter(|now| *now == format!("{time} {size}"))
        {
            times.extend_from_slice(format!("{now} {path}\n").as_bytes());
        }
    }
    times
}

/// The times and sizes of those of `files` that are regular files.
pub fn of_files<'a>(
    files: impl IntoIterator<Item = &'a warpcc_watch::PathText>,
    directory: &Path,
) -> Vec<u8> {
    let mut times = Vec::new();
    for path in files {
        let Some(text) = path.to_str().filter(|text| !text.contains('\n')) else {
            continue;
        };
        if let Some(now) = time_and_size(directory, text) {
            times.extend_from_slice(format!("{now} {text}\n").as_bytes());
        }
    }
    times
}

/// The first file that has another time or size now, if there is one.
pub fn first_changed(times: &[u8], directory: &Path) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(times);
    text.lines().find_map(|line| {
        let recorded_and_path = line
            .match_indices(' ')
            .nth(1)
            .map(|(at, _)| line.split_at(at));
        let Some((recorded, path)) = recorded_and_path else {
            return Some(PathBuf::from(line));
        };
        let path = &path[1..];
        (time_and_size(directory, path).as_deref() != Some(recorded)).then(|| PathBuf::from(path))
    })
}

/// A regular file's time and size, as stored.
fn time_and_size(directory: &Path, path: &str) -> Option<String> {
    let found = directory.join(path).metadata().ok()?;
    let text = || format!("{} {}", found.mtime(), found.size());
    found.is_file().then(text)
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
            "\t.file\t1 \"a.cu\", {time}, 1\n\t.file 2 \"b.h\"\n\t.file 3 \"/none\", 5, 1\n\t.file 4 \"a.cu\", {time}, 2\n"
        );
        let times = of_ptx(ptx.as_bytes(), dir.path());
        assert_eq!(times, format!("{time} 1 a.cu\n").as_bytes());
        assert_eq!(first_changed(&times, dir.path()), None);
        assert_eq!(first_changed(b"", dir.path()), None);
        std::fs::File::open(&file)?.set_modified(std::time::UNIX_EPOCH)?;
        assert_eq!(first_changed(&times, dir.path()), Some("a.cu".into()));
        let times = b"0 1 a.cu\n";
        assert_eq!(first_changed(times, dir.path()), None);
        std::fs::write(&file, "xy")?;
        std::fs::File::open(&file)?.set_modified(std::time::UNIX_EPOCH)?;
        assert_eq!(first_changed(times, dir.path()), Some("a.cu".into()));
        for damaged in [&b"x"[..], b"0 a.cu", b"0 1"] {
            assert!(first_changed(damaged, dir.path()).is_some());
        }
        Ok(())
    }
}
