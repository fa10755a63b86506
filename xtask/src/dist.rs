//! `cargo xtask dist`: what people install, made from one build of the programs, in `dist/`.
//!
//! All packages contain the same programs, byte for byte.

mod contents;
mod debian;
mod elf;
mod extras;
mod licences;
pub mod metadata;
mod packages;
mod program;
mod sbom;
mod source;
mod tarball;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repo;
use contents::Contents;
pub use source::name as source_name;
pub use tarball::unpack as unpack_tarball;

/// What to make.
#[derive(clap::Args)]
pub struct DistOptions {
    /// The packages to make; all if none is named
    #[arg(value_enum)]
    what: Vec<What>,
    /// The processor to build for
    #[arg(long, value_enum, default_value = "x86-64")]
    arch: program::Arch,
    /// Pack this program, which is already built, with the other program next to it and their debug information, if there is any
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// A kind of package.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum What {
    /// For pip: the programs in `bin`
    Wheel,
    /// For dpkg and apt
    Deb,
    /// One folder, with checksums
    Tarball,
    /// The sources of the commit, which recipes build
    Source,
    /// The crates as a registry would get them, checked
    Crate,
    /// For pip: the Python package warpcc-rtc
    RtcWheel,
    /// All of these but the last
    All,
}

/// Everything that a release has, with the programs that are built already, or with new ones.
pub fn all(program: Option<&Path>) -> Result<()> {
    main(&DistOptions {
        what: vec![What::All],
        arch: program::Arch::X86_64,
        program: program.map(Path::to_owned),
    })
}

/// `cargo xtask dist`.
pub fn main(options: &DistOptions) -> Result<()> {
    let named = |what| options.what.contains(&what);
    let all = options.what.is_empty() || named(What::All);
    let to = folder();
    fs::create_dir_all(&to).with_context(|| format!("failed to create {}", to.display()))?;
    if all || named(What::Crate) {
        packages::check()?;
    }
    let mut made = Vec::new();
    if all
        || [What::Wheel, What::Deb, What::Tarball]
            .into_iter()
            .any(named)
    {
        let contents = Contents::new(options.program.as_deref(), options.arch)?;
        if all || named(What::Wheel) {
            made.push(wheel::make(&contents, &to)?);
        }
        if all || named(What::Deb) {
            made.push(debian::make(&contents, &to)?);
        }
        if all || named(What::Tarball) {
            made.extend(tarball::make(&contents, &to)?);
        }
    }
    if all || named(What::Source) {
        made.push(source::make(&to)?);
    }
    if named(What::RtcWheel) {
        made.push(program::rtc_wheel(options.arch, &to)?);
    }
    checksums(&to)?;
    for file in made {
        let size = fs::metadata(&file)?.len();
        println!("{:>9.1} KiB  {}", size as f64 / 1024.0, file.display());
    }
    Ok(())
}

/// The folder for everything that is made.
pub fn folder() -> PathBuf {
    repo::root().join("dist")
}

/// Writes `SHA256SUMS` for all packages and source archives in the folder.
pub fn checksums(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && name.starts_with("warpcc") {
            names.push(name);
        }
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        let bytes = fs::read(folder.join(&name))?;
        text += &format!("{}  {name}\n", metadata::sha256(&bytes));
    }
    fs::write(folder.join("SHA256SUMS"), text).context("failed to write the checksums")
}
