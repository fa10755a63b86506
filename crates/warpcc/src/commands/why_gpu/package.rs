//! One installed package: its name, its version, and its files, by whatever list of them there is.
//!
//! | installed by | information | list of files |
//! |---|---|---|
//! | pip, uv | `NAME.dist-info/METADATA` | `RECORD` |
//! | `pip install -e` | the same, and `direct_url.json` | the project's folder |
//! | conda | the same, often without `RECORD` | `conda-meta/*.json` |
//! | setuptools before pip | `NAME.egg-info/PKG-INFO`, or the file `NAME.egg-info` | `installed-files.txt` |
//! | a system's packages | any of these | none: the folders in `top_level.txt`, or of its name |

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::root::Root;

/// No information or list of files is longer.
const LONGEST: u64 = 64 << 20;
/// Files of a package that are searched for in folders, and folders within folders.
const MOST_FILES: usize = 20_000;
const DEEPEST: usize = 12;
/// Missing files that are named.
const NAMED: usize = 5;

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    /// As it calls itself.
    pub name: String,
    /// With the build: `2.9.0+cu128`.
    pub version: String,
    /// Its files that may hold code for a GPU.
    pub files: Vec<PathBuf>,
    /// Files that it says it has, and has not, a sentence each.
    pub missing: Vec<String>,
    /// Nothing says which files it has.
    pub files_unknown: bool,
}

/// The name by which two spellings are one: `Flash_Attn` and `flash-attn`.
pub fn normalized(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Whether this is the information of a package.
pub fn is_info(path: &Path) -> bool {
    let ends = path.extension().and_then(|end| end.to_str());
    matches!(ends, Some("dist-info" | "egg-info"))
}

/// The information of the packages in a folder, which may itself be an egg.
///
/// # Errors
/// The folder cannot be read.
pub fn infos(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut infos = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let egg = path.join("EGG-INFO");
        if is_info(&path) {
            infos.push(path);
        } else if path.extension().is_some_and(|end| end == "egg") && egg.is_dir() {
            infos.push(egg);
        }
    }
    let own = folder.join("EGG-INFO");
    if own.is_dir() {
        infos.push(own);
    }
    infos.sort();
    Ok(infos)
}

impl Package {
    /// Reads the information `info`. An egg's is in a folder of its own, beside its files.
    ///
    /// # Errors
    /// Why it says nothing.
    pub fn read(root: &Root, info: &Path) -> Result<Self, String> {
        let folder = info.parent().ok_or("it is in no folder")?;
        let inside = |name: &str| root.resolve(&info.join(name)).and_then(|path| text(&path));
        let found = ["METADATA", "PKG-INFO"].into_iter().find_map(inside);
        // That of distutils is a file.
        let found = found.or_else(|| text(&root.resolve(info)?));
        let about = found.ok_or("neither METADATA nor PKG-INFO can be read")?;
        let head = || about.lines().take_while(|line| !line.trim_end().is_empty());
        let field = |name: &str| {
            let value = head().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(|value| value.trim().to_owned())
        };
        let name = field("Name").filter(|name| !name.is_empty());
        let mut package = Self {
            name: name.ok_or("it has no name")?,
            version: field("Version").unwrap_or_default(),
            ..Self::default()
        };
        let record = inside("RECORD").map(|text| recorded_paths(&text));
        let installed = || {
            let text = inside("installed-files.txt")?;
            // These are relative to the information.
            let named = info.file_name().map(Path::new).unwrap_or(Path::new(""));
            Some(
                text.lines()
                    .map(|line| named.join(line.trim_end()).display().to_string())
                    .collect(),
            )
        };
        let listed: Option<Vec<String>> = record.or_else(installed);
        let is_listed = listed.is_some();
        for path in listed
            .into_iter()
            .flatten()
            .filter(|path| may_hold_code(path))
        {
            package.add(root, folder, &path);
        }
        if let Some(project) = inside("direct_url.json").and_then(|text| edited(&text)) {
            package.search(root, vec![root.inside(&project)]);
        } else if !is_listed && !package.add_of_conda(root, folder) {
            let top = inside("top_level.txt").unwrap_or_default();
            let names: BTreeSet<String> = top
                .lines()
                .map(|line| line.trim().to_owned())
                .filter(|line| !line.is_empty() && !line.contains('/') && line != "..")
                .chain([package.name.replace(['-', '.'], "_"), package.name.clone()])
                .collect();
            let names = names.iter().filter(|name| !name.contains('/'));
            let places = names.map(|name| folder.join(name));
            let places: Vec<PathBuf> = places
                .filter(|place| root.resolve(place).is_some())
                .collect();
            let is_module = |name: &str| folder.join(format!("{name}.py")).is_file();
            package.files_unknown =
                places.is_empty() && !is_module(&package.name) && !top.lines().any(is_module);
            package.search(root, places);
        }
        package.files.sort();
        package.files.dedup();
        let more = package.missing.len().saturating_sub(NAMED);
        if more > 0 {
            package.missing.truncate(NAMED);
            package
                .missing
                .push(format!("{more} more files are missing"));
        }
        Ok(package)
    }

