//! The wheel `warpcc`: programs that pip puts into `bin`. No Python runs them.
//!
//! Written here and not by maturin: that builds programs itself, and others than the other forms carry.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::contents::Contents;
use super::extras::{CMAKE, LICENCES, SBOM, THIRD_PARTY};
use super::{metadata, program};
use crate::repo;

/// The text that pip and PyPI's search show.
const KEYWORDS: &str = "cuda,nvcc,compiler,cache,build,ccache";

const CLASSIFIERS: [&str; 6] = [
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Intended Audience :: Developers",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Rust",
    "Topic :: Software Development :: Build Tools",
];

/// Writes it into the folder `to`.
pub fn make(contents: &Contents, to: &Path) -> Result<PathBuf> {
    let version = &contents.version;
    let tag = tag(contents.arch);
    let file = to.join(format!("warpcc-{version}-{tag}.whl"));
    let info = format!("warpcc-{version}.dist-info");
    let mut wheel = Wheel::new(&file)?;
    for program in &contents.programs {
        let place = format!("warpcc-{version}.data/scripts/{}", program.name);
        wheel.add(&place, &fs::read(&program.stripped)?, 0o755)?;
    }
    for extra in &contents.extras {
        let name = extra.place.rsplit('/').next().unwrap_or_default();
        let place = match name {
            SBOM => format!("{info}/sboms/{name}"),
            name if LICENCES.contains(&name) || name == THIRD_PARTY => {
                format!("{info}/licenses/{name}")
            }
            // pip puts it below the environment, whose `bin` in PATH leads CMake to it.
            _ if extra.place.starts_with(CMAKE) => {
                format!("warpcc-{version}.data/data/{}", extra.place)
            }
            _ => continue,
        };
        wheel.add(&place, &extra.bytes, 0o644)?;
    }
    wheel.add(
        &format!("{info}/METADATA"),
        metadata_file(version)?.as_bytes(),
        0o644,
    )?;
    wheel.add(&format!("{info}/WHEEL"), wheel_file(&tag).as_bytes(), 0o644)?;
    wheel.finish(&format!("{info}/RECORD"))?;
    Ok(file)
}

/// `py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64`: the second name is for pip before 20.3.
fn tag(arch: program::Arch) -> String {
    let (major, minor) = program::OLDEST_GLIBC;
    let arch = arch.name();
    format!("py3-none-manylinux_{major}_{minor}_{arch}.manylinux2014_{arch}")
}

fn metadata_file(version: &str) -> Result<String> {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: warpcc\nVersion: {version}\n\
         Summary: CUDA compilation, parallel and cached, in front of nvcc\n\
         Keywords: {KEYWORDS}\nLicense-Expression: Apache-2.0 OR MIT\n"
    );
    let address = metadata::repository()?;
    if metadata::is_public(&address) {
        text += &format!("Project-URL: Repository, {address}\n");
    }
    for licence in LICENCES.into_iter().chain([THIRD_PARTY]) {
        text += &format!("License-File: {licence}\n");
    }
    for classifier in CLASSIFIERS {
        text += &format!("Classifier: {classifier}\n");
    }
    // No interpreter runs the program; pip itself wants to know which Python may install it.
    text += "Requires-Python: >=3.6\nDescription-Content-Type: text/markdown\n\n";
    let page = repo::root().join("xtask/dist/wheel.md");
    text +=
        &fs::read_to_string(&page).with_context(|| format!("failed to read {}", page.display()))?;
    Ok(text)
}

fn wheel_file(tag: &str) -> String {
    let (python, platforms) = tag.rsplit_once('-').unwrap_or((tag, ""));
    let mut text =
        "Wheel-Version: 1.0\nGenerator: warpcc's xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in platforms.split('.') {
        text += &format!("Tag: {python}-{platform}\n");
    }
    text
}

/// A zip file, and the list of what is in it.
struct Wheel {
    zip: ZipWriter<File>,
    record: String,
}

impl Wheel {
    fn new(file: &Path) -> Result<Self> {
        let created =
            File::create(file).with_context(|| format!("failed to create {}", file.display()))?;
        Ok(Self {
            zip: ZipWriter::new(created),
            record: String::new(),
        })
    }

    fn add(&mut self, place: &str, bytes: &[u8], mode: u32) -> Result<()> {
        self.record += &record_line(place, bytes);
        self.write(place, bytes, mode)
    }

    fn write(&mut self, place: &str, bytes: &[u8], mode: u32) -> Result<()> {
        // The same bytes whenever it is made.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        self.zip.start_file(place, options)?;
        self.zip.write_all(bytes)?;
        Ok(())
    }

    fn finish(mut self, place: &str) -> Result<()> {
        let record = format!("{}{place},,\n", self.record);
        self.write(place, record.as_bytes(), 0o644)?;
        self.zip.finish()?;
        Ok(())
    }
}

/// The hash of a file in the form that pip checks.
fn record_line(place: &str, bytes: &[u8]) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    format!("{place},sha256={hash},{}\n", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_in_the_name_and_in_the_wheel() {
        let tag = tag(program::Arch::X86_64);
        assert_eq!(tag, "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64");
        let text = wheel_file(&tag);
        assert!(
            text.contains("\nTag: py3-none-manylinux_2_17_x86_64\n"),
            "{text}"
        );
        assert!(
            text.ends_with("\nTag: py3-none-manylinux2014_x86_64\n"),
            "{text}"
        );
    }

    #[test]
    fn record_is_as_the_standard_has_it() {
        // The hash of no bytes, as `python3 -c` with hashlib and base64 prints it.
        let line = "a/b,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n";
        assert_eq!(record_line("a/b", b""), line);
    }

    #[test]
    fn metadata_has_its_fields_before_the_text() -> Result<()> {
        let text = metadata_file("1.2.3")?;
        let (fields, page) = text.split_once("\n\n").context("there is a text")?;
        assert!(fields.starts_with("Metadata-Version: 2.4\nName: warpcc\nVersion: 1.2.3\n"));
        assert!(fields.lines().all(|line| line.contains(": ")), "{fields}");
        for licence in LICENCES {
            assert!(repo::root().join(licence).exists());
        }
        assert!(page.starts_with("# warpcc"), "{page}");
        Ok(())
    }
}
