//! Tests that the program accepts every value that a page gives to a setting: `WARPCC_REMOTE=ghac`, `shared = true`, and the
//! settings files in `toml` blocks. The program's own parser decides.

use std::fs;
use std::path::{Path, PathBuf};

use warpcc_rtc::{CacheSettings, Environment};

use super::key::Key;
use super::tests::with_file;

/// A setting as a page writes it.
#[derive(Debug, PartialEq)]
enum PageSetting {
    /// The name and value of a variable.
    Variable(&'static str, String),
    /// The text of a settings file.
    File(String),
}

/// The value at the start of `text`, as a shell reads it. Without the parts in brackets, which may be left out; `None` for a
/// value that is cut short with `…`.
fn value(text: &str) -> Option<String> {
    let quoted = ['"', '\''].iter().find(|quote| text.starts_with(**quote));
    let value = match quoted {
        Some(quote) => text[1..].split(*quote).next(),
        None => text
            .split(|c: char| c.is_whitespace() || "`\"'".contains(c))
            .next(),
    };
    let mut value = value?.replace("$PWD", "/work");
    while let (Some(open), Some(close)) = (value.find('['), value.find(']')) {
        value.replace_range(open..=close.max(open), "");
    }
    (!value.is_empty() && !value.contains('…')).then_some(value)
}

/// The variables that a line gives a value to.
fn variables(line: &str) -> impl Iterator<Item = PageSetting> {
    let names = Key::ALL.into_iter().map(Key::variable);
    names.chain(warpcc_rtc::VARIABLES).flat_map(move |name| {
        let places = line.match_indices(name);
        places.filter_map(move |(at, _)| {
            let given = line[at + name.len()..].strip_prefix('=')?;
            Some(PageSetting::Variable(name, value(given)?))
        })
    })
}

/// Whether the text gives a value to a setting of the file.
fn is_of_settings(toml: &str) -> bool {
    toml.lines().any(|line| {
        let name = line.split('=').next().unwrap_or_default().trim();
        name == "[remote]" || Key::named(name).is_some()
    })
}

/// The settings of a page, each with the line that it begins on.
fn written(page: &str) -> Vec<(usize, PageSetting)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (&mut block, line.trim_start().starts_with("```")) {
            (None, true) if line.trim() == "```toml" => block = Some((number, String::new())),
            (Some(_), true) => {
                let whole = block.take().filter(|(_, text)| is_of_settings(text));
                found.extend(whole.map(|(number, text)| (number, PageSetting::File(text))));
            }
            (Some((_, text)), false) => *text += &format!("{line}\n"),
            (None, _) => {
                found.extend(variables(line).map(|written| (number, written)));
                let codes = line.split('`').skip(1).step_by(2);
                let settings = codes.filter(|code| code.contains(" = ") && is_of_settings(code));
                let complete = settings.filter(|code| !code.contains('…'));
                found.extend(complete.map(|code| (number, PageSetting::File(code.to_owned()))));
            }
        }
    }
    found
}

/// What the program says of the settings that it refuses, each with its line.
fn refused(page: &str) -> Vec<String> {
    let refusal = |(line, written): (usize, PageSetting)| {
        let said = match &written {
            PageSetting::Variable(name, value) if warpcc_rtc::VARIABLES.contains(name) => {
                of_kernels(name, value)?
            }
            PageSetting::Variable(name, value) => with_file("", &[(name, value)]).err()?,
            PageSetting::File(text) => with_file(text, &[]).err()?,
        };
        Some(format!("{line}: {said}"))
    };
    written(page).into_iter().filter_map(refusal).collect()
}

/// What `warpcc-rtc` says of a variable that only it reads, if it does not use the value.
fn of_kernels(name: &str, value: &str) -> Option<String> {
    let home = tempfile::tempdir().expect("a folder");
    // A folder that may be written to, and one for the case that the folder in the value may not.
    let own = [
        ("HOME", home.path().join("home")),
        ("WARPCC_RTC_LOCAL", home.path().join("local")),
    ];
    let environment = Environment::from_variables(own).with(name, value);
    CacheSettings::from_environment(&environment)
        .remarks
        .into_iter()
        .next()
}

/// The pages below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let of_entry = |path: PathBuf| match path.is_dir() {
        true => pages(&path),
        false => vec![path],
    };
    let mut pages: Vec<PathBuf> = entries.flat_map(|entry| of_entry(entry.path())).collect();
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    pages
}

#[test]
fn the_program_accepts_what_pages_set() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = pages(&top.join("docs"));
    all.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| top.join(name)));
    let mut count = 0;
    for path in all {
        let page = fs::read_to_string(&path).expect("a page");
        count += written(&page).len();
        let refused = refused(&page);
        assert!(refused.is_empty(), "{}: {refused:#?}", path.display());
    }
    assert!(count > 30, "only {count} settings were found");
}

#[test]
fn what_a_page_sets_wrong_is_found() {
    for right in [
        "`WARPCC_REMOTE=ghac` or `WARPCC_REMOTE=none`",
        "`WARPCC_EXECUTOR=grpc://HOST[:PORT][/INSTANCE]`",
        "```sh\nWARPCC_DIR=$PWD/cache WARPCC_REMOTE=\"http://a/ http://b/|read-only\" make\n```",
        "```toml\nmax_size = \"5G\"\njobs = 8\n```",
        "```toml\n[[kernel]]\nsize = \"huge\"\n```",
        "`jobs = 4`, `size = \"huge\"`, `remote = …`",
        "`WARPCC_JOBS=…`, `WARPCC_RTC_CACHE=…`",
        "`WARPCC_RTC_CACHE=/a:/b WARPCC_RTC_MAXSIZE=0`, `WARPCC_RTC_RECORD=$PWD/a.toml`",
    ] {
        assert_eq!(refused(right), [""; 0], "{right}");
    }
    for (wrong, line) in [
        ("`WARPCC_REMOTE=nothing`", "1: "),
        ("a\n`WARPCC_JOBS=many make`", "2: "),
        ("```sh\nexport WARPCC_BASE_DIR=always\n```", "2: "),
        ("`WARPCC_EXECUTOR=grpc:/HOST`", "1: "),
        ("`WARPCC_EXECUTOR_INSTALLED=host,nvcc`", "1: "),
        ("```toml\njobs = 8\nmax_size = \"huge\"\n```", "1: "),
        ("```toml\njobs = 8\nmax_sizes = \"5G\"\n```", "1: "),
        ("`shared = \"perhaps\"`", "1: "),
        ("`WARPCC_RTC_CACHE=a`", "1: "),
        ("`WARPCC_RTC_MAXSIZE=5G`", "1: "),
    ] {
        let found = refused(wrong);
        assert!(
            found.len() == 1 && found[0].starts_with(line),
            "{wrong} {found:?}"
        );
    }
}
