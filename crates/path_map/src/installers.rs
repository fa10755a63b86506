//! Recognises by their names the folders that installers create for every build.

use std::path::{Component, Path, PathBuf};

/// The random folders on the way to `path`, each with a name that does not change.
///
/// | folder | made by |
/// |---|---|
/// | `pip-KIND-xxxxxxxx` | pip: `req-build`, `build-env`, `install`, `wheel`, … |
/// | `NAME_<32 hex digits>` in one of pip's | pip, a package among several |
/// | `tmpxxxxxxxx.build-temp`, `.build-lib` | setuptools, editable |
/// | `build-env-xxxxxxxx`, `build-via-sdist-xxxxxxxx` | build |
/// | `builds-v0/.tmpxxxxxx`, `sdists-v…/…/src` | uv |
pub(crate) fn temporary_folders(path: &Path) -> Vec<(String, PathBuf)> {
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
}
