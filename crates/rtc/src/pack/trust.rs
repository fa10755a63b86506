//! Whose packs are used: those of users who could change this process's code anyway, and nobody else's.
//!
//! A pack decides what runs on the GPU, with this process's memory there. Its hashes say that it is whole, not who made it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;

use crate::library::file_at;

/// Checks who may write to a pack, a file or a folder.
///
/// # Errors
/// Somebody who is not trusted may; the error says what to do.
pub(crate) fn check(found: &Metadata) -> io::Result<()> {
    if found.mode() & 0o002 != 0 {
        return Err(io::Error::other(
            "every user can write to it; `chmod o-w` it",
        ));
    }
    let user = rustix::process::geteuid().as_raw();
    match is_trusted(found.uid(), user, owners_of_code()) {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "it belongs to user {}, and not to this user, root or the owner of this program; copy it, or `chown` it",
            found.uid()
        ))),
    }
}

fn is_trusted(owner: u32, user: u32, owners_of_code: &[u32]) -> bool {
    owner == user || owner == 0 || owners_of_code.contains(&owner)
}

/// The owners of the running program and of the library that this code is in, such as a Python module.
fn owners_of_code() -> &'static [u32] {
    static OWNERS: OnceLock<Vec<u32>> = OnceLock::new();
    OWNERS.get_or_init(|| {
        let library = file_at(owners_of_code as fn() -> &'static [u32] as usize);
        let program = Some(Path::new("/proc/self/exe").to_path_buf());
        let files = [program, library].into_iter().flatten();
        let found = files.filter_map(|path| std::fs::metadata(path).ok());
        found.map(|found| found.uid()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_could_change_the_code_are_trusted() {
        assert!(is_trusted(1000, 1000, &[]) && is_trusted(0, 1000, &[]));
        assert!(is_trusted(7, 1000, &[0, 7]) && !is_trusted(7, 1000, &[0]));
        assert!(!is_trusted(1000, 0, &[0]));
        // This program is a file, and its code is in it.
        let ours = std::env::current_exe().and_then(std::fs::metadata);
        let ours = ours.expect("this program").uid();
        assert_eq!(owners_of_code(), [ours, ours]);
    }
}
