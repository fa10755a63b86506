//! What stands beside the program: manual pages, completions, licences, the list of what is linked into it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::program::{Arch, Program};
use super::{licences, metadata, sbom};
use crate::{process, repo};

/// Our own.
pub const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Those of what is linked.
pub const THIRD_PARTY: &str = "THIRD-PARTY.txt";
/// Made by every CycloneDX tool under this ending.
pub const SBOM: &str = "warpcc.cdx.json";

/// Where a shell looks for each script, below a prefix such as `/usr`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/warpcc"),
    ("zsh", "share/zsh/site-functions/_warpcc"),
    ("fish", "share/fish/vendor_completions.d/warpcc.fish"),
];

/// A file beside the program.
pub struct Extra {
    /// Below a prefix.
    pub place: String,
    pub bytes: Vec<u8>,
}

/// All of them.
pub fn all(program: &Program, arch: Arch) -> Result<Vec<Extra>> {
    let mut extras = Vec::new();
    for (shell, place) in COMPLETIONS {
        let script = process::output(runnable(program, arch).args(["completions", shell]))?;
        extras.push(Extra {
            place: place.to_owned(),
            bytes: script.into_bytes(),
        });
    }
    let pages = tempfile::tempdir()?;
    process::run(runnable(program, arch).arg("man").arg(pages.path()))?;
    for (name, bytes) in files(pages.path())? {
        let place = format!("share/man/man1/{name}");
        extras.push(Extra { place, bytes });
    }
    let doc = |name: &str, bytes: Vec<u8>| Extra {
        place: format!("share/doc/warpcc/{name}"),
        bytes,
    };
    for name in LICENCES.into_iter().chain(["README.md", "CHANGELOG.md"]) {
        let bytes = fs::read(repo::root().join(name));
        extras.push(doc(
            name,
            bytes.with_context(|| format!("failed to read {name}"))?,
        ));
    }
    let linked = metadata::linked(&arch.target())?;
    extras.push(doc(THIRD_PARTY, licences::texts(&linked)?.into_bytes()));
    extras.push(doc(SBOM, sbom::json(&linked)?.into_bytes()));
    Ok(extras)
}

/// The program itself, or under emulation where it is for another processor: what it prints is the same on each.
fn runnable(program: &Program, arch: Arch) -> Command {
    if arch.is_here() {
        return Command::new(&program.stripped);
    }
    let mut emulated = Command::new(format!("qemu-{}-static", arch.name()));
    // Debian's folder of that processor's libraries.
    emulated
        .args(["-L", &format!("/usr/{}-linux-gnu", arch.name())])
        .arg(&program.stripped);
    emulated
}

fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push((name, fs::read(entry.path())?));
    }
    found.sort();
    Ok(found)
}
