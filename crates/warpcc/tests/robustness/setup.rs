//! Tests `warpcc setup`: it changes a shell's start file so that a new shell compiles through warpcc, and `--undo` restores
//! every byte.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use crate::space::{Outcome, Program, TestSpace};
use crate::{skipped, space};

/// A space with a home of its own and this shell.
fn at_home(name: &str, shell: &str) -> (TestSpace, PathBuf) {
    let mut space = space(name);
    let home = space.beside("home");
    fs::create_dir_all(&home).expect("a home");
    space.set_env("HOME", &home.display().to_string());
    space.set_env("SHELL", shell);
    let nvcc = space
        .toolkit
        .nvcc
        .parent()
        .expect("bin")
        .display()
        .to_string();
    space.set_env("PATH", &format!("{nvcc}:/usr/bin:/bin"));
    (space, home)
}

fn setup(space: &TestSpace, args: &[&str]) -> Outcome {
    let args: Vec<&str> = ["setup"].into_iter().chain(args.iter().copied()).collect();
    let outcome = space.warpcc_with(&args);
    assert_eq!(outcome.code, 0, "{args:?}: {}", outcome.stderr_text());
    outcome
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

/// The output of `script` in a shell that has read the start file.
fn in_shell(space: &TestSpace, shell: &str, start: &str, script: &str) -> String {
    let line = format!("{start}\n{script}");
    let shell = Program::Other(shell.into(), Vec::new());
    let done = space.run(&shell, &["-c".to_owned(), line]);
    let said = text(&done);
    assert_eq!(done.code, 0, "{script}: {said}{}", done.stderr_text());
    said
}

#[test]
fn a_new_shell_compiles_through_warpcc_and_undo_takes_every_byte_back() {
    let (space, home) = at_home("setup-shell", "/bin/bash");
    let start = home.join(".bashrc");
    let before = b"alias ll='ls -l'\n# no end";
    fs::write(&start, before).expect("a start file");
    fs::set_permissions(&start, fs::Permissions::from_mode(0o600)).expect("its mode");
    let shown = text(&setup(&space, &["--shell", "--dry-run"]));
    assert!(
        shown.contains("would link") && shown.contains("would write to"),
        "{shown}"
    );
    assert_eq!(fs::read(&start).expect("the file"), before);
    assert!(!home.join(".local").exists(), "a dry run makes nothing");

    setup(&space, &["--shell"]);
    let once = fs::read(&start).expect("the file");
    let again = text(&setup(&space, &["--shell"]));
    assert!(again.contains("already"), "{again}");
    assert_eq!(fs::read(&start).expect("the file"), once);
    assert_eq!(start.metadata().expect("the file").mode() & 0o777, 0o600);

    let toolkit = space.toolkit.nvcc.canonicalize().expect("nvcc");
    let toolkit = toolkit.parent().and_then(|bin| bin.parent()).expect("home");
    let said = in_shell(
        &space,
        "bash",
        ". ~/.bashrc",
        "nvcc -arch=sm_90 -c case.cu -o out.o && nvcc -arch=sm_90 -c case.cu -o out.o \
         && echo \"$CUDA_HOME\" && command -v nvcc",
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], toolkit.display().to_string());
    assert!(
        lines[1].ends_with("/.local/share/warpcc/bin/nvcc"),
        "{said}"
    );
    let stats = space.stats();
    assert_eq!((stats.count("built"), stats.count("direct_hits")), (1, 1));

    // Three setups, taken out in another order.
    setup(&space, &["--pip"]);
    let preset = text(&setup(&space, &["--cmake"]));
    assert!(
        preset.contains("\"CMAKE_CUDA_COMPILER_LAUNCHER\": \"warpcc\""),
        "{preset}"
    );
    let said = in_shell(
        &space,
        "bash",
        ". ~/.bashrc",
        "echo \"$PYTORCH_NVCC $WARPCC_BASE_DIR $CMAKE_CUDA_COMPILER_LAUNCHER\"; command -v warpcc",
    );
    assert!(said.starts_with("warpcc nvcc auto warpcc\n/"), "{said}");
    for mode in ["--shell", "--cmake", "--pip"] {
        setup(&space, &[mode, "--undo"]);
    }
    assert_eq!(fs::read(&start).expect("the file"), before);
    assert_eq!(start.metadata().expect("the file").mode() & 0o777, 0o600);
    assert!(
        !home.join(".local/share/warpcc").exists(),
        "the link's folder is gone"
    );
    let nothing = text(&setup(&space, &["--shell", "--undo"]));
    assert!(nothing.contains("has no lines"), "{nothing}");
}

