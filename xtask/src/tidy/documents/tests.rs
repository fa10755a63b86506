//! Pages with one thing wrong each.

use super::*;

const CLI: &str = "## warpcc\nUsage: warpcc <COMMAND>\n## warpcc run\nUsage: warpcc run -- <ARGS>...\n      --table <FILE>  Write\n";
const READ: &str = concat!("let a = variable(\"WARPCC", "_DIR\");\n");
const VARIABLE: &str = concat!("`WARPCC", "_DIR` is the folder\n");

/// The complaints about a page `docs/a.md`, in a repository in which everything else is right.
fn complaints(page: &str) -> Vec<(String, Complaint)> {
    complaints_of(&[("docs/a.md", page)])
}

fn complaints_of(changed: &[(&str, &str)]) -> Vec<(String, Complaint)> {
    let mut files: BTreeMap<String, String> = [
        (
            MAP,
            "[a](a.md) [cli](cli.md) [settings](configuration.md#the-folder) [up](../README.md)\n",
        ),
        (COMMANDS, CLI),
        (
            SETTINGS,
            concat!("## The folder\n`WARPCC", "_DIR` is the folder\n"),
        ),
        ("docs/a.md", "# A\n"),
        ("README.md", "[docs](docs/README.md)\n"),
        ("crates/plan/src/graph.rs", READ),
        ("cases/simple.cu", "int x;\n"),
    ]
    .iter()
    .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
    .collect();
    for (path, text) in changed {
        files.insert((*path).to_owned(), (*text).to_owned());
    }
    Repository::new(&files).complaints()
}

#[track_caller]
fn wrong(page: &str, what: &str) {
    let found = complaints(page);
    assert!(
        found.len() == 1 && found[0].0 == "docs/a.md" && found[0].1.message.contains(what),
        "{page}: {found:?}"
    );
}

#[track_caller]
fn right(page: &str) {
    assert_eq!(complaints(page), [], "{page}");
}

#[test]
fn links_lead_somewhere() {
    right(
        "[x](configuration.md#the-folder) [y](../cases/) [z](https://example.org/a#b) [s](#a)\n# A\n",
    );
    wrong("[x](b.md)\n", "b.md");
    wrong("[x](configuration.md#the-foldr)\n", "#the-foldr");
    wrong("# A\n[x](#b)\n", "#b");
    wrong("[x](../cases/simple.cu#a)\n", "#a");
    wrong("![x](img/no.svg)\n", "img/no.svg");
}

#[test]
fn paths_exist() {
    right(
        "`crates/plan/src/graph.rs` `plan/src/graph.rs` `graph.rs` `cases/NAME.cu` `cases/*.cu` `cases`\n",
    );
    right("`a/b.cu` `/usr/local` `kernel.cu` `build/x.o` `crates/plan/` `.rs`\n");
    wrong("`crates/plan/src/graf.rs`\n", "graf.rs");
    wrong("`plan/src/graf.rs`\n", "graf.rs");
    wrong("`graf.rs`\n", "graf.rs");
    wrong("`src/graf.rs`\n", "graf.rs");
    wrong("`cases/NAME.cpp`\n", "NAME.cpp");
    wrong("`docs/none`\n", "docs/none");
}

#[test]
fn variables_exist_and_are_explained() {
    right(VARIABLE);
    right(concat!("`-DWARPCC", "_DIR=1` `WARPCC_…` `WARPCC_*`\n"));
    wrong(concat!("`WARPCC", "_DIRS`\n"), "_DIRS");
    wrong(concat!("```sh\nWARPCC", "_DRI=1 make\n```\n"), "_DRI");
    wrong(concat!("`WARPCC", "_NONE_…`\n"), "_NONE_");
    let program = concat!(
        "// \"WARPCC",
        "_OLD\"\nlet b = c\"WARPCC",
        "_NEW\";\n#[cfg(test)]\n\"WARPCC",
        "_T\"\n"
    );
    let found = complaints_of(&[("crates/plan/src/new.rs", program)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&*found[0].0, found[0].1.line),
        ("crates/plan/src/new.rs", 2)
    );
    assert_eq!(complaints_of(&[("crates/plan/tests/new.rs", program)]), []);
}

#[test]
fn commands_are_those_of_the_program() {
    right("`warpcc run --table t.csv -- --any`, `warpcc nvcc --any`\n");
    wrong("`warpcc run --tabel t.csv`\n", "--tabel");
    wrong("```console\n$ warpcc rn\n```\n", "warpcc rn");
    wrong("```sh\nwarpcc run \\\n  --graph x\n```\n", "--graph");
    let found = complaints_of(&[(COMMANDS, "nothing\n")]);
    assert!(found[0].1.message.contains("cargo xtask docs"), "{found:?}");
}

#[test]
fn every_page_is_on_the_map() {
    let found = complaints_of(&[("docs/design/lost.md", "# Lost\n")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "docs/design/lost.md");
}

#[test]
fn programs_name_pages_that_are_there() {
    let right = "//! See docs/a.md. And `docs/configuration.md`, not docs/b.txt.\n";
    assert_eq!(complaints_of(&[("crates/plan/src/new.rs", right)]), []);
    let found = complaints_of(&[("crates/plan/src/new.rs", "\n//! See docs/b.md.\n")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&*found[0].0, found[0].1.line),
        ("crates/plan/src/new.rs", 2)
    );
}