    /// A file of a list; nothing that leads out of the environment by more than its `bin` and `lib`.
    fn add(&mut self, root: &Root, folder: &Path, path: &str) {
        let named = Path::new(path);
        let ups = named
            .components()
            .filter(|part| *part == Component::ParentDir);
        if named.is_absolute() || ups.count() > 3 {
            return;
        }
        match root.resolve(&folder.join(named)) {
            Some(file) if file.is_file() => self.files.push(file),
            Some(_) => self.missing.push(format!("{path} is not a regular file")),
            None => self
                .missing
                .push(format!("{path} is in its list of files, but missing")),
        }
    }

    /// The files by conda's information, which is beside `lib`. True where there is some.
    fn add_of_conda(&mut self, root: &Root, folder: &Path) -> bool {
        // PREFIX/lib/python3.12/site-packages
        let Some(prefix) = folder.ancestors().nth(3) else {
            return false;
        };
        let name = normalized(&self.name);
        let listing = prefix.join("conda-meta").read_dir().into_iter().flatten();
        let found = listing.flatten().find_map(|entry| {
            let file = entry
                .file_name()
                .to_str()?
                .strip_suffix(".json")?
                .to_owned();
            // NAME-VERSION-BUILD
            let own = file.rsplitn(3, '-').nth(2)?;
            if normalized(own) != name {
                return None;
            }
            let about: serde_json::Value = serde_json::from_str(&text(&entry.path())?).ok()?;
            about["files"].as_array().cloned()
        });
        for path in found.iter().flatten().filter_map(|path| path.as_str()) {
            if may_hold_code(path) {
                self.add(root, prefix, path);
            }
        }
        found.is_some()
    }

    /// Every library below these places, as far as it goes.
    fn search(&mut self, root: &Root, places: Vec<PathBuf>) {
        let mut left: Vec<(PathBuf, usize)> = places.into_iter().map(|place| (place, 0)).collect();
        let mut looked_at = 0;
        let mut seen = BTreeSet::new();
        while let Some((place, depth)) = left.pop() {
            let Some(real) = root
                .resolve(&place)
                .filter(|real| seen.insert(real.clone()))
            else {
                continue;
            };
            let name = place
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if real.is_dir() {
                // Of a version control system, or what a build has left.
                let skip = depth > 0
                    && (name.starts_with('.')
                        || ["build", "node_modules"].contains(&name.as_str()));
                let entries = real.read_dir().into_iter().flatten().flatten();
                if depth < DEEPEST && !skip {
                    left.extend(entries.map(|entry| (entry.path(), depth + 1)));
                }
            } else if real.is_file() && may_hold_code(&name) {
                self.files.push(real);
            }
            looked_at += 1;
            if looked_at > MOST_FILES {
                self.missing.push(format!(
                    "it has more than {MOST_FILES} files; the others were not looked at"
                ));
                return;
            }
        }
    }
}

/// The text of a regular file that is not too long: in a container's root anything may have the name.
fn text(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// The folder of an editable install.
fn edited(direct_url: &str) -> Option<PathBuf> {
    let about: serde_json::Value = serde_json::from_str(direct_url).ok()?;
    if about["dir_info"]["editable"].as_bool() != Some(true) {
        return None;
    }
    let url: url::Url = about["url"].as_str()?.parse().ok()?;
    url.to_file_path().ok()
}

/// The paths in a record, which is CSV.
fn recorded_paths(record: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader
        .has_headers(false)
        .flexible(true)
        .from_reader(record.as_bytes());
    let rows = reader.records().flatten();
    let paths = rows.filter_map(|row| Some(row.get(0)?.to_owned()));
    paths.filter(|path| !path.is_empty()).collect()
}

/// Libraries and what holds nothing but code for a GPU. Static libraries are for a later link.
fn may_hold_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ends = [".so", ".fatbin", ".cubin", ".pyd", ".dll"];
    ends.iter().any(|end| name.ends_with(end)) || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_pip_does() {
        assert_eq!(normalized("Flash_Attn"), "flash-attn");
        assert_eq!(normalized("nvidia.cublas--cu12"), "nvidia-cublas-cu12");
    }

    #[test]
    fn records_are_read_as_pip_does() {
        let record = "a/b.so,sha256=x,1\r\n\"a,\"\"b\"\".so\",sha256=x,1\nlast\n\n,,\n\"two\nlines\",,\n\"open";
        assert_eq!(
            recorded_paths(record),
            ["a/b.so", "a,\"b\".so", "last", "two\nlines", "open"]
        );
        assert!(recorded_paths("").is_empty());
        assert!(may_hold_code("x/libnccl.so.2") && may_hold_code("x/_C.cpython-312.so"));
        assert!(!may_hold_code("x/resource.py") && !may_hold_code("libx.a"));
    }

    #[test]
    fn only_editable_installs_lead_elsewhere() {
        let editable = r#"{"dir_info": {"editable": true}, "url": "file:///src/my%20one"}"#;
        assert_eq!(edited(editable), Some("/src/my one".into()));
        for other in [
            r#"{"dir_info": {}, "url": "file:///src"}"#,
            r#"{"dir_info": {"editable": true}, "url": "https://x/y"}"#,
            r#"{"dir_info": 5}"#,
            "[",
            "",
        ] {
            assert_eq!(edited(other), None, "{other}");
        }
    }
}
