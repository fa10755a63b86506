//! Checks which nvcc would run, whether it answers, and whether its version is tested.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use warpcc_report::doctor::Finding;

use super::finding::{error_of, fine, note, warning};
use super::variables::variable;
use super::wrapper_names::{is_script, wrapper};
use crate::commands::nvcc::find_nvcc;
use crate::config::Config;
use crate::locate;
use crate::process_context::ProcessContext;

/// Releases that the test suite compares with.
pub const TESTED: [&str; 2] = ["13.0", "13.5"];

/// The time limit for nvcc, which may be on a network share that hangs.
const DEADLINE: Duration = Duration::from_secs(20);

pub(super) fn check(config: &Config, context: &ProcessContext, findings: &mut Vec<Finding>) {
    let nvcc = match find_nvcc(None, config, context) {
        Ok(nvcc) => nvcc,
        Err(error) => {
            findings.push(note(
                error.to_string(),
                "only calls that name nvcc by its path will work",
                "put the toolkit's bin folder into PATH, or set WARPCC_NVCC=/usr/local/cuda/bin/nvcc",
            ));
            return;
        }
    };
    let shown = nvcc.display();
    let other = locate::other_toolkit(&nvcc, &context.environment, &context.ourselves);
    if let Some((other, by)) = other {
        findings.push(warning(
            format!("nvcc is {shown}, and {by} has {}", other.display()),
            "builds that read the variable mix headers and libraries of one toolkit with the compiler of the other",
            &format!("let PATH and {by} name one toolkit, or set WARPCC_NVCC"),
        ));
    }
    if let Some(name) = wrapper(&nvcc) {
        findings.push(warning(
            format!("nvcc is {name}: {shown}"),
            "two caches then store the same objects, and warpcc cannot see the steps behind it",
            "set WARPCC_NVCC to the real nvcc, or remove that folder from PATH",
        ));
        return;
    }
    if is_script(&nvcc) {
        findings.push(warning(
            format!("nvcc is a script: {shown}"),
            "it runs once more for every call, and options that it adds are not part of the key",
            "set WARPCC_NVCC to the nvcc that it runs, if it adds nothing",
        ));
    }
    let mut answer = version(&nvcc, Flags::Inherited, DEADLINE);
    if answer.is_err() && FLAGS.iter().any(|name| variable(context, name).is_some()) {
        let without = version(&nvcc, Flags::Without, DEADLINE);
        if without.is_ok() {
            findings.push(error_of(
                "nvcc refuses the flags of NVCC_PREPEND_FLAGS or NVCC_APPEND_FLAGS",
                "every compilation fails",
                "start nvcc --version by hand to see why, and correct the variable",
            ));
            answer = without;
        }
    }
    findings.push(match answer {
        Err(why) => error_of(
            format!("{shown} --version: {why}"),
            "it cannot compile anything",
            "start it by hand, and set WARPCC_NVCC to one that works",
        ),
        Ok(version) if TESTED.contains(&version.as_str()) => {
            fine(format!("nvcc {version}, which is tested: {shown}"))
        }
        Ok(version) => note(
            format!(
                "nvcc {version} is not among the tested ones ({}): {shown}",
                TESTED.join(", ")
            ),
            "what warpcc does not support is bypassed, and counted",
            "after a build, `warpcc stats` lists bypassed calls",
        ),
    });
}

/// Variables that nvcc adds to every command line.
const FLAGS: [&str; 2] = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"];

/// Whether nvcc sees these variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flags {
    Inherited,
    Without,
}

/// nvcc's release, as it prints it.
fn version(nvcc: &Path, flags: Flags, deadline: Duration) -> Result<String, String> {
    let mut command = Command::new(nvcc);
    if flags == Flags::Without {
        for name in FLAGS {
            command.env_remove(name);
        }
    }
    let mut child = command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (sender, receiver) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        // If the thread cannot be started, there is no answer, and the finding says so.
        let read = move || {
            let mut text = Vec::new();
            // No release prints more than a few lines.
            drop(out.take(1 << 16).read_to_end(&mut text));
            drop(sender.send(text));
        };
        drop(thread::Builder::new().spawn(read));
    }
    let text = receiver.recv_timeout(deadline);
    // The program may have closed its output without ending.
    drop(child.kill());
    drop(child.wait());
    let text = text.map_err(|_| format!("no answer within {} s", deadline.as_secs()))?;
    release(&String::from_utf8_lossy(&text)).ok_or_else(|| "not nvcc's answer".to_owned())
}

/// `Cuda compilation tools, release 13.5, V13.5.37`.
fn release(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("release ")?;
    let number: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    (!number.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_release_is_read() {
        let text = "Built on X\nCuda compilation tools, release 13.5, V13.5.37\nBuild y\n";
        assert_eq!(release(text).as_deref(), Some("13.5"));
        assert_eq!(release("gcc 12"), None);
    }

    #[test]
    fn one_that_hangs_is_given_up() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let hanging = folder.path().join("nvcc");
        std::fs::write(&hanging, "#!/bin/sh\nexec sleep 60\n")?;
        std::fs::set_permissions(&hanging, std::fs::Permissions::from_mode(0o755))?;
        let started = std::time::Instant::now();
        let answer = version(&hanging, Flags::Inherited, Duration::from_millis(100));
        assert!(answer.is_err_and(|why| why.contains("no answer")));
        assert!(started.elapsed() < Duration::from_secs(30));
        assert!(version(Path::new("/bin/true"), Flags::Without, DEADLINE).is_err());
        Ok(())
    }
}
