//! Finds the folders whose names do not count: those that the user names, or with `auto` those whose names differ in
//! every clone and every build of the same project (docs/keys.md, Clones).

use std::path::{Path, PathBuf};

use crate::installers::temporary_folders;
use crate::map::{BASE, PathMap};

/// The setting `base_dir`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseDirs {
    /// Folders, in the order they were named.
    pub folders: Vec<PathBuf>,
    /// `auto`: find more.
    pub auto: bool,
}

impl BaseDirs {
    /// Nothing but `auto`.
    pub fn found() -> Self {
        Self {
            folders: Vec::new(),
            auto: true,
        }
    }

    /// Whether paths count as they are.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && !self.auto
    }
}

/// A call, as far as its folders are concerned.
pub struct CallFolders<'a> {
    /// The working directory, without symbolic links.
    pub directory: &'a Path,
    /// The working directory as the shell calls it.
    pub called: Option<&'a Path>,
    /// Sources and libraries.
    pub inputs: &'a [String],
    /// Every word of the command line that may contain a path, including the compiler's.
    pub words: &'a [String],
}

/// The folders of a call whose names do not count.
pub fn discover(base: &BaseDirs, call: &CallFolders<'_>) -> PathMap {
    // A real folder of this name could not be distinguished from the fixed names.
    if base.is_empty() || Path::new(BASE).exists() {
        return PathMap::default();
    }
    let mut named = Named(Vec::new());
    for (number, folder) in base.folders.iter().enumerate() {
        let name = (number + 1).to_string();
        named.0.push((name.clone(), folder.clone()));
        if let Ok(real) = folder.canonicalize() {
            named.0.push((name, real));
        }
    }
    if base.auto {
        named.find_temporary(call);
        named.find_repository(call);
        named.find_build(call);
    }
    let text =
        |(name, path): &'_ (String, PathBuf)| Some((name.clone(), path.to_str()?.to_owned()));
    let pairs: Vec<(String, String)> = named.0.iter().filter_map(text).collect();
    PathMap::new(pairs.iter().map(|(n, p)| (&**n, &**p)))
}

/// Folders by name, a name for one folder and its other spellings.
struct Named(Vec<(String, PathBuf)>);

impl Named {
    fn covers(&self, path: &Path) -> bool {
        self.0.iter().any(|(_, folder)| path.starts_with(folder))
    }

    fn add(&mut self, name: &str, folder: PathBuf) {
        if self.0.iter().any(|(_, known)| *known == folder) {
            return;
        }
        // If there are two folders of one kind, the first one keeps the name.
        let taken = |name: &str| self.0.iter().any(|(n, _)| n == name);
        let mut free = name.to_owned();
        let mut number = 2;
        while taken(&free) {
            free = format!("{name}-{number}");
            number += 1;
        }
        let real = folder.canonicalize().ok().filter(|real| *real != folder);
        self.0.push((free.clone(), folder));
        self.0.extend(real.map(|real| (free, real)));
    }

    /// Folders that an installer makes anew for every build.
    fn find_temporary(&mut self, call: &CallFolders<'_>) {
        let directory = call.directory.to_str().unwrap_or_default().to_owned();
        for word in std::iter::once(&directory).chain(call.words) {
            // `-I/tmp/…`, `a,b`: a path begins at a slash.
            for path in word.split([',', ':', '=', ' ']) {
                let path = path.get(path.find('/').unwrap_or(path.len())..);
                for (name, folder) in temporary_folders(Path::new(path.unwrap_or_default())) {
                    self.add(&name, folder);
                }
            }
        }
    }

    /// The repository that the call is made in, which is that of the whole build; or, from outside, that of each source.
    fn find_repository(&mut self, call: &CallFolders<'_>) {
        // A folder for temporary files inside a repository has nothing to do with it.
        let temporary = self.0.iter().map(|(_, folder)| folder.clone());
        let temporary = temporary.filter(|folder| call.directory.starts_with(folder));
        let top = temporary.max_by_key(|folder| folder.as_os_str().len());
        let own = |found: &PathBuf| top.as_ref().is_none_or(|top| found.starts_with(top));
        if let Some(repository) = repository_above(call.directory).filter(own) {
            let spelled = spelled_by_shell(call, &repository);
            self.0.push(("repo".to_owned(), repository));
            self.0
                .extend(spelled.map(|folder| ("repo".to_owned(), folder)));
            return;
        }
        for input in call.inputs {
            let Some(parent) = Path::new(input).parent().filter(|p| p.is_absolute()) else {
                continue;
            };
            if !self.covers(parent)
                && let Some(repository) = repository_above(parent)
                && let Some(name) = repository.file_name().and_then(|n| n.to_str())
            {
                // Two repositories in one program may have equal paths inside: their own names keep them apart.
                self.add(&format!("repo-{name}"), repository);
            }
        }
    }

