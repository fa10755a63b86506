//! The names of known programs, and the texts by which each is recognised.
//!
//! A mark is a text that the program prints, or otherwise needs for its own work: no program has a reason to contain it only
//! because it runs the other one. Names of variables and options are no marks, because compiler caches contain them. A mark must
//! be a C string of its own in the read-only data. So an archive at the end of a program does not count, nor the literals of
//! Rust and Go, which are no C strings.
//!
//! A new release that lacks a mark costs hits where a variable changes, and no wrong result. All were seen in gcc 11 to 15,
//! binutils 2.38 to 2.44, clang 13 to 19, lld 14 and 19, and CUDA 11.8 and 13.0 to 13.5.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memmem;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use warpcc_cache::regular_file;

/// Who makes a known program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// NVIDIA. Its programs do not import the list of all variables. One that does may look at all of them: ptxas of CUDA
    /// 13.2 ([`crate::conditions::looks_for`]).
    Nvidia,
    /// GNU, LLVM. Most import the list of all variables, and pass it on to programs that they start.
    Others,
}

/// Programs that have the same marks, such as `gcc` and `g++`.
pub(super) struct Family {
    /// One word, for a kind of notes.
    title: &'static str,
    pub(super) maker: Maker,
    /// Names without the target in front, the version behind, and the kind of linker.
    names: &'static [&'static str],
    /// The marks of each program; it has both.
    marks: &'static [[&'static str; 2]],
}

const fn nvidias(
    title: &'static str,
    names: &'static [&'static str],
    marks: &'static [[&'static str; 2]],
) -> Family {
    Family {
        title,
        maker: Maker::Nvidia,
        names,
        marks,
    }
}

const fn others(
    title: &'static str,
    names: &'static [&'static str],
    marks: &'static [[&'static str; 2]],
) -> Family {
    Family {
        title,
        maker: Maker::Others,
        names,
        marks,
    }
}

const FAMILIES: [Family; 13] = [
    nvidias("nvcc", &["nvcc"], &[["nvcc.profile", "cudafe1.stub.c"]]),
    nvidias(
        "cudafe",
        &["cudafe++"],
        &[["DEFAULT_EDG_BASE", "__nv_dl_wrapper_t<"]],
    ),
    nvidias("cicc", &["cicc"], &[["EDG_MAIN", "__nvvm_prmt"]]),
    nvidias(
        "ptxas",
        &["ptxas"],
        &[[
            "PTX .version %s does not support .target %s",
            "Instruction '%s%s%s%s' requires .target sm_%d or higher",
        ]],
    ),
    nvidias(
        "fatbinary",
        &["fatbinary"],
        &[["Cuda fat binary constructor", "#undef __FATIDNAME_CORE\n"]],
    ),
    nvidias(
        "nvlink",
        &["nvlink"],
        &[[
            "elfLink fatbinary error",
            "nvlink -extract %s -m%d -arch=%s -o %s\n",
        ]],
    ),
    others(
        "driver",
        &["gcc", "g++", "cc", "c++", "cpp", "clang", "clang++"],
        &[
            ["Using built-in specs.\n", "rename spec %s to %s\n"],
            // The driver and the compiler of clang are one program.
            ["clang -cc1as", "-cc1gen-reproducer"],
        ],
    ),
    others(
        "passes",
        &["cc1", "cc1plus", "lto1"],
        &[[
            "unrecognizable insn:",
            "insn does not satisfy its constraints:",
        ]],
    ),
    others(
        "collect",
        &["collect2"],
        &[["collect2 version %s\n", "COLLECT_GCC_OPTIONS = %s\n"]],
    ),
    others(
        "lto-wrapper",
        &["lto-wrapper"],
        &[["[Leaving LTRANS %s]\n", "COLLECT_GCC_OPTIONS"]],
    ),
    others("as", &["as"], &[["cfi_remember_state", "noaltmacro"]]),
    others(
        "ld",
        &["ld", "gold", "lld"],
        &[
            ["LDEMULATION", "using internal linker script:"],
            ["N4gold6RelobjE", "N4gold7ArchiveE"],
            ["LLD_REPRODUCE", "unknown emulation: "],
        ],
    ),
    others(
        "ar",
        &["ar", "ranlib"],
        &[
            [
                "two different operation options specified",
                "`u' is only meaningful with the `r' option.",
            ],
            [
                "not ranlib, ar, lib or dlltool",
                "editing multiple archives not supported",
            ],
            // gcc-ar, gcc-ranlib
            [
                "%s: Cannot find plugin '%s'\n",
                "%s: Cannot find binary '%s'\n",
            ],
        ],
    ),
];

