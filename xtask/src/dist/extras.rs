//! Files next to the program: manual pages, completions, CMake's package, licences, the list of what is linked into it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::program::{Arch, DistProgram};
use super::{licences, metadata, sbom};
use crate::programs::OURS;
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

/// Where CMake finds a package that is for every processor, below a prefix.
pub const CMAKE: &str = "share/cmake/warpcc";
/// Its files in the repository's folder `cmake`, and their names there.
const OF_CMAKE: [(&str, &str); 3] = [
    ("warpcc.cmake", "warpcc.cmake"),
    ("warpccConfig.cmake", "warpccConfig.cmake"),
    ("warpccConfigVersion.cmake.in", "warpccConfigVersion.cmake"),
];

/// A file next to the program.
pub struct Extra {
    /// Below a prefix.
    pub place: String,
    pub bytes: Vec<u8>,
}

/// All of them.
pub fn all(program: &DistProgram, arch: Arch) -> Result<Vec<Extra>> {
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
    extras.extend(of_cmake(&metadata::version()?)?);
    let linked = metadata::linked(&OURS, &arch.target())?;
    extras.push(doc(THIRD_PARTY, licences::texts(&linked)?.into_bytes()));
    extras.push(doc(SBOM, sbom::json(&linked)?.into_bytes()));
    Ok(extras)
}

/// CMake's package, for the version that it is packed with.
fn of_cmake(version: &str) -> Result<Vec<Extra>> {
    let one = |(source, name): (&str, &str)| {
        let file = repo::root().join("cmake").join(source);
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("failed to read {}", file.display()))?;
        Ok(Extra {
            place: format!("{CMAKE}/{name}"),
            bytes: text.replace("@VERSION@", version).into_bytes(),
        })
    };
    OF_CMAKE.into_iter().map(one).collect()
}

/// The program itself, or under emulation where it is for another processor: what it prints is the same on each.
fn runnable(program: &DistProgram, arch: Arch) -> Command {
    if arch.is_here() {
        return Command::new(&program.stripped);
    }
    // Debian 12 has it in qemu-user-static, Debian 13 and newer in qemu-user.
    let names = [
        format!("qemu-{}-static", arch.name()),
        format!("qemu-{}", arch.name()),
    ];
    let found = names.iter().find(|name| process::on_path(name).is_some());
    let mut emulated = Command::new(found.unwrap_or(&names[0]));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmake_gets_the_version_and_every_file_that_another_includes() -> Result<()> {
        let files = of_cmake("1.2.3")?;
        let names: Vec<&str> = files.iter().map(|file| file.place.as_str()).collect();
        assert_eq!(
            names,
            [
                "share/cmake/warpcc/warpcc.cmake",
                "share/cmake/warpcc/warpccConfig.cmake",
                "share/cmake/warpcc/warpccConfigVersion.cmake"
            ]
        );
        let last = String::from_utf8_lossy(&files[2].bytes).into_owned();
        assert!(last.contains("PACKAGE_VERSION \"1.2.3\""), "{last}");
        Ok(())
    }
}
