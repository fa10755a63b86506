//! Reads the directives of a case, without running the case.
//!
//! A case is a file `cases/NAME.cu`, put into an empty folder as `case.cu`, or a folder
//! `cases/NAME/` with a `case.cu` and its siblings, put there as they are.
//! `cases/README.md` lists the directives.

use std::fs;
use std::path::{Path, PathBuf};

/// The part of the cache that must answer the second run of a command.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Level {
    /// The whole invocation from the cache.
    Direct,
    /// No tool runs, but the invocation is planned again.
    Steps,
    /// Not the whole invocation from the cache: a failed build, for one.
    None,
    /// Nothing to cache: plain nvcc runs.
    Passthrough,
}

/// One command of a case.
#[derive(Clone, Debug, Hash)]
pub struct Line {
    /// The arguments, as a shell line.
    pub args: String,
    /// The only toolkit that the command is for; `None` for all.
    pub toolkit: Option<String>,
    /// The part of the cache that answers the second run.
    pub level: Level,
    /// The exit code it must have.
    pub exit: i32,
    /// The reason for which warpcc must run plain nvcc; `None` where it must not.
    pub fallback: Option<String>,
    /// Parts of its diagnostics that are not compared.
    pub stderr: Vec<String>,
}

/// A case.
#[derive(Clone, Debug, Hash)]
pub struct Case {
    /// Its file or folder name without `.cu`.
    pub name: String,
    /// Files to put into the empty folder.
    pub files: Vec<(String, Vec<u8>)>,
    /// Links to put there: name and target.
    pub links: Vec<(String, String)>,
    /// Commands in order.
    pub lines: Vec<Line>,
    /// Variables for every command.
    pub env: Vec<(String, String)>,
    /// The outputs to compare; empty for all.
    pub outputs: Vec<String>,
    /// Whether outputs have the keep folder's name in their DWARF.
    pub keep_folder: bool,
    /// Whether to compare with plain nvcc, without `--keep`.
    pub plain: bool,
    /// Whether it needs the toolkit's own headers.
    pub whole_headers: bool,
}

/// Every case of the repository, by name.
pub fn all() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let listing = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut cases: Vec<Case> = listing
        .flatten()
        .filter_map(|item| read(&item.path()))
        .collect();
    assert!(!cases.is_empty(), "no cases in {}", root.display());
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn read(path: &Path) -> Option<Case> {
    let name = path.file_stem()?.to_string_lossy().into_owned();
    let mut files = Vec::new();
    if path.is_dir() {
        gather(path, path, &mut files);
    } else if path.extension()? == "cu" {
        files.push(("case.cu".to_owned(), contents(path)));
    } else {
        return None;
    }
    let (_, text) = files
        .iter()
        .find(|(name, _)| name == "case.cu")
        .unwrap_or_else(|| panic!("{} has no case.cu", path.display()));
    let text = String::from_utf8_lossy(text).into_owned();
    let mut case = Case {
        name,
        files,
        links: Vec::new(),
        lines: Vec::new(),
        env: Vec::new(),
        outputs: Vec::new(),
        keep_folder: false,
        plain: false,
        whole_headers: false,
    };
    case.read_directives(&text);
    assert!(!case.lines.is_empty(), "{} has no //#Args", path.display());
    Some(case)
}

impl Case {
    fn read_directives(&mut self, text: &str) {
        // Directives before the first Args hold for all command lines, those after an Args for its line.
        let mut default = Line {
            args: String::new(),
            toolkit: None,
            level: Level::Direct,
            exit: 0,
            fallback: None,
            stderr: Vec::new(),
        };
        for line in text.lines() {
            if let Some(body) = line.strip_prefix("//| ").or(line.strip_prefix("//|")) {
                let (_, bytes) = self.files.last_mut().unwrap_or_else(|| unreachable!());
                bytes.extend_from_slice(body.as_bytes());
                bytes.push(b'\n');
                continue;
            }
            let Some((key, value)) = line.strip_prefix("//#").and_then(|l| l.split_once(':'))
            else {
                continue;
            };
            let value = value.trim().to_owned();
            let current = self.lines.last_mut().unwrap_or(&mut default);
            match key {
                "Args" => {
                    let (toolkit, args) = value
                        .strip_prefix('[')
                        .and_then(|v| v.split_once(']'))
                        .map_or((None, value.as_str()), |(t, a)| (Some(t.to_owned()), a));
                    self.lines.push(Line {
                        args: args.trim().to_owned(),
                        toolkit,
                        ..default.clone()
                    });
                }
                "Hit" => current.level = level(&value, &self.name),
                "Exit" => {
                    current.exit = value
                        .parse()
                        .unwrap_or_else(|e| panic!("{}: Exit {value}: {e}", self.name));
                    // A failure is not a result to keep, unless the case says so.
                    current.level = Level::None;
                }
                "Fallback" => {
                    current.fallback = Some(value);
                    current.level = Level::Passthrough;
                }
                "Stderr" => current.stderr = value.split_whitespace().map(str::to_owned).collect(),
                "Env" => self.env.push(pair(&value, '=', &self.name)),
                "File" => self.files.push((value, Vec::new())),
                "Link" => self.links.push(pair(&value, ' ', &self.name)),
                "Outputs" => self
                    .outputs
                    .extend(value.split_whitespace().map(str::to_owned)),
                "Normalize" if value == "keepdir" => self.keep_folder = true,
                "Reference" if value == "plain" => self.plain = true,
                "Headers" if value == "whole" => self.whole_headers = true,
                _ => panic!("{}: unknown directive {line}", self.name),
            }
        }
    }

    /// Whether the case has a keep flag of its own, so that the reference gets no second one.
    pub fn keeps_itself(&self) -> bool {
        const FLAGS: [&str; 6] = [
            "-keep",
            "--keep",
            "-keep-dir",
            "--keep-dir",
            "-save-temps",
            "--save-temps",
        ];
        self.lines
            .iter()
            .flat_map(|line| line.args.split_whitespace())
            .any(|word| FLAGS.contains(&word.split('=').next().unwrap_or(word)))
    }
}

fn level(value: &str, case: &str) -> Level {
    match value {
        "direct" => Level::Direct,
        "steps" => Level::Steps,
        "none" => Level::None,
        "passthrough" => Level::Passthrough,
        _ => panic!("{case}: unknown Hit: {value}"),
    }
}

fn pair(value: &str, at: char, case: &str) -> (String, String) {
    value
        .split_once(at)
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap_or_else(|| panic!("{case}: expected two parts in {value:?}"))
}

fn gather(root: &Path, dir: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    let listing = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<PathBuf> = listing.flatten().map(|item| item.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            gather(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path);
            files.push((name.to_string_lossy().into_owned(), contents(&path)));
        }
    }
}

fn contents(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
