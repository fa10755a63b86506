//! The package as people get it: a wheel made by maturin, installed by pip into an environment of its own, used by Python
//! programs with the real NVRTC of PyPI. No GPU: what reaches a driver is looked at through a stand-in for it.

mod adapters;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

fn top() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize().expect("the repository")
}

/// NVRTC 13.5's folder.
fn nvrtc() -> PathBuf {
    let toolkits = named("WARPCC_TOOLKITS").unwrap_or_else(|| top().join(".toolkits"));
    let nvcc =
        named("WARPCC_TEST_NVCC").unwrap_or_else(|| toolkits.join("13.5/nvidia/cu13/bin/nvcc"));
    let nvcc = nvcc
        .canonicalize()
        .expect("`cargo xtask test` installs a toolkit");
    let home = nvcc.parent().and_then(Path::parent).expect("a folder");
    home.join("lib")
}

/// The folder with maturin and NumPy.
fn packages() -> PathBuf {
    named("WARPCC_TEST_MATURIN").unwrap_or_else(|| top().join(".tools/maturin"))
}

#[track_caller]
fn done(mut command: Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}:\n{told}\n{said}");
    output
}

/// The environment's Python, with the package in it.
fn installed(folder: &Path) -> PathBuf {
    let mut maturin = Command::new(packages().join("bin/maturin"));
    // Cargo's variables about the crate of this test: ring's build script looks at these names, and ring and all crates
    // that depend on it would be rebuilt.
    let of_this_test =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_this_test))
    {
        maturin.env_remove(name);
    }
    // maturin tells PyO3 what it knows of Python, and PyO3 would be rebuilt for it, here and then in the workspace's next
    // build. PyO3 finds the same by itself, as it does there.
    let cargo = folder.join("cargo");
    let real = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let script = format!(
        "#!/bin/sh\nunset PYO3_CONFIG_FILE PYO3_PYTHON PYO3_ENVIRONMENT_SIGNATURE\nexec '{real}' \"$@\"\n"
    );
    std::fs::write(&cargo, script).expect("a script");
    std::fs::set_permissions(&cargo, Permissions::from_mode(0o755)).expect("its mode");
    maturin
        .env("CARGO", &cargo)
        .env("PYTHONPATH", packages())
        .current_dir(top())
        .args(["build", "--profile", "dev", "--locked", "--quiet"])
        .args(["--compression-method", "stored"])
        .args(["-m", "crates/rtc-py/Cargo.toml", "--out"])
        .arg(folder.join("wheels"));
    done(maturin);
    let wheels = std::fs::read_dir(folder.join("wheels"))
        .expect("the wheels")
        .flatten();
    let wheel = wheels.map(|found| found.path()).next().expect("a wheel");
    let name = wheel
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    // One wheel for every Python from 3.9 on.
    assert!(
        name.starts_with("warpcc_rtc-") && name.contains("-cp39-abi3-"),
        "{name}"
    );
    let environment = folder.join("environment");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--without-pip"]).arg(&environment);
    done(venv);
    let python = environment.join("bin/python");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--python"]).arg(&python);
    pip.args([
        "install",
        "--quiet",
        "--no-index",
        "--disable-pip-version-check",
    ])
    .arg(&wheel);
    done(pip);
    python
}

#[test]
fn the_wheel_does_what_its_programs_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let python = installed(folder.path());
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let run = |program: &str, driver: Option<&Path>| {
        let mut command = Command::new(&python);
        command
            .env_clear()
            .current_dir(folder.path())
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder.path())
            .env("PYTHONPATH", packages())
            .env("WARPCC_NVRTC", nvrtc())
            .env("WARPCC_TEST_ADAPTERS", adapters::others())
            .arg(tests.join(program))
            .arg(folder.path());
        if let Some(driver) = driver {
            command.env("LD_LIBRARY_PATH", driver);
            command.env("FAKE_LAUNCHES", folder.path().join("launches"));
        }
        done(command);
    };
    run("without_a_gpu.py", None);
    run("first_start.py", None);
    run("many_processes.py", None);
    run("observed.py", None);
    run("names.py", None);
    adapters::keep_what_other_packages_compile(&python, folder.path());
    let driver = folder.path().join("driver");
    std::fs::create_dir(&driver).expect("a folder");
    let mut cc = Command::new("g++");
    cc.args(["-x", "c", "-shared", "-fPIC", "-o"]);
    cc.arg(driver.join("libcuda.so.1"))
        .arg(tests.join("fake_driver.c"));
    done(cc);
    run("launches.py", Some(&driver));
    warmed_from_what_it_asked_for(&python, folder.path(), &driver);
}

/// An application records what it asks for; warpcc compiles that ahead, and the application's next start compiles
/// nothing, on a machine that has only the warmed folder.
fn warmed_from_what_it_asked_for(python: &Path, folder: &Path, driver: &Path) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/application.py");
    let (record, asked) = (folder.join("recorded.toml"), folder.join("asked"));
    let on = |program: &Path, cache: &str| {
        let mut command = Command::new(program);
        command
            .env_clear()
            .current_dir(folder)
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder)
            .env("PYTHONPATH", packages())
            .env("WARPCC_NVRTC", nvrtc())
            .env("WARPCC_RTC_CACHE", folder.join(cache))
            .env("LD_LIBRARY_PATH", driver);
        command
    };
    let start = |cache: &str, record: Option<&Path>| {
        let mut command = on(python, cache);
        if let Some(record) = record {
            command.env("WARPCC_RTC_RECORD", record);
        }
        command.arg(&program);
        String::from_utf8(done(command).stdout).expect("text")
    };
    let made = |count: u32, disk: u32| {
        format!(
            "{{\"counts\": {{\"memory\": 0, \"disk\": {disk}, \"shared\": 0, \"made\": {count}}}, \"remarks\": []}}\n"
        )
    };
    assert_eq!(start("first", Some(&record)), made(7, 0));
    std::fs::copy(&record, &asked).expect("a copy");
    // Found or made, it is the same, and written down once.
    assert_eq!(start("first", Some(&record)), made(0, 7));
    let twice = std::fs::read(&record).expect("the record");
    assert!(std::fs::read(&asked).expect("the copy") == twice);
    // Beside this test's folder, as cargo built it with the tests of crates/warpcc.
    let test = std::env::current_exe().expect("this program");
    let warpcc = test.with_file_name("../warpcc");
    let mut warm = on(&warpcc, "warmed");
    warm.args(["rtc", "warm"]).arg(&record);
    let said = String::from_utf8(done(warm).stdout).expect("text");
    assert!(
        said.starts_with("7 images") && said.contains("7 compiled now"),
        "{said}"
    );
    assert_eq!(start("warmed", None), made(0, 7));
}
