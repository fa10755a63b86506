//! A toolkit with a small runtime header: nvcc and every tool are the real ones, but each pass reads a fifth of the
//! text, and a compile takes a quarter of the time. It does not know which tests need the whole header.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{Toolkit, make_dir, remove_tree};

/// The headers that stand before the toolkit's own.
const HEADERS: [(&str, &str); 2] = [
    ("small/cuda_runtime.h", include_str!("small/cuda_runtime.h")),
    (
        "small/crt/host_runtime.h",
        include_str!("small/crt/host_runtime.h"),
    ),
];

/// Runs every test with the toolkit's own headers, when set.
const WHOLE: &str = "WARPCC_TEST_WHOLE_HEADERS";

/// The toolkit with the small header. It is made by whichever test wants it first.
pub fn small(toolkit: Toolkit) -> Toolkit {
    if std::env::var_os(WHOLE).is_some() {
        return toolkit;
    }
    let real = toolkit.top();
    let top = small_top(&real, toolkit.name);
    if !top.exists() {
        // Threads of one test may be first together, too.
        let own = format!("{}-{:?}", std::process::id(), std::thread::current().id());
        let new = top.with_extension(own.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        remove_tree(&new);
        lay_out(&real, &new, &top).unwrap_or_else(|e| panic!("{}: {e}", new.display()));
        if fs::rename(&new, &top).is_err() {
            // Another test was first.
            remove_tree(&new);
        }
    }
    let nvcc = top.join("bin/nvcc");
    assert!(nvcc.exists(), "no {}", nvcc.display());
    Toolkit {
        name: toolkit.name,
        nvcc,
    }
}

/// Whether a toolkit is such a one.
pub fn is_small(toolkit: &Toolkit) -> bool {
    toolkit.top().join(HEADERS[0].0).exists()
}

/// Feeds to a hasher how such a toolkit differs from the real one.
pub fn hash_small_headers(into: &mut impl Hasher) {
    (HEADERS, include_str!("small.rs")).hash(into);
}

/// Where it stands: a name of its own for each content and place, so that neither an old one nor another folder's copy is taken.
fn small_top(real: &Path, release: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut hasher = DefaultHasher::new();
    (folder, real).hash(&mut hasher);
    hash_small_headers(&mut hasher);
    folder.join(format!("toolkit-{release}-small-{:016x}", hasher.finish()))
}

/// Links to all there is but nvcc, which finds its profile beside itself, and the profile.
fn lay_out(real: &Path, new: &Path, top: &Path) -> io::Result<()> {
    make_dir(&new.join("bin"));
    for folder in ["", "bin"] {
        for item in fs::read_dir(real.join(folder))? {
            let item = item?;
            let own = ["bin", "nvcc", "nvcc.profile"];
            if !own.iter().any(|&name| item.file_name() == name) {
                symlink(item.path(), new.join(folder).join(item.file_name()))?;
            }
        }
    }
    fs::copy(real.join("bin/nvcc"), new.join("bin/nvcc"))?;
    for (name, text) in HEADERS {
        let path = new.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    let profile = fs::read_to_string(real.join("bin/nvcc.profile"))?;
    fs::write(new.join("bin/nvcc.profile"), changed(&profile, real, top))
}

/// nvcc's profile with the real tools and with the small header before the toolkit's own.
fn changed(profile: &str, real: &Path, top: &Path) -> String {
    let small = top.join("small");
    let mut text = String::new();
    let mut found = 0;
    for line in profile.lines() {
        match line.split_whitespace().next() {
            Some("TOP") => {
                found += 1;
                text += &format!("TOP = {}", real.display());
            }
            Some("INCLUDES") => {
                found += 1;
                text += line;
                // Each such line goes before the ones above it.
                text += &format!("\nINCLUDES += \"-I{}\" $(_SPACE_)", small.display());
            }
            _ => text += line,
        }
        text.push('\n');
    }
    assert_eq!(found, 2, "another kind of profile: {profile}");
    text
}
