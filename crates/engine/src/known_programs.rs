//! Which programs are known to ask for variables by name and to look at no others.
//!
//! Whether a program looks through its whole environment cannot be observed: the list of all variables is an argument of its
//! `main`. So every variable counts for a program, unless it is a compiler or a tool of which that is known. A name proves
//! nothing: a wrapper is often called `g++`. So a program is known by its name together with texts that only this program
//! contains (`known_programs/marks.rs`).

mod marks;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use warpcc_cache::DiskStore;

use marks::{Family, Maker};

/// The programs of a run that are known. Each is examined once, and the answer is stored with its file's signature.
#[derive(Default)]
pub struct KnownPrograms<'s> {
    store: Option<&'s DiskStore>,
    /// What was found out about each executable.
    found: Mutex<BTreeMap<PathBuf, Option<Maker>>>,
}

impl<'s> KnownPrograms<'s> {
    /// Answers from this store, and from the programs' files.
    pub fn new(store: Option<&'s DiskStore>) -> Self {
        Self {
            store,
            ..Self::default()
        }
    }

    /// Whether a program, by the file that was executed, asks for variables by name and looks at no others; `has_environ` says
    /// whether it imports the list of all variables.
    pub fn asks_by_name(&self, executable: &Path, has_environ: bool) -> bool {
        match self.maker(executable) {
            Some(Maker::Nvidia) => !has_environ,
            Some(Maker::Others) => true,
            None => false,
        }
    }

    /// Whether the plugins that a program loads are its own, and ask for variables by name.
    pub fn has_own_plugins(&self, executable: &Path) -> bool {
        let family = family(executable).filter(|family| family.has_own_plugins());
        family.is_some() && self.maker(executable).is_some()
    }

    /// Whether a program is one of NVIDIA's. They ask for the working directory in every run. Where a result is known to
    /// contain the directory, the key contains it; any other result is searched for it (`folder_in_result.rs`).
    pub fn is_nvidias(&self, executable: &Path, has_environ: bool) -> bool {
        !has_environ && self.maker(executable) == Some(Maker::Nvidia)
    }

    /// Whether a program is a known compiler, or a part of one: its results contain a file's path as it is, or as a module id.
    pub fn is_compiler(&self, executable: &Path) -> bool {
        self.maker(executable).is_some()
    }

    /// Whether a program is the compiler proper of gcc, which its driver starts: `cc1plus`, `cc1`.
    pub fn is_gcc_proper(&self, executable: &Path) -> bool {
        let family = family(executable).filter(|family| family.is_gcc_proper());
        family.is_some() && self.maker(executable).is_some()
    }

    fn maker(&self, executable: &Path) -> Option<Maker> {
        let family = family(executable)?;
        let all = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all().get(executable) {
            return *found;
        }
        // Another thread may do the same meanwhile; nobody waits for it.
        let found = self.is_genuine(family, executable).then_some(family.maker);
        all().insert(executable.to_owned(), found);
        found
    }

    /// Whether the file is what its name says.
    fn is_genuine(&self, family: &Family, executable: &Path) -> bool {
        let examine = || Ok(vec![family.is_in(executable)?.into()]);
        let answer = match self.store {
            Some(store) => store.finding(&family.kind_of_note(), executable, &examine),
            None => examine(),
        };
        // A program that cannot be read is not known.
        answer.is_ok_and(|answer| answer == [true.into()])
    }
}

