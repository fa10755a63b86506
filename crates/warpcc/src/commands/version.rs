//! `warpcc --version --verbose`: what this program was built from and for.

use std::ffi::OsString;
use std::io::{self, Write};

use super::doctor::TESTED;
use super::output;

/// Whether the arguments, without the program's name, ask for it.
pub fn is_asked(args: &[OsString]) -> bool {
    let is = |short: &str, long: &str| args.iter().any(|arg| arg == short || arg == long);
    args.len() == 2 && is("-V", "--version") && is("-v", "--verbose")
}

/// Prints it; the exit code is 0.
///
/// # Errors
/// Standard output cannot be written.
pub fn run() -> anyhow::Result<i32> {
    output::print(write)?;
    Ok(0)
}

fn write(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "warpcc {}", env!("CARGO_PKG_VERSION"))?;
    // Nothing where the sources were neither a checkout nor a packaged crate, and in debug builds.
    if let Some(commit) = option_env!("BUILT_FROM") {
        writeln!(out, "commit: {commit}")?;
    }
    let watching = match warpcc_watch::available() {
        true => "yes",
        false => "no, so nothing is cached",
    };
    let rows = [
        ("target", env!("BUILT_FOR")),
        ("compiler", env!("BUILT_BY")),
        ("profile", env!("BUILT_AS")),
        ("watches tools", watching),
        ("shared caches", SHARED),
        ("toolkits tested", &TESTED.join(", ")),
        (
            "other toolkits",
            "cached where their dry run is understood; nvcc alone otherwise",
        ),
    ];
    for (name, value) in rows {
        writeln!(out, "{name}: {value}")?;
    }
    Ok(())
}

/// The kinds of `WARPCC_REMOTE`, as docs/remote.md lists them.
const SHARED: &str =
    "Remote Execution API, HTTP, S3, GCS, Azure, GitHub Actions, redis, memcached, WebDAV, folder";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_in_any_order() {
        let asked = |words: &[&str]| {
            let args: Vec<OsString> = words.iter().map(OsString::from).collect();
            is_asked(&args)
        };
        assert!(asked(&["--version", "--verbose"]) && asked(&["-v", "-V"]));
        assert!(!asked(&["--version"]) && !asked(&["stats", "--verbose"]));
        assert!(!asked(&["--version", "--verbose", "x"]));
    }

    #[test]
    fn every_row_has_a_value() {
        let mut text = Vec::new();
        write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rows: Vec<_> = text
            .lines()
            .skip(1)
            .map(|row| row.split_once(": "))
            .collect();
        assert!(
            rows.iter()
                .all(|row| row.is_some_and(|(_, value)| !value.is_empty())),
            "{text}"
        );
        assert!(text.contains("toolkits tested: 13.0"), "{text}");
    }
}
