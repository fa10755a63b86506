//! warpcc around, inside and in the place of other programs.

use crate::space::{Exactness, Program, TestSpace, remove_tree};
use crate::{TWO, space};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A folder with a link `nvcc` to warpcc.
fn masquerade(space: &TestSpace, name: &str) -> PathBuf {
    let dir = space.beside(name);
    crate::space::make_dir(&dir);
    symlink(TestSpace::warpcc(), dir.join("nvcc")).expect("linking");
    dir
}

/// Put folders before the toolkit's and the system's in PATH.
fn set_path(space: &mut TestSpace, first: &[PathBuf]) {
    let mut parts: Vec<String> = first.iter().map(|p| p.display().to_string()).collect();
    parts.push("{toolkit}/bin".to_owned());
    parts.push(std::env::var("PATH").unwrap_or_default());
    space.set_env("PATH", &parts.join(":"));
}

fn through(space: &TestSpace, program: PathBuf, first: &[&str]) {
    let program = Program::Other(program, first.iter().map(|&s| s.to_owned()).collect());
    let build = space.agree_as(&program, TWO, Exactness::Bytes);
    assert_eq!(build.stats.count("total"), 1, "{:?}", build.stats);
    let build = space.agree_as(&program, TWO, Exactness::Bytes);
    build.demand_direct_hit();
    assert_eq!(
        build.stats.count("total"),
        1,
        "counted twice: {:?}",
        build.stats
    );
}

#[test]
fn masquerade_first_in_path() {
    let mut space = space("masquerade");
    let dir = masquerade(&space, "bin");
    set_path(&mut space, std::slice::from_ref(&dir));
    through(&space, dir.join("nvcc"), &[]);
    // By name, as a Makefile does.
    space.agree_as(
        &Program::Other("nvcc".into(), Vec::new()),
        TWO,
        Exactness::Bytes,
    );
}

#[test]
fn masquerade_twice_in_path() {
    let mut space = space("masquerade-twice");
    let first = masquerade(&space, "bin1");
    let second = masquerade(&space, "bin2");
    // A copy is warpcc too, though no link says so.
    let third = space.beside("bin3");
    crate::space::make_dir(&third);
    fs::copy(TestSpace::warpcc(), third.join("nvcc")).expect("copying warpcc");
    set_path(&mut space, &[first.clone(), second, third]);
    through(&space, first.join("nvcc"), &[]);
}

#[test]
fn masquerade_with_the_real_one_named() {
    let mut space = space("masquerade-named");
    let dir = masquerade(&space, "bin");
    let nvcc = space.toolkit.nvcc.to_string_lossy().into_owned();
    space.set_env("WARPCC_NVCC", &nvcc);
    through(&space, dir.join("nvcc"), &[]);
}

#[test]
fn masquerade_without_a_real_nvcc() {
    let mut space = space("masquerade-alone");
    let dir = masquerade(&space, "bin");
    space.set_env("PATH", &format!("{}:/usr/bin:/bin", dir.display()));
    let nvcc = Program::Other(dir.join("nvcc"), Vec::new());
    let outcome = space.run(&nvcc, &space.words(TWO));
    assert_ne!(outcome.code, 0, "compiled with no nvcc at all");
    assert!(
        outcome.stderr_text().contains("nvcc"),
        "{}",
        outcome.stderr_text()
    );
    // Told to use itself, it must not run itself for ever either.
    space.set_env("WARPCC_NVCC", &dir.join("nvcc").to_string_lossy());
    let outcome = space.run(&nvcc, &space.words(TWO));
    assert_ne!(outcome.code, 0, "compiled with no nvcc at all");
}

#[test]
fn launcher_by_name() {
    let mut space = space("launcher-name");
    set_path(&mut space, &[]);
    through(&space, TestSpace::warpcc(), &["nvcc"]);
}

#[test]
fn launcher_around_a_masquerade() {
    let mut space = space("launcher-masquerade");
    let dir = masquerade(&space, "bin");
    set_path(&mut space, std::slice::from_ref(&dir));
    through(&space, TestSpace::warpcc(), &["nvcc"]);
    let link = dir.join("nvcc").to_string_lossy().into_owned();
    space
        .agree_as(
            &Program::Other(TestSpace::warpcc(), vec![link]),
            TWO,
            Exactness::Bytes,
        )
        .demand_direct_hit();
}

#[test]
fn warpcc_around_warpcc() {
    let space = space("around-itself");
    let warpcc = TestSpace::warpcc().to_string_lossy().into_owned();
    let nvcc = space.toolkit.nvcc.to_string_lossy().into_owned();
    through(&space, TestSpace::warpcc(), &[&warpcc, &nvcc]);
}

#[test]
fn warpcc_around_the_host_compiler_too() {
    // CMake sets launchers for C++ and CUDA alike; and -ccbin may name a wrapper.
    let space = space("around-host");
    let warpcc = TestSpace::warpcc().to_string_lossy().into_owned();
    space.script(
        "bin/g++",
        &format!("#!/bin/sh\nexec '{warpcc}' /usr/bin/g++ \"$@\"\n"),
    );
    let line = &format!("{TWO} -ccbin bin/g++");
    space.agree(line);
    space.agree(line);
}

