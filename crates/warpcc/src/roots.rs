//! Which folders' names do not count: those that the user names, or with `auto` those that are called differently in
//! every clone and every build of the same thing (docs/keys.md, Clones).

use std::path::{Component, Path, PathBuf};

use warpcc_cache::Roots;
use warpcc_cache::roots::BASE;

/// What `base_dir` says.
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
pub struct Call<'a> {
    /// The working directory, without symbolic links.
    pub directory: &'a Path,
    /// The working directory as the shell calls it.
    pub called: Option<&'a Path>,
    /// Sources and libraries.
    pub inputs: &'a [String],
    /// Every word of the command line in which a path may stand, the compiler's among them.
    pub words: &'a [String],
}

/// The roots of a call.
pub fn find(base: &BaseDirs, call: &Call<'_>) -> Roots {
    // A folder of the fixed names' own could not be told from them.
    if base.is_empty() || Path::new(BASE).exists() {
        return Roots::default();
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
    Roots::new(pairs.iter().map(|(n, p)| (&**n, &**p)))
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
        // Two folders of one kind are two: the first one keeps the name.
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
    fn find_temporary(&mut self, call: &Call<'_>) {
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
    fn find_repository(&mut self, call: &Call<'_>) {
        // A folder for temporary files inside somebody's repository has nothing to do with it.
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

    /// The build's own folder, where it lies outside all others.
    fn find_build(&mut self, call: &Call<'_>) {
        if self.covers(call.directory) {
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

/// How the shell would call `folder`, a parent of the working directory, when it came there through a link.
fn spelled_by_shell(call: &Call<'_>, folder: &Path) -> Option<PathBuf> {
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

/// The random folders on the way to `path`, each with a name that does not change.
///
/// | folder | made by |
/// |---|---|
/// | `pip-KIND-xxxxxxxx` | pip: `req-build`, `build-env`, `install`, `wheel`, … |
/// | `NAME_<32 hex digits>` in one of pip's | pip, a package among several |
/// | `tmpxxxxxxxx.build-temp`, `.build-lib` | setuptools, editable |
/// | `build-env-xxxxxxxx`, `build-via-sdist-xxxxxxxx` | build |
/// | `builds-v0/.tmpxxxxxx`, `sdists-v…/…/src` | uv |
fn temporary_folders(path: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut folder = PathBuf::new();
    let mut above = "";
    let mut of_uv = false;
    for component in path.components() {
        folder.push(component);
        let Component::Normal(part) = component else {
            continue;
        };
        let part = part.to_str().unwrap_or_default();
        of_uv |= above.starts_with("sdists-v");
        let named = match part {
            "src" if of_uv => Some("uv-src".to_owned()),
            _ if part.starts_with(".tmp") && above.starts_with("builds-v") => {
                Some("uv-build".to_owned())
            }
            _ if part.starts_with("tmp") => part
                .split_once('.')
                .filter(|(random, kind)| {
                    is_random(&random[3..]) && ["build-temp", "build-lib"].contains(kind)
                })
                .map(|(_, kind)| kind.to_owned()),
            _ if random_end(above, "pip-").is_some() => part
                .rsplit_once('_')
                .filter(|(_, hash)| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
                .map(|(name, _)| format!("pip-{name}")),
            _ => random_end(part, "pip-")
                .or_else(|| random_end(part, "build-env-").map(|_| "build-env-"))
                .or_else(|| random_end(part, "build-via-sdist-").map(|_| "build-via-sdist-"))
                .map(|name| name.trim_end_matches('-').to_owned()),
        };
        found.extend(named.map(|name| (name, folder.clone())));
        above = part;
    }
    found
}

/// The part before the random end of a name that Python's `tempfile` made.
fn random_end<'a>(part: &'a str, prefix: &str) -> Option<&'a str> {
    let at = part.len().checked_sub(8)?;
    let (head, random) = part.split_at_checked(at)?;
    (head.starts_with(prefix) && head.ends_with('-') && is_random(random)).then_some(head)
}

/// Eight characters as Python's `tempfile` takes them.
fn is_random(text: &str) -> bool {
    let taken = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.len() == 8 && text.bytes().all(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(path: &str) -> Vec<String> {
        let found = temporary_folders(Path::new(path)).into_iter();
        found
            .map(|(name, folder)| format!("{name}={}", folder.display()))
            .collect()
    }

    #[test]
    fn installers_folders_are_known() {
        for (path, expected) in [
            (
                "/tmp/pip-req-build-a1_b2c3d/x/a.cu",
                "pip-req-build=/tmp/pip-req-build-a1_b2c3d",
            ),
            (
                "/tmp/pip-build-env-abcdefgh/overlay/x.h",
                "pip-build-env=/tmp/pip-build-env-abcdefgh",
            ),
            (
                "/tmp/tmpabcd1234.build-temp/a.o",
                "build-temp=/tmp/tmpabcd1234.build-temp",
            ),
            (
                "/tmp/build-env-abcdefgh/lib/x",
                "build-env=/tmp/build-env-abcdefgh",
            ),
            (
                "/c/uv/builds-v0/.tmpAbC123/lib/x.h",
                "uv-build=/c/uv/builds-v0/.tmpAbC123",
            ),
            (
                "/c/uv/sdists-v11/pypi/a/1/Xy_1-z/src/b/c.cu",
                "uv-src=/c/uv/sdists-v11/pypi/a/1/Xy_1-z/src",
            ),
        ] {
            assert_eq!(names(path), [expected]);
        }
        assert_eq!(
            names(
                "/tmp/pip-install-abcdefgh/flash-attn_0123456789abcdef0123456789abcdef/csrc/a.cu"
            ),
            [
                "pip-install=/tmp/pip-install-abcdefgh",
                "pip-flash-attn=/tmp/pip-install-abcdefgh/flash-attn_0123456789abcdef0123456789abcdef"
            ]
        );
        for path in [
            "/home/ada/pip-tools/a.cu",
            "/tmp/tmpabcd1234/a",
            "/tmp/x.build-temp",
            "/build-env-x/y",
        ] {
            assert_eq!(names(path), [""; 0], "{path}");
        }
    }

    #[test]
    fn the_builds_repository_and_nobody_elses() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let top = dir.path().canonicalize()?;
        let make = |path: &str| fs::create_dir_all(top.join(path));
        make("app/.git")?;
        make("app/third_party/sub/src")?;
        make("app/build")?;
        make("elsewhere/build/inner")?;
        make("other/.git")?;
        fs::write(
            top.join("app/third_party/sub/.git"),
            "gitdir: ../../.git/modules/sub\n",
        )?;
        fs::write(top.join("elsewhere/build/build.ninja"), "")?;
        let roots = |directory: &str, input: &str| {
            let inputs = [top.join(input).display().to_string()];
            let call = Call {
                directory: &top.join(directory),
                called: None,
                inputs: &inputs,
                words: &inputs,
            };
            let roots = find(&BaseDirs::found(), &call);
            roots.fixed(&inputs[0]).into_owned()
        };
        let sub = "app/third_party/sub/src/a.cu";
        assert_eq!(
            roots("app/build", sub),
            "/warpcc-base/repo/third_party/sub/src/a.cu"
        );
        assert_eq!(
            roots("app/third_party/sub", sub),
            "/warpcc-base/repo/third_party/sub/src/a.cu"
        );
        assert_eq!(
            roots("elsewhere/build/inner", "other/a.cu"),
            "/warpcc-base/repo-other/a.cu"
        );
        assert_eq!(
            roots("elsewhere/build/inner", "elsewhere/build/gen.cu"),
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
        let call = Call {
            directory: &top.join("disk/app/build"),
            called: Some(&top.join("home/app/build")),
            inputs: &[],
            words: &[],
        };
        let roots = find(&BaseDirs::found(), &call);
        for spelled in ["disk/app/a.cu", "home/app/a.cu"] {
            let path = top.join(spelled).display().to_string();
            assert_eq!(roots.fixed(&path), "/warpcc-base/repo/a.cu");
        }
        Ok(())
    }
}