#[test]
fn a_file_that_was_not_there_goes_again() {
    for (shell, file) in [("/usr/bin/zsh", ".zshrc"), ("/usr/bin/dash", ".profile")] {
        let (space, home) = at_home("setup-new", shell);
        setup(&space, &["--shell"]);
        // The lines for both shells are in sh's language.
        let start = format!(". ~/{file}");
        let said = in_shell(&space, "sh", &start, "command -v nvcc");
        assert!(said.contains("warpcc/bin/nvcc"), "{said}");
        setup(&space, &["--shell", "--undo"]);
        assert!(!home.join(file).exists(), "{file}");
    }
}

#[test]
fn fish_understands_its_lines() {
    let (space, _) = at_home("setup-fish", "/usr/bin/fish");
    setup(&space, &["--shell"]);
    setup(&space, &["--pip"]);
    let start = fs::read_to_string(space.beside("config/fish/config.fish")).expect("the file");
    assert!(
        start.contains("set -gx PATH '") && !start.contains("export"),
        "{start}"
    );
    if Command::new("fish").arg("--version").output().is_err() {
        return skipped("there is no fish to read its lines");
    }
    let said = in_shell(&space, "fish", "", "command -v nvcc; echo $PYTORCH_NVCC");
    assert!(said.contains("warpcc/bin/nvcc\nwarpcc nvcc"), "{said}");
}

#[test]
fn files_of_others_are_left_alone() {
    let (mut space, home) = at_home("setup-refused", "/bin/bash");
    let start = home.join(".bashrc");
    let refused = |space: &TestSpace, why: &str| {
        let outcome = space.warpcc_with(&["setup", "--shell"]);
        let said = outcome.stderr_text();
        assert_eq!(outcome.code, 2, "{said}");
        assert!(said.contains(why), "{why} is not in {said}");
        assert!(!home.join(".local").exists(), "{why}: nothing is half done");
    };
    fs::write(home.join("dotfiles"), "mine\n").expect("a file");
    std::os::unix::fs::symlink("dotfiles", &start).expect("a link");
    refused(&space, "is a symbolic link");
    fs::remove_file(&start).expect("the link");
    fs::hard_link(home.join("dotfiles"), &start).expect("a name");
    refused(&space, "another hard link");
    fs::remove_file(&start).expect("the name");
    fs::create_dir(&start).expect("a folder");
    refused(&space, "not a regular file");
    fs::remove_dir(&start).expect("the folder");
    fs::write(&start, "# >>> warpcc setup --shell >>>\nexport A=1\n").expect("a file");
    refused(&space, "do not end");
    fs::remove_file(&start).expect("the file");
    assert_eq!(fs::read(home.join("dotfiles")).expect("a file"), b"mine\n");
    // A foreign nvcc at the path of our link.
    let data = space.beside("data");
    fs::create_dir_all(data.join("warpcc/bin")).expect("folders");
    fs::write(data.join("warpcc/bin/nvcc"), "theirs").expect("a file");
    space.set_env("XDG_DATA_HOME", &data.display().to_string());
    refused(&space, "did not make it");
    assert_eq!(
        fs::read(data.join("warpcc/bin/nvcc")).expect("it"),
        b"theirs"
    );
    assert!(!start.exists(), "nothing is half done");
}
