//! Small files of /proc and of cgroups, kept open and read again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The current text of the file.
pub fn text_of(file: &File) -> Option<String> {
    let mut bytes = [0; 8192];
    let length = file.read_at(&mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// The number after `name` at the beginning of a line.
pub fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let text = "MemTotal:       24682416 kB\nMemAvailable:   23400000 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(23_400_000));
        assert_eq!(field(text, "MemFree:"), None);
    }
}
