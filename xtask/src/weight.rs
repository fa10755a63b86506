//! Counts the lines, functions and files of a commit, for docs/design/weight.md: product code and tests apart.

use std::process::Command;

use anyhow::{Context, Result};

use crate::tidy::rules;
use crate::{process, repo};

/// The commit to count.
#[derive(clap::Args)]
pub struct WeightOptions {
    /// A commit, as git names it
    #[arg(default_value = "HEAD")]
    commit: String,
}

/// A file above this number of lines is counted as long.
const LONG: usize = 400;

/// What a commit has.
#[derive(Debug, Default, PartialEq)]
struct Weight {
    product_lines: usize,
    test_lines: usize,
    functions: usize,
    files: usize,
    long_files: usize,
}

/// `cargo xtask weight`.
pub fn main(options: &WeightOptions) -> Result<()> {
    let commit = &options.commit;
    let listing = git(&["ls-tree", "-r", "--name-only", commit])?;
    let mut weight = Weight::default();
    for path in listing.lines().filter(|path| is_counted(path)) {
        weight.add(path, &git(&["show", &format!("{commit}:{path}")])?);
    }
    println!("lines of product code           {}", weight.product_lines);
    println!("lines of tests                  {}", weight.test_lines);
    println!("functions of product code       {}", weight.functions);
    println!("files of product code           {}", weight.files);
    println!("of them above {LONG} lines         {}", weight.long_files);
    Ok(())
}

fn git(args: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    process::output(command.current_dir(repo::root()).args(args))
        .with_context(|| format!("git {} gives the files of a commit", args.join(" ")))
}

fn is_counted(path: &str) -> bool {
    rules::is_rust(path) && (path.starts_with("crates/") || path.starts_with("xtask/"))
}

impl Weight {
    fn add(&mut self, path: &str, text: &str) {
        let lines = text.lines().count();
        if rules::is_test_path(path)
            || path.ends_with("_tests.rs")
            || path.starts_with("crates/testkit/")
        {
            self.test_lines += lines;
            return;
        }
        let product = lines.min(rules::first_test_line(text).saturating_sub(1));
        self.product_lines += product;
        self.test_lines += lines - product;
        self.functions += text
            .lines()
            .take(product)
            .filter(|line| is_function(line))
            .count();
        self.files += 1;
        self.long_files += usize::from(lines > LONG);
    }
}

/// Whether the line begins a function.
fn is_function(line: &str) -> bool {
    let mut words = line.trim_start().split(' ');
    let is_before = |word: &str| {
        ["pub", "const", "async", "unsafe", "extern", "\"C\""].contains(&word)
            || word.starts_with("pub(")
    };
    words.find(|word| !is_before(word)) == Some("fn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_product_code_are_counted_apart() {
        let mut weight = Weight::default();
        let product = "//! Text.\npub(crate) fn a() {}\nlet fn_b = c;\n    const fn d() {}\n";
        weight.add(
            "crates/a/src/b.rs",
            &format!("{product}#[cfg(test)]\nmod tests {{\n    fn e() {{}}\n}}\n"),
        );
        weight.add("crates/a/tests/c.rs", "fn f() {}\n");
        weight.add("crates/testkit/src/lib.rs", "fn f() {}\n");
        weight.add("crates/a/src/long.rs", &"\n".repeat(LONG + 1));
        let expected = Weight {
            product_lines: 4 + LONG + 1,
            test_lines: 6,
            functions: 2,
            files: 2,
            long_files: 1,
        };
        assert_eq!(weight, expected);
        assert!(is_counted("xtask/src/main.rs") && !is_counted("fuzz/src/main.rs"));
    }
}
