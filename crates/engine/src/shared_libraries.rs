//! The libraries that a program loads, as the dynamic loader lists them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::process::{Children, ProcessSpec};

/// The loaders of glibc's ports that warpcc is built for.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// A program's loader and libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The dynamic loader.
    pub loader: PathBuf,
    /// The libraries, by the names that the program gives.
    pub libraries: Vec<(String, PathBuf)>,
}

/// Asks the loader about `program`; `None` if it does not answer, for example for a static program.
pub fn loaded_by(
    program: &Path,
    environment: &[(OsString, OsString)],
    directory: &Path,
    children: &Children,
) -> Option<Loaded> {
    let loader = LOADERS.iter().map(PathBuf::from).find(|l| l.exists())?;
    let spec = ProcessSpec {
        program: &loader,
        name: LOADERS[0],
        args: &["--list".into(), program.into()],
        environment,
        directory,
        terminal: None,
        output_on_terminal: false,
        claim: None,
    };
    let ended = children.run(usize::MAX, &spec).ok()?;
    if ended.code != 0 {
        return None;
    }
    let libraries = parse(std::str::from_utf8(&ended.stdout).ok()?)?;
    Some(Loaded { loader, libraries })
}

/// Lines are `NAME => PATH (ADDRESS)`; the kernel's own library and the loader have no arrow.
fn parse(list: &str) -> Option<Vec<(String, PathBuf)>> {
    let mut libraries = Vec::new();
    for line in list.lines() {
        let Some((name, found)) = line.trim().split_once(" => ") else {
            continue;
        };
        // `not found` has no address.
        let (path, _) = found.rsplit_once(" (0x")?;
        if name.contains('/') {
            // This is the loader itself, under its name in the program. Any other name has no known path.
            if LOADERS.contains(&name) {
                continue;
            }
            return None;
        }
        libraries.push((name.to_owned(), PathBuf::from(path)));
    }
    Some(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_loader() {
        let list = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f0d)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f0e)\n";
        let libraries = parse(list).expect("a list");
        assert_eq!(
            libraries,
            [(
                "libm.so.6".to_owned(),
                PathBuf::from("/lib/x86_64-linux-gnu/libm.so.6")
            )]
        );
        assert_eq!(parse("\tlibx.so => not found\n"), None);
    }
}
