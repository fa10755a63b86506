//! What a program or library needs from its machine, as `readelf` shows it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A version of the C library: 2.17 is (2, 17).
pub type Glibc = (u32, u32);

/// Fails unless `file` starts with a C library as old as `oldest`. Gives the newest version that it asks for.
pub fn check(file: &Path, oldest: Glibc) -> Result<Glibc> {
    let mut readelf = Command::new("readelf");
    let text = process::output(readelf.args(["--version-info", "--wide"]).arg(file))?;
    let newest = newest(&text);
    if newest > oldest {
        bail!(
            "{} needs glibc {}.{}, but has to run with {}.{}",
            file.display(),
            newest.0,
            newest.1,
            oldest.0,
            oldest.1
        );
    }
    Ok(newest)
}

/// Fails unless the program can be loaded at any address.
pub fn check_position_independent(file: &Path) -> Result<()> {
    let mut readelf = Command::new("readelf");
    let text = process::output(readelf.args(["--file-header", "--wide"]).arg(file))?;
    let kind = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Type:"));
    match kind.map(str::trim) {
        Some(kind) if kind.starts_with("DYN") => Ok(()),
        kind => bail!(
            "{} is {}, not position-independent",
            file.display(),
            kind.unwrap_or("nothing")
        ),
    }
}

/// The libraries that have to be there.
pub fn needed(file: &Path) -> Result<Vec<String>> {
    let mut readelf = Command::new("readelf");
    let text = process::output(readelf.args(["--dynamic", "--wide"]).arg(file))
        .context("readelf comes with binutils")?;
    let names = text.lines().filter(|line| line.contains("(NEEDED)"));
    let inside = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    Ok(names.filter_map(inside).collect())
}

/// (0, 0) where none is asked for.
fn newest(version_info: &str) -> Glibc {
    let names = version_info.split("Name: GLIBC_").skip(1);
    let version = |text: &str| {
        let word = text.split_whitespace().next()?;
        let mut parts = word.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    };
    names.filter_map(version).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_counts_by_numbers() {
        let text = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 5\n  \
                    0x0020:   Name: GLIBC_2.17  Flags: none  Version: 3\n  \
                    0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 2\n  \
                    0x0040:   Name: GCC_4.2.0  Flags: none  Version: 4\n";
        assert_eq!(newest(text), (2, 17));
        assert_eq!(newest("No version information found in this file."), (0, 0));
    }

    #[test]
    fn program_of_this_machine() -> Result<()> {
        let ourselves = std::env::current_exe()?;
        assert!(check(&ourselves, (2, 2)).is_err());
        check(&ourselves, (9, 0))?;
        assert!(needed(&ourselves)?.iter().any(|name| name == "libc.so.6"));
        Ok(())
    }
}
