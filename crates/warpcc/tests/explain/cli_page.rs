//! Tests that docs/cli.md has the `--help` of every command. `WARPCC_DOCS=write` (`cargo xtask docs`) writes the page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const HEAD: &str = "# Commands\n\n\
    <!-- Written by `cargo xtask docs` from the program's own help. Do not edit. -->\n\n\
    This page is what `--help` says of each command. [First hour](start.md) shows the usual ones at work, and\n\
    [configuration](configuration.md) has the settings.\n\n\
    ```sh\n\
    warpcc nvcc …        # launch a compiler: any word that is not a command below\n\
    ```\n";

/// The output of `warpcc WORDS --help`, as wide as clap makes it without a terminal.
fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_warpcc"))
        .args(words)
        .arg("--help")
        .env_remove("COLUMNS")
        .env("NO_COLOR", "1")
        .output()
        .expect("warpcc starts");
    assert!(output.status.success(), "warpcc {words:?} --help");
    String::from_utf8(output.stdout).expect("text")
}

/// The commands that a help lists, but for `help` itself.
fn commands(help: &str) -> Vec<String> {
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    // The further lines of a description are indented more.
    listed
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// A command and those below it.
fn write_section(page: &mut String, words: &[String]) {
    let said = help(words);
    let name = [&["warpcc".to_owned()], words].concat().join(" ");
    let marks = "#".repeat(words.len().max(1) + 1);
    let said: Vec<&str> = said.lines().map(str::trim_end).collect();
    let said = said.join("\n");
    writeln!(
        page,
        "\n{marks} {name}\n\n```text\n{}\n```",
        said.trim_end()
    )
    .expect("a string");
    for below in commands(&said) {
        write_section(page, &[words, &[below]].concat());
    }
}

#[test]
fn the_page_is_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let mut made = HEAD.to_owned();
    write_section(&mut made, &[]);
    for command in [
        "## warpcc run\n",
        "### warpcc fatbin list\n",
        "--table <FILE>",
    ] {
        assert!(made.contains(command), "no {command} in\n{made}");
    }
    if std::env::var_os("WARPCC_DOCS").is_some_and(|what| what == "write") {
        fs::write(&path, &made).expect("written");
        return;
    }
    let committed = fs::read_to_string(&path).expect("docs/cli.md");
    let differs = (committed.lines().chain([""]))
        .zip(made.lines().chain([""]))
        .enumerate()
        .find(|(_, (page, program))| page != program);
    if let Some((line, (page, program))) = differs {
        panic!(
            "docs/cli.md:{}: it says\n  {page}\nand the program says\n  {program}\nrun `cargo xtask docs`",
            line + 1
        );
    }
    assert_eq!(committed, made, "run `cargo xtask docs`");
}