#[test]
fn ccache_in_the_place_of_the_host_compiler_is_passed_over() {
    let mut space = space("ccache-host");
    let dir = space.beside("masks");
    crate::space::make_dir(&dir);
    let ccache = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("ccache"))
        .find(|file| file.is_file())
        .expect("ccache is installed by `cargo xtask test`");
    for name in ["gcc", "g++"] {
        symlink(&ccache, dir.join(name)).expect("linking");
    }
    let log = space.beside("ccache.log");
    space.set_env("CCACHE_DIR", &space.beside("ccache").to_string_lossy());
    space.set_env("CCACHE_LOGFILE", &log.to_string_lossy());
    let path = std::env::var("PATH").unwrap_or_default();
    space.set_env("PATH", &format!("{}:{path}", dir.display()));
    let line = format!("{TWO} -ccbin {}", dir.join("g++").display());
    // By its path, too.
    for line in [TWO, &line] {
        let build = space.agree(line);
        build.demand_no_direct_hit();
        space.again(line, &build).demand_direct_hit();
    }
    // nvcc asks ccache for each pass; with warpcc its dry run asks for the compiler's version, no more.
    let asked = |program: &Program| {
        remove_tree(&log);
        let args = space.words(&format!("{TWO} -DANOTHER"));
        assert_eq!(space.run(program, &args).code, 0);
        let log = fs::read_to_string(&log).unwrap_or_default();
        log.lines()
            .filter(|line| line.contains("Command line") && line.contains("case"))
            .count()
    };
    assert!(asked(&Program::Nvcc) >= 3);
    assert_eq!(asked(&Program::Launcher), 0);
}

#[test]
fn another_compiler_is_just_run() {
    let space = space("gcc");
    space.write("host.cpp", "#warning spoken\nint main() { return 0; }\n");
    let args = space.words("-c host.cpp -o host.o -Wall");
    let want = space.run(&Program::Other("g++".into(), Vec::new()), &args);
    let object = space.read("host.o");
    space.remove("host.o");
    let before = space.stats();
    let got = space.run(
        &Program::Other(TestSpace::warpcc(), vec!["g++".to_owned()]),
        &args,
    );
    assert_eq!(want, got);
    assert!(object == space.read("host.o"), "another object");
    assert_eq!(space.stats().since(&before).count("direct_hits"), 0);
    let sh = |script: &str| {
        let args = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        space
            .run(&Program::Other(TestSpace::warpcc(), args), &[])
            .code
    };
    assert_eq!(sh("exit 7"), 7);
    assert_eq!(sh("kill -TERM $$"), 143, "death by signal");
    let missing = space.warpcc_with(&["/nowhere/g++", "-c", "host.cpp"]);
    assert_eq!(missing.code, 127, "{}", missing.stderr_text());
}

#[test]
fn the_toolkit_of_cuda_home_without_nvcc_in_path() {
    // PYTORCH_NVCC="warpcc nvcc"
    let mut space = crate::space("cuda-home");
    space.set_env("PATH", "/usr/bin:/bin");
    space.set_env("CUDA_HOME", "{toolkit}");
    let program = Program::Other(TestSpace::warpcc(), vec!["nvcc".to_owned()]);
    let args = space.words(TWO);
    let reference = space.run(&space.reference(), &args);
    assert_eq!(reference.code, 0, "{}", reference.stderr_text());
    let wanted = space.read("out.o");
    for round in ["built", "direct_hits"] {
        space.remove("out.o");
        let outcome = space.run(&program, &args);
        assert_eq!((outcome.code, outcome.stderr_text().as_str()), (0, ""));
        assert!(space.read("out.o") == wanted, "not nvcc's object");
        assert_eq!(space.stats().count(round), 1, "{:?}", space.stats());
    }
    // PATH wins, and the log and the doctor say that the variable means another one.
    let other = space.beside("other/bin");
    crate::space::make_dir(&other);
    std::fs::copy("/bin/true", other.join("nvcc")).expect("copied");
    let path = format!(
        "{}:/usr/bin:/bin",
        space.toolkit.top().join("bin").display()
    );
    space.set_env("PATH", &path);
    space.set_env("CUDA_HOME", "{beside}/other");
    space.set_env("WARPCC_LOG", "{beside}/log");
    space.remove("out.o");
    let outcome = space.run(&program, &args);
    assert_eq!((outcome.code, outcome.stderr_text().as_str()), (0, ""));
    let log = std::fs::read_to_string(space.beside("log")).expect("the log");
    assert!(space.read("out.o") == wanted, "not nvcc's object");
    assert!(
        // Another PATH, which leads to other programs: built anew.
        log.contains("is used, and CUDA_HOME has"),
        "{log}"
    );
    let doctor = space.warpcc_with(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("and CUDA_HOME has"), "{said}");
}