impl Family {
    /// The family to which a program of this name may belong.
    pub(super) fn of_name(name: &str) -> Option<&'static Self> {
        let is_version = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        // `x86_64-linux-gnu-g++-12`, `ld.bfd`
        let name = name.split('.').next().unwrap_or(name);
        let last = name.rsplit('-').find(|part| !is_version(part));
        FAMILIES.iter().find(|family| {
            let has = |name: &str| family.names.contains(&name);
            has(name) || family.maker == Maker::Others && last.is_some_and(has)
        })
    }

    /// The kind of the notes that say which files have the marks. It changes with the marks.
    pub(super) fn kind_of_note(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for mark in self.marks.as_flattened() {
            hasher.update(mark.as_bytes()).update(&[0]);
        }
        let marks = hasher.finalize().to_hex();
        format!("known-{}-{}", self.title, &marks[..8])
    }

    /// Whether the program has the marks.
    ///
    /// # Errors
    /// The file cannot be read, or is no 64-bit program.
    pub(super) fn is_in(&self, program: &Path) -> io::Result<bool> {
        let data = constants(&regular_file::open(program)?)?;
        let has =
            |mark: &&'static str| memmem::find(&data, &[mark.as_bytes(), b"\0"].concat()).is_some();
        Ok(self.marks.iter().any(|marks| marks.iter().all(has)))
    }
}

/// The read-only data of a program.
fn constants(program: &File) -> io::Result<Vec<u8>> {
    let unknown = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let cache = ReadCache::new(program);
    let (at, size) = section(&cache).map_err(unknown)?.unwrap_or_default();
    // The table in the file may lie.
    let size = size.min(program.metadata()?.len());
    let mut data = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    program.read_exact_at(&mut data, at)?;
    Ok(data)
}

/// The place of the read-only data in the file, and its size.
fn section(program: &ReadCache<&File>) -> object::Result<Option<(u64, u64)>> {
    let header = FileHeader64::<Endianness>::parse(program)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, program)?;
    let found = sections.section_by_name(endian, b".rodata");
    Ok(found.and_then(|(_, section)| section.file_range(endian)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_have_the_names_of_a_family_and_shells_have_not() {
        for (name, title) in [
            ("x86_64-linux-gnu-g++-12", "driver"),
            ("x86_64-linux-gnu-ld.bfd", "ld"),
            ("x86_64-conda-linux-gnu-c++", "driver"),
            ("clang-14", "driver"),
            ("gcc-ar-12", "ar"),
            ("nvcc", "nvcc"),
            ("cudafe++", "cudafe"),
            ("lto-wrapper", "lto-wrapper"),
        ] {
            let family = Family::of_name(name).expect(name);
            assert_eq!(family.title, title, "{name}");
        }
        for name in [
            "bash",
            "python3.11",
            "mpicxx",
            "ccache",
            "x-cicc",
            "",
            "12",
            "-",
        ] {
            assert!(Family::of_name(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_notes_of_two_families_differ() {
        let mut kinds: Vec<_> = FAMILIES.iter().map(Family::kind_of_note).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), FAMILIES.len());
    }
}
