//! Signs the checksums with a key of OpenSSH, which nearly every machine can check.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The purpose in the signature: a signature that was made for something else is not accepted.
const NAMESPACE: &str = "warpcc-release";

/// Writes `FILE.sig` and checks it. Gives its path.
pub fn sign(key: &Path, file: &Path) -> Result<PathBuf> {
    let mut name = file.as_os_str().to_owned();
    name.push(".sig");
    let signature = PathBuf::from(name);
    if signature.exists() {
        // If the file is there, ssh-keygen asks whether to replace it.
        std::fs::remove_file(&signature)?;
    }
    let keygen = |words: [&str; 2]| {
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", words[0], "-n", NAMESPACE, words[1]]);
        command
    };
    process::output(keygen(["sign", "-f"]).arg(key).arg(file))
        .context("ssh-keygen comes with OpenSSH, 8.2 or newer")?;
    check(keygen(["check-novalidate", "-s"]).arg(&signature), file)?;
    Ok(signature)
}

fn check(command: &mut Command, file: &Path) -> Result<()> {
    let shown = process::show(command);
    let status = command
        .stdin(File::open(file)?)
        .stdout(std::process::Stdio::null())
        .status()
        .with_context(|| format!("failed to start `{shown}`"))?;
    anyhow::ensure!(status.success(), "`{shown}` failed: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_these_bytes_and_no_others() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]);
        process::output(keygen.arg(at("key")))?;
        std::fs::write(at("sums"), "ab12  a.whl\n")?;
        sign(&at("key"), &at("sums"))?;
        // A second time, over the first signature.
        let signature = sign(&at("key"), &at("sums"))?;
        std::fs::write(at("sums"), "ab13  a.whl\n")?;
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", "check-novalidate", "-n", NAMESPACE, "-s"]);
        assert!(check(command.arg(&signature), &at("sums")).is_err());
        Ok(())
    }
}
