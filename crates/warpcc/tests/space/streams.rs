//! Compares the output of two runs, ignoring only differences that two runs of nvcc itself have. It runs nothing.

use super::process::Outcome;
use std::path::PathBuf;

/// The differences that a comparison of diagnostics ignores.
#[derive(Clone, Debug, Default)]
pub struct StreamRule {
    /// Numbers with a unit of time: `ptxas -v`, `-time`.
    pub timing: bool,
    /// `tmpxft_…` names, where nvcc runs without `--keep`.
    pub random_names: bool,
    /// Order of whole lines: nvcc's own is random under `-t`.
    pub order: bool,
    /// Folders of intermediate files, which stand in some errors; shown as `<KEEP>`.
    pub folders: Vec<PathBuf>,
}

impl StreamRule {
    /// Both streams and the exit code; a message for each that is not the same.
    pub fn differences(&self, want: &Outcome, got: &Outcome) -> Vec<String> {
        let mut found = Vec::new();
        if want.code != got.code {
            found.push(format!(
                "exit code {} from nvcc, {} from warpcc",
                want.code, got.code
            ));
        }
        for (name, want, got) in [
            ("stdout", &want.stdout, &got.stdout),
            ("stderr", &want.stderr, &got.stderr),
        ] {
            // Most runs print the same or nothing: only text that differs is rewritten.
            if want != got && self.plain(want) != self.plain(got) {
                found.push(format!(
                    "{name} differs\n--- nvcc\n{}\n--- warpcc\n{}",
                    shortened(want),
                    shortened(got)
                ));
            }
        }
        found
    }

    /// The text without the parts that this rule ignores.
    fn plain(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for folder in &self.folders {
            text = without_folder(&text, &folder.to_string_lossy());
        }
        if self.random_names {
            text = without_random_names(&text);
        }
        if self.timing {
            text = without_times(&text);
        }
        if self.order {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            text = lines.join("\n");
        }
        text
    }
}

/// `FOLDER/anything/name` becomes `<KEEP>/name`.
pub fn without_folder(text: &str, folder: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        let path = &rest[at..];
        let end = path
            .find(|c: char| c.is_whitespace() || "'\"`:,;()".contains(c))
            .unwrap_or(path.len());
        let slash = path[..end].rfind('/').unwrap_or(0);
        out.push_str(&rest[..at]);
        out.push_str("<KEEP>");
        rest = &path[slash..];
    }
    out + rest
}

/// `tmpxft_0000abcd_00000000-6_name` becomes `tmpxft_name`.
fn without_random_names(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("tmpxft_") {
        let (before, name) = rest.split_at(at + "tmpxft_".len());
        out.push_str(before);
        rest = name.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '_' || c == '-');
    }
    out + rest
}

/// `Compile time = 1.234 ms` becomes `Compile time = # ms`.
fn without_times(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            if line.contains("time = ") || line.contains(" ms") {
                line.chars()
                    .map(|c| if c.is_ascii_digit() { '#' } else { c })
                    .collect::<String>()
                    .replace("##", "#")
                    .replace("##", "#")
            } else {
                line.to_owned()
            }
        })
        .collect()
}

/// The beginning of a long text, with its size: enough to see the problem.
fn shortened(bytes: &[u8]) -> String {
    const SHOWN: usize = 4000;
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\n… ({} bytes in all)", &text[..end], bytes.len()),
        None => text.into_owned(),
    }
}
