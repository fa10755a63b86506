//! The lines that each kind of setup puts into a shell's start file.

use std::path::{Path, PathBuf};

use super::start_file::ShellSyntax;
use crate::locate;
use crate::process_context::ProcessContext;

/// A preset that a project may add to its CMakePresets.json.
pub const PRESET: &str = "\
A preset for a project, in CMakePresets.json or CMakeUserPresets.json:
  {
    \"version\": 3,
    \"configurePresets\": [
      {
        \"name\": \"warpcc\",
        \"generator\": \"Ninja\",
        \"binaryDir\": \"${sourceDir}/build\",
        \"cacheVariables\": { \"CMAKE_CUDA_COMPILER_LAUNCHER\": \"warpcc\" }
      }
    ]
  }
CMake reads the launcher when it configures a build folder for the first time.
";

/// The way in which builds are to find warpcc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The name nvcc.
    Shell,
    /// CMake's launcher.
    Cmake,
    /// PyTorch's nvcc.
    Pip,
}

impl Mode {
    /// Its option, without dashes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Cmake => "cmake",
            Self::Pip => "pip",
        }
    }
}

/// The lines; `folder` has warpcc under the name nvcc.
pub fn lines(
    mode: Mode,
    shell: ShellSyntax,
    folder: Option<&Path>,
    context: &ProcessContext,
) -> String {
    let mut text = own_folder(context).map_or(String::new(), |own| shell.first_in_path(&own));
    match mode {
        Mode::Shell => {
            if let Some(folder) = folder {
                text += &shell.first_in_path(folder);
            }
            // PyTorch and others take the parent of nvcc's folder for the toolkit. Here that would be warpcc's folder.
            text += &toolkit(context).map_or(String::new(), |home| cuda_home(shell, &home));
        }
        // CMake 3.17 and newer.
        Mode::Cmake => text += &shell.set("CMAKE_CUDA_COMPILER_LAUNCHER", "warpcc"),
        Mode::Pip => {
            text += &shell.set("PYTORCH_NVCC", "warpcc nvcc");
            text += "# pip builds in a new folder each time. With this line its builds hit. The objects then differ from nvcc's:\n\
                     # the names of folders are replaced.\n";
            text += &shell.set("WARPCC_BASE_DIR", "auto");
            text += &toolkit(context).map_or(String::new(), |home| cuda_home(shell, &home));
        }
    }
    text
}

fn cuda_home(shell: ShellSyntax, toolkit: &Path) -> String {
    shell.set_where_unset("CUDA_HOME", &toolkit.to_string_lossy())
}

/// The folder of this program, where `PATH` does not lead to it.
fn own_folder(context: &ProcessContext) -> Option<PathBuf> {
    let own = context.ourselves.first()?;
    let path = context.environment.iter().find(|(n, _)| n == "PATH");
    let folders = std::env::split_paths(path.map_or(std::ffi::OsStr::new(""), |(_, value)| value));
    let leads_here = |folder: PathBuf| {
        let there = folder.join("warpcc").canonicalize();
        there.is_ok_and(|file| file == *own)
    };
    let reachable = folders.into_iter().any(leads_here);
    (!reachable).then(|| own.parent().map(Path::to_owned))?
}

/// The folder of the toolkit that nvcc belongs to.
fn toolkit(context: &ProcessContext) -> Option<PathBuf> {
    let path = context.environment.iter().find(|(n, _)| n == "PATH");
    let path = path.map(|(_, value)| value.as_os_str());
    let nvcc = std::ffi::OsStr::new("nvcc");
    let found = locate::compiler(nvcc, path, &context.ourselves).or_else(|| {
        let found = locate::in_toolkit(nvcc, &context.environment, &context.ourselves);
        found.map(|(file, _)| file)
    })?;
    let home = found.canonicalize().ok()?.parent()?.parent()?.to_owned();
    // A script or another link in bin is no toolkit.
    home.join("bin/ptxas").is_file().then_some(home)
}
