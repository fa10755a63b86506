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

use memchr::memmem::Finder;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use warpcc_cache::regular_file;

/// The size of a piece of a program that is searched at once, larger than every mark.
const PIECE: usize = 128 << 10;

/// How much read-only data is searched. The largest that was seen has 60 MB.
const LARGEST: u64 = 256 << 20;

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

const fn family(
    maker: Maker,
    title: &'static str,
    names: &'static [&'static str],
    marks: &'static [[&'static str; 2]],
) -> Family {
    Family {
        title,
        maker,
        names,
        marks,
    }
}

const FAMILIES: [Family; 13] = [
    family(
        Maker::Nvidia,
        "nvcc",
        &["nvcc"],
        &[["nvcc.profile", "cudafe1.stub.c"]],
    ),
    family(
        Maker::Nvidia,
        "cudafe",
        &["cudafe++"],
        &[["DEFAULT_EDG_BASE", "__nv_dl_wrapper_t<"]],
    ),
    family(
        Maker::Nvidia,
        "cicc",
        &["cicc"],
        &[["EDG_MAIN", "__nvvm_prmt"]],
    ),
    family(
        Maker::Nvidia,
        "ptxas",
        &["ptxas"],
        &[[
            "PTX .version %s does not support .target %s",
            "Instruction '%s%s%s%s' requires .target sm_%d or higher",
        ]],
    ),
    family(
        Maker::Nvidia,
        "fatbinary",
        &["fatbinary"],
        &[["Cuda fat binary constructor", "#undef __FATIDNAME_CORE\n"]],
    ),
    family(
        Maker::Nvidia,
        "nvlink",
        &["nvlink"],
        &[[
            "elfLink fatbinary error",
            "nvlink -extract %s -m%d -arch=%s -o %s\n",
        ]],
    ),
    family(
        Maker::Others,
        "driver",
        &["gcc", "g++", "cc", "c++", "cpp", "clang", "clang++"],
        &[
            ["Using built-in specs.\n", "rename spec %s to %s\n"],
            // The driver and the compiler of clang are one program.
            ["clang -cc1as", "-cc1gen-reproducer"],
        ],
    ),
    family(
        Maker::Others,
        "passes",
        &["cc1", "cc1plus", "lto1"],
        &[[
            "unrecognizable insn:",
            "insn does not satisfy its constraints:",
        ]],
    ),
    family(
        Maker::Others,
        "collect",
        &["collect2"],
        &[["collect2 version %s\n", "COLLECT_GCC_OPTIONS = %s\n"]],
    ),
    family(
        Maker::Others,
        "lto-wrapper",
        &["lto-wrapper"],
        &[["[Leaving LTRANS %s]\n", "COLLECT_GCC_OPTIONS"]],
    ),
    family(
        Maker::Others,
        "as",
        &["as"],
        &[["cfi_remember_state", "noaltmacro"]],
    ),
    family(
        Maker::Others,
        "ld",
        &["ld", "gold", "lld"],
        &[
            ["LDEMULATION", "using internal linker script:"],
            ["N4gold6RelobjE", "N4gold7ArchiveE"],
            ["LLD_REPRODUCE", "unknown emulation: "],
        ],
    ),
    family(
        Maker::Others,
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

    /// Whether these programs load plugins with every file that they read. binutils' own plugin and LLVM's import the list of
    /// all variables.
    pub(super) fn has_own_plugins(&self) -> bool {
        ["as", "ld", "ar"].contains(&self.title)
    }

    /// Whether these are the compilers proper of gcc.
    pub(super) fn is_gcc_proper(&self) -> bool {
        self.title == "passes"
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
        let program = regular_file::open(program)?;
        let marks = self.marks.as_flattened().iter();
        let marks: Vec<Vec<u8>> = marks
            .map(|mark| [mark.as_bytes(), b"\0"].concat())
            .collect();
        let found = find_constants(&program, &marks)?;
        Ok(found.chunks(2).any(|both| both == [true, true]))
    }
}

/// Which texts are in the read-only data of a program.
fn find_constants(program: &File, texts: &[Vec<u8>]) -> io::Result<Vec<bool>> {
    let unknown = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let cache = ReadCache::new(program);
    let (at, size) = section(&cache).map_err(unknown)?.unwrap_or_default();
    // The table in the file may lie, and so may the file's length.
    let end = at.saturating_add(size.min(LARGEST));
    let end = end.min(program.metadata()?.len());
    find_between(program, at, end, texts)
}

/// Which texts are between two places of a file. It is read piece by piece: cicc has 14 MB of read-only data.
fn find_between(file: &File, mut at: u64, end: u64, texts: &[Vec<u8>]) -> io::Result<Vec<bool>> {
    let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    let mut found = vec![false; texts.len()];
    // A text may begin in one piece and end in the next.
    let overlap = texts.iter().map(Vec::len).max().unwrap_or_default();
    let mut piece = vec![0; PIECE];
    let mut kept = 0;
    while at < end {
        let room = usize::try_from(end - at).map_or(PIECE, |rest| rest.min(PIECE - kept));
        file.read_exact_at(&mut piece[kept..kept + room], at)?;
        at += room as u64;
        let filled = kept + room;
        for (finder, found) in finders.iter().zip(&mut found) {
            *found = *found || finder.find(&piece[..filled]).is_some();
        }
        kept = filled.min(overlap);
        piece.copy_within(filled - kept..filled, 0);
    }
    Ok(found)
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
    use std::io::Write;

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

    #[test]
    fn a_text_on_the_border_of_two_pieces_is_found() {
        let texts = [b"a mark\0".to_vec(), b"another mark\0".to_vec()];
        for shift in 0..16 {
            let mut data = vec![b'x'; PIECE - shift];
            data.extend_from_slice(&texts[0]);
            data.resize(2 * PIECE - 2 * shift, b'y');
            data.extend_from_slice(&texts[1]);
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&data).expect("written");
            let end = data.len() as u64;
            let found = |from, to| find_between(&file, from, to, &texts).expect("read");
            assert_eq!(found(0, end), [true, true], "{shift}");
            assert_eq!(found(0, end - 1), [true, false], "{shift}");
            assert_eq!(
                found((PIECE - shift + 1) as u64, end),
                [false, true],
                "{shift}"
            );
        }
    }
}