/// The family to which a program may belong, by its name.
fn family(executable: &Path) -> Option<&'static Family> {
    Family::of_name(executable.file_name().and_then(OsStr::to_str)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use warpcc_cache::Options;

    use super::*;

    fn texts(texts: &[&str]) -> Vec<u8> {
        let all = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"]);
        all.flatten().copied().collect()
    }

    /// Makes an object whose read-only data is this.
    fn program(folder: &Path, name: &str, data: &[u8]) -> PathBuf {
        let (source, object) = (folder.join("data.s"), folder.join(name));
        fs::write(folder.join("data"), data).expect("a file");
        let text = format!(".section .rodata\n.incbin \"{}/data\"\n", folder.display());
        fs::write(&source, text).expect("a file");
        let made = std::process::Command::new("cc")
            .args(["-c", "-o"])
            .args([&object, &source])
            .status();
        assert!(made.expect("cc").success());
        object
    }

    #[test]
    fn a_program_is_known_by_its_name_and_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let driver = texts(&["Using built-in specs.\n", "rename spec %s to %s\n"]);
        let cicc = texts(&["x", "EDG_MAIN", "y", "__nvvm_prmt"]);
        let known = KnownPrograms::new(None);
        for (name, data) in [
            ("x86_64-linux-gnu-g++-12", &driver),
            ("g++.real", &driver),
            ("cc", &driver),
            ("cicc", &cicc),
        ] {
            let file = program(folder, name, data);
            assert!(known.asks_by_name(&file, false), "{name}");
            assert!(known.is_compiler(&file), "{name}");
            assert_eq!(known.is_nvidias(&file, false), name == "cicc");
            assert_eq!(known.asks_by_name(&file, true), name != "cicc");
            assert!(!known.is_nvidias(&file, true));
        }
        let half = texts(&["Using built-in specs.\n"]);
        // No C string: a program that mentions the text among others, as those in Rust and Go do.
        let inside = [&driver[..driver.len() - 1], b"and more\0"].concat();
        for (name, data) in [
            ("mpicxx", &driver),
            ("as", &driver),
            ("cudafe++", &cicc),
            ("clang++", &half),
            ("g++-11", &inside),
            ("ptxas", &Vec::new()),
        ] {
            let file = program(folder, name, data);
            assert!(!known.asks_by_name(&file, false), "{name}");
            assert!(!known.is_compiler(&file) && !known.is_nvidias(&file, false));
        }
    }

    #[test]
    fn a_mark_is_found_wherever_it_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let marks = texts(&["Using built-in specs.\n", "rename spec %s to %s\n"]);
        let known = KnownPrograms::new(None);
        for before in [(1 << 20) - 30, (1 << 20) - 1, (2 << 20) - 40, (3 << 20) + 5] {
            let name = format!("gcc-{before}");
            let data = [vec![b'x'; before], marks.clone()].concat();
            let file = program(folder.path(), &name, &data);
            assert!(known.is_compiler(&file), "{before}");
        }
    }

    /// The table of sections says that the read-only data has a terabyte, and so does the length of the file.
    #[test]
    fn a_program_may_lie_about_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = program(folder.path(), "gcc", &[b'x'; 0x0012_3456]);
        let mut bytes = fs::read(&file).expect("a program");
        let stated = 0x0012_3456_u64.to_le_bytes();
        let at = bytes.windows(8).rposition(|part| part == stated);
        let at = at.expect("the size");
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        fs::write(&file, &bytes).expect("a program");
        for length in [bytes.len() as u64, 1 << 41] {
            let opened = fs::OpenOptions::new().write(true).open(&file);
            let lengthened = opened.and_then(|file| file.set_len(length));
            lengthened.expect("a sparse file");
            assert!(!KnownPrograms::new(None).is_compiler(&file), "{length}");
        }
    }

    #[test]
    fn what_is_no_program_is_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("g++");
        fs::write(&script, "#!/bin/sh\n# Using built-in specs.\n\0").expect("a file");
        let known = KnownPrograms::new(None);
        for path in [&script, folder.path(), Path::new("/"), Path::new("/no/gcc")] {
            assert!(!known.is_compiler(path), "{}", path.display());
        }
    }

    #[test]
    fn the_answer_is_stored_for_each_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bin/collect2");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        let options = Options {
            max_size: 0,
            readonly: false,
        };
        let store = DiskStore::open(&folder.path().join("cache"), options).expect("a store");
        let marks = texts(&["collect2 version %s\n", "COLLECT_GCC_OPTIONS = %s\n"]);
        for data in [&Vec::new(), &marks] {
            let made = program(folder.path(), "made", data);
            fs::rename(made, &file).expect("a program");
            for _ in 0..2 {
                let known = KnownPrograms::new(Some(&store));
                assert_eq!(known.is_compiler(&file), !data.is_empty());
            }
        }
    }

    #[test]
    fn the_compiler_of_this_machine_is_known() {
        let compiler = Path::new("/usr/bin/cc").canonicalize();
        let Ok(compiler) = compiler else {
            return;
        };
        let assembler = Path::new("/usr/bin/as").canonicalize().expect("as");
        let known = KnownPrograms::new(None);
        for program in [compiler, assembler] {
            assert!(known.is_compiler(&program), "{}", program.display());
        }
    }
}
