//! Toolkits that Debian packages in non-free: fetched with package lists of their own, unpacked, and put together as
//! NVIDIA's installer would. Nothing is installed on this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, repo, toolkit};

/// Debian's names; the version of the runtime is part of one.
const PACKAGES: [&str; 7] = [
    "nvidia-cuda-toolkit",
    "nvidia-cuda-dev",
    "libnvvm4",
    "libthrust-dev",
    "libcub-dev",
    "libcu++-dev",
    "libcudart",
];

/// Debian's nvcc is a script that picks a gcc. Here it is the program itself, which finds the toolkit from its own folder.
const PROFILE: &str = r#"TOP              = $(_HERE_)/..

NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice

LD_LIBRARY_PATH += $(TOP)/lib64:
PATH            += $(TOP)/nvvm/bin:$(_HERE_):

INCLUDES        +=  "-I$(TOP)/include" $(_SPACE_)

LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/lib64"

CUDAFE_FLAGS    +=
PTXAS_FLAGS     +=
"#;

/// The toolkit's folder, made unless it is there.
pub fn install(version: &str, suite: &str) -> Result<PathBuf> {
    let toolkits = repo::toolkits_dir();
    let home = toolkits.join(version);
    let _lock = toolkit::lock(version)?;
    if !process::is_executable(&home.join("bin/nvcc")) {
        make(version, suite, &toolkits, &home)?;
    }
    home.canonicalize()
        .with_context(|| home.display().to_string())
}

fn make(version: &str, suite: &str, toolkits: &Path, home: &Path) -> Result<()> {
    for program in ["apt-get", "dpkg-deb"] {
        if process::on_path(program).is_none() {
            bail!("CUDA {version} comes from Debian's packages, and there is no {program} here");
        }
    }
    eprintln!("fetching CUDA {version} from Debian {suite}: about 1 GB");
    let work = tempfile::Builder::new()
        .prefix(&format!(".{version}-"))
        .tempdir_in(toolkits)
        .with_context(|| format!("failed to create a folder in {}", toolkits.display()))?;
    let (root, new) = (work.path().join("root"), work.path().join("new"));
    fs::create_dir(&root)?;
    fetch(suite, version, work.path(), &root)?;
    put_together(&root, &new)?;
    process::output(Command::new(new.join("bin/nvcc")).arg("--version"))
        .context("the packages were unpacked but their nvcc does not run on this machine")?;
    if home.exists() {
        // An incomplete toolkit: a folder without an nvcc.
        fs::rename(home, work.path().join("old"))?;
    }
    fs::rename(&new, home).with_context(|| format!("failed to make {}", home.display()))
}

/// Fetches and unpacks one package after the other, because a small disk has no room for two.
fn fetch(suite: &str, version: &str, work: &Path, root: &Path) -> Result<()> {
    for folder in ["lists/partial", "cache/archives/partial", "state", "debs"] {
        fs::create_dir_all(work.join(folder))?;
    }
    let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let source =
        format!("deb [signed-by={key}] http://deb.debian.org/debian {suite} main non-free\n");
    fs::write(work.join("sources.list"), source)?;
    fs::write(work.join("state/status"), "")?;
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        for (option, path) in [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::State::Lists", "lists"),
            ("Dir::Cache", "cache"),
            ("Dir::State", "state"),
            ("Dir::State::status", "state/status"),
        ] {
            let path = work.join(path);
            command.args(["-o", &format!("{option}={}", path.display())]);
        }
        command
            .args(["-o", "Dir::Etc::sourceparts=/dev/null", "-o"])
            .args(["APT::Sandbox::User=root", "--quiet"])
            .args(words)
            .current_dir(work.join("debs"));
        process::output(&mut command)
    };
    apt(&["update"])?;
    let runtime = match version.split('.').next() {
        Some("11") => "libcudart11.0".to_owned(),
        other => format!("libcudart{}", other.unwrap_or_default()),
    };
    for package in PACKAGES {
        let package = match package {
            "libcudart" => &runtime,
            other => other,
        };
        apt(&["download", package])?;
        for file in fs::read_dir(work.join("debs"))? {
            let file = file?.path();
            unpack(&file, root)?;
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

/// Unpacks a package without the libraries that are not linked here, which are most of it.
fn unpack(package: &Path, root: &Path) -> Result<()> {
    let mut tar = Command::new("dpkg-deb");
    tar.arg("--fsys-tarfile").arg(package);
    let mut packed = tar.stdout(std::process::Stdio::piped()).spawn()?;
    let from = packed.stdout.take().context("no output of dpkg-deb")?;
    let mut unpacking = Command::new("tar");
    unpacking.arg("--extract").arg("--directory").arg(root);
    let unneeded = [
        "cublas", "cufft", "curand", "cusolver", "cusparse", "npp", "nvjpeg", "nvrtc", "lapack",
        "metis", "nvptx",
    ];
    for name in unneeded {
        unpacking.arg(format!("--exclude=*/lib{name}*_static*.a"));
    }
    process::run(unpacking.stdin(from))?;
    let ended = packed.wait()?;
    if !ended.success() {
        bail!("{} cannot be read: {ended}", package.display());
    }
    Ok(())
}

/// Puts a toolkit together, which Debian spreads over the system's folders.
fn put_together(root: &Path, new: &Path) -> Result<()> {
    let own = root.join("usr/lib/nvidia-cuda-toolkit");
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    for folder in ["bin", "nvvm/bin", "nvvm/lib64", "lib64"] {
        fs::create_dir_all(new.join(folder))?;
    }
    let programs = [
        "bin2c",
        "cudafe++",
        "cuobjdump",
        "fatbinary",
        "nvdisasm",
        "nvlink",
        "ptxas",
    ];
    for name in programs {
        take(
            &root.join("usr/bin").join(name),
            &new.join("bin").join(name),
        )?;
    }
    for name in ["nvcc", "crt"] {
        take(&own.join("bin").join(name), &new.join("bin").join(name))?;
    }
    take(&own.join("bin/cicc"), &new.join("nvvm/bin/cicc"))?;
    take(&own.join("libdevice"), &new.join("nvvm/libdevice"))?;
    take(&root.join("usr/include"), &new.join("include"))?;
    for entry in fs::read_dir(&libraries)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if text.starts_with("libnvvm.") {
            take(&libraries.join(&name), &new.join("nvvm/lib64").join(&name))?;
        } else if text.starts_with("libcud") && text.contains("rt") {
            take(&libraries.join(&name), &new.join("lib64").join(&name))?;
        }
    }
    // The place of the libraries in the wheels of 13.
    symlink("lib64", new.join("lib"))?;
    fs::write(new.join("bin/nvcc.profile"), PROFILE).context("nvcc.profile")
}

fn take(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("the packages have no {}", from.display()))
}
