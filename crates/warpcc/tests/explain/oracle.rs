//! Asks other programs about nvcc's files: cuobjdump, readelf, and nvcc's own dry run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::space::{Program, TestSpace, Toolkit};

fn output(program: &Path, args: &[&str], file: &Path) -> String {
    let done = Command::new(program).args(args).arg(file).output();
    let done = done.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    assert!(done.status.success(), "{} {args:?}", program.display());
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Registers by function, as `cuobjdump -res-usage` prints them. Only newer toolkits have a cuobjdump, which also reads
/// older files.
pub fn registers(cubin: &Path) -> BTreeMap<String, String> {
    let cuobjdump = Toolkit::newest().top().join("bin/cuobjdump");
    let said = output(&cuobjdump, &["-res-usage"], cubin);
    let mut found = BTreeMap::new();
    let mut function = None;
    for line in said.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("Function ") {
            function = Some(name.trim_end_matches(':').to_owned());
        } else if let (Some(rest), Some(name)) = (line.strip_prefix("REG:"), function.take()) {
            let number = rest.split(' ').next().unwrap_or_default();
            found.insert(name, number.to_owned());
        }
    }
    found
}

/// The number of commands in nvcc's dry run.
pub fn commands(space: &TestSpace, args: &str) -> usize {
    let outcome = space.run(&Program::Nvcc, &space.words(&format!("{args} --dryrun")));
    let text = outcome.stderr_text();
    let is_command = |line: &&str| {
        let Some(body) = line.strip_prefix("#$ ") else {
            return false;
        };
        let name = body.split('=').next().unwrap_or_default();
        let assigns =
            body.contains('=') && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        !(assigns || body.starts_with("rm "))
    };
    text.lines().filter(is_command).count()
}

/// The functions of a program's `.init_array`, by readelf and nm.
pub fn constructors(program: &Path) -> Vec<String> {
    let sections = output(Path::new("readelf"), &["-SW"], program);
    let line = sections
        .lines()
        .find(|line| line.contains(" .init_array "))
        .expect("an .init_array");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| *word == ".init_array")
        .expect("its name");
    let number = |word: &str| u64::from_str_radix(word, 16).expect("a hexadecimal number");
    let (from, size) = (number(words[at + 2]), number(words[at + 4]));
    let symbols = output(Path::new("nm"), &[], program);
    let name = |address: u64| {
        let found = symbols.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (value, kind, name) = (words.next()?, words.next()?, words.next()?);
            let is = "tTwW".contains(kind) && u64::from_str_radix(value, 16) == Ok(address);
            is.then(|| name.to_owned())
        });
        found.unwrap_or_else(|| format!("{address:#x}"))
    };
    let relocations = output(Path::new("readelf"), &["-rW"], program);
    let mut found: Vec<(u64, String)> = relocations
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let offset = u64::from_str_radix(words.first()?, 16).ok()?;
            let addend = u64::from_str_radix(words.get(3)?, 16).ok()?;
            (from..from + size)
                .contains(&offset)
                .then(|| (offset, name(addend)))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}