    /// The build's own folder, if it is outside all others.
    fn find_build(&mut self, call: &CallFolders<'_>) {
        if self.covers(call.directory) {
            return;
        }
        if let Some(project) = project_of_setuptools(call.directory) {
            let spelled = spelled_by_shell(call, project);
            self.0.push(("project".to_owned(), project.to_owned()));
            self.0
                .extend(spelled.map(|folder| ("project".to_owned(), folder)));
            return;
        }
        let tops = call.directory.ancestors();
        let top = tops
            .filter(|folder| {
                ["CMakeCache.txt", "build.ninja"]
                    .iter()
                    .any(|file| folder.join(file).exists())
            })
            .last()
            .unwrap_or(call.directory);
        let spelled = spelled_by_shell(call, top);
        self.0.push(("build".to_owned(), top.to_owned()));
        self.0
            .extend(spelled.map(|folder| ("build".to_owned(), folder)));
    }
}

/// The project that setuptools builds in `directory`: `PROJECT/build/temp.linux-x86_64-cpython-312`, or a folder in there.
fn project_of_setuptools(directory: &Path) -> Option<&Path> {
    let name = |folder: &Path| Some(folder.file_name()?.to_str()?.to_owned());
    let is_temporary = |folder: &&Path| {
        let build = folder.parent().and_then(name);
        build.as_deref() == Some("build") && name(folder).is_some_and(|n| n.starts_with("temp."))
    };
    let temporary = directory.ancestors().find(is_temporary)?;
    temporary.parent()?.parent()
}

/// How the shell would call `folder`, a parent of the working directory, when it came there through a link.
fn spelled_by_shell(call: &CallFolders<'_>, folder: &Path) -> Option<PathBuf> {
    let inside = call.directory.strip_prefix(folder).ok()?;
    let called = call.called.filter(|c| c.is_absolute())?;
    let depth = inside.components().count();
    let above = called.ancestors().nth(depth)?;
    (above != folder && above.join(inside) == called && above.canonicalize().ok()? == folder)
        .then(|| above.to_owned())
}

/// The nearest folder from `folder` upwards that is a repository, submodules passed over: they belong to the build of
/// the one around them.
fn repository_above(folder: &Path) -> Option<PathBuf> {
    let is_repository = |folder: &&Path| {
        let git = folder.join(".git");
        match git.metadata() {
            Ok(found) if found.is_dir() => true,
            // A worktree has a file; so has a submodule, whose folder is under `modules`.
            Ok(_) => std::fs::read_to_string(git).is_ok_and(|text| !text.contains("/modules/")),
            Err(_) => false,
        }
    };
    folder.ancestors().find(is_repository).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_builds_repository_and_nobody_elses() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let top = dir.path().canonicalize()?;
        let make = |path: &str| fs::create_dir_all(top.join(path));
        make("app/.git")?;
        make("app/third_party/sub/src")?;
        make("app/build/temp.linux-x86_64-cpython-312")?;
        make("unpacked/build/temp.linux-x86_64-cpython-312")?;
        make("elsewhere/build/inner")?;
        make("other/.git")?;
        fs::write(
            top.join("app/third_party/sub/.git"),
            "gitdir: ../../.git/modules/sub\n",
        )?;
        fs::write(top.join("elsewhere/build/build.ninja"), "")?;
        let fixed = |directory: &str, input: &str| {
            let inputs = [top.join(input).display().to_string()];
            let call = CallFolders {
                directory: &top.join(directory),
                called: None,
                inputs: &inputs,
                words: &inputs,
            };
            let map = discover(&BaseDirs::found(), &call);
            map.fixed(&inputs[0]).into_owned()
        };
        let sub = "app/third_party/sub/src/a.cu";
        assert_eq!(
            fixed("app/build", sub),
            "/warpcc-base/repo/third_party/sub/src/a.cu"
        );
        assert_eq!(
            fixed("app/third_party/sub", sub),
            "/warpcc-base/repo/third_party/sub/src/a.cu"
        );
        assert_eq!(
            fixed(
                "unpacked/build/temp.linux-x86_64-cpython-312",
                "unpacked/csrc/a.cu"
            ),
            "/warpcc-base/project/csrc/a.cu"
        );
        assert_eq!(
            fixed("app/build/temp.linux-x86_64-cpython-312", "app/csrc/a.cu"),
            "/warpcc-base/repo/csrc/a.cu"
        );
        assert_eq!(
            fixed("elsewhere/build/inner", "other/a.cu"),
            "/warpcc-base/repo-other/a.cu"
        );
        assert_eq!(
            fixed("elsewhere/build/inner", "elsewhere/build/gen.cu"),
            "/warpcc-base/build/gen.cu"
        );
        Ok(())
    }

    #[test]
    fn a_link_on_the_way_is_the_same_folder() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let top = dir.path().canonicalize()?;
        fs::create_dir_all(top.join("disk/app/.git"))?;
        fs::create_dir_all(top.join("disk/app/build"))?;
        std::os::unix::fs::symlink(top.join("disk"), top.join("home"))?;
        let call = CallFolders {
            directory: &top.join("disk/app/build"),
            called: Some(&top.join("home/app/build")),
            inputs: &[],
            words: &[],
        };
        let map = discover(&BaseDirs::found(), &call);
        for spelled in ["disk/app/a.cu", "home/app/a.cu"] {
            let path = top.join(spelled).display().to_string();
            assert_eq!(map.fixed(&path), "/warpcc-base/repo/a.cu");
        }
        Ok(())
    }
}
