//! Checks that commands in a text are in docs/cli.md, with their options.

use std::collections::BTreeMap;

/// The commands of warpcc, as docs/cli.md has them: `warpcc fatbin list` is `fatbin list`.
#[derive(Debug, Default)]
pub struct DocumentedCommands(BTreeMap<String, Command>);

#[derive(Debug, Default)]
struct Command {
    /// The options, and whether the word after each one is its value.
    options: BTreeMap<String, bool>,
    /// Whether the words after the command are another program's.
    takes_a_command: bool,
}

impl DocumentedCommands {
    /// Parses the page that `cargo xtask docs` writes.
    pub fn parse(page: &str) -> Self {
        let mut all = BTreeMap::new();
        let mut current = String::new();
        for line in page.lines() {
            if let Some((marks, name)) = line.split_once(' ')
                && marks.len() > 1
                && marks.bytes().all(|mark| mark == b'#')
                && let Some(name) = name.strip_prefix("warpcc")
            {
                name.trim().clone_into(&mut current);
                all.insert(current.clone(), Command::default());
            } else if let Some(command) = all.get_mut(&current) {
                command.read_help(line);
            }
        }
        Self(all)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Complaints about the commands of warpcc in this line of a shell.
    pub fn complaints(&self, line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or_default();
        line.split(['|', ';', '(', ')'])
            .flat_map(|part| part.split("&&"))
            .filter_map(|part| {
                let mut words = part
                    .split_whitespace()
                    .skip_while(|word| is_assignment(word));
                (words.next() == Some("warpcc")).then(|| self.wrong(&words.collect::<Vec<_>>()))
            })
            .flatten()
            .collect()
    }

    fn wrong(&self, words: &[&str]) -> Option<String> {
        let mut name = String::new();
        let mut words = words;
        while let [first, rest @ ..] = words
            && is_plain(first)
        {
            let longer = format!("{name} {first}").trim().to_owned();
            if !self.0.contains_key(&longer) {
                break;
            }
            name = longer;
            words = rest;
        }
        let command = self.0.get(&name)?;
        let has_commands = self
            .0
            .keys()
            .any(|other| name.is_empty() || other.starts_with(&format!("{name} ")));
        if has_commands
            && let Some(word) = words.first().filter(|word| is_plain(word))
            && !(name.is_empty() && is_compiler(word))
        {
            return Some(format!(
                "`warpcc {name}{}{word}` is no command of docs/cli.md",
                if name.is_empty() { "" } else { " " }
            ));
        }
        if has_commands && !words.first().is_some_and(|word| word.starts_with('-')) {
            return None;
        }
        command.wrong_option(&name, words)
    }
}

impl Command {
    /// Reads a line of `--help`: `  -o, --output <FILE>  …`, or the usage.
    fn read_help(&mut self, line: &str) {
        if line.starts_with("Usage:") && line.ends_with("<ARGS>...") {
            self.takes_a_command = true;
        }
        let described = line.trim_start();
        if !line.starts_with("  ") || !described.starts_with('-') {
            return;
        }
        // Two spaces end the names; a description may be on the next line.
        let names = described.split("  ").next().unwrap_or_default();
        let has_value = names.contains('<');
        for name in names.split([' ', ',']).filter(|name| name.starts_with('-')) {
            self.options.insert(name.to_owned(), has_value);
        }
    }

    fn wrong_option(&self, name: &str, words: &[&str]) -> Option<String> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if *word == "--" || *word == ">" {
                return None;
            }
            if !word.starts_with('-') {
                if self.takes_a_command {
                    return None;
                }
                continue;
            }
            let (option, value) = match word.split_once('=') {
                Some((option, _)) => (option, true),
                None => (*word, false),
            };
            match self.options.get(option) {
                Some(takes_one) if *takes_one && !value => {
                    words.next();
                }
                Some(_) => {}
                // `-DN=4`, `-j4`: the value without a space.
                None if !option.starts_with("--")
                    && option
                        .get(..2)
                        .is_some_and(|short| self.options.get(short) == Some(&true)) => {}
                None => {
                    return Some(format!(
                        "`warpcc {name}` has no option `{option}` in docs/cli.md"
                    ));
                }
            }
        }
        None
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase())
}

/// Whether a word is taken for a compiler, such as `nvcc` and `gcc`. The launcher takes any program, but names like `g++`
/// have other letters than commands, and are not checked.
fn is_compiler(word: &str) -> bool {
    word.ends_with("cc")
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> DocumentedCommands {
        DocumentedCommands::parse(
            "# Commands\n## warpcc\nUsage: warpcc <COMMAND>\nOptions:\n  -h, --help  Help\n\
             ## warpcc run\nUsage: warpcc run [OPTIONS] -- <ARGS>...\n      --graph <FILE>  Draw\n\
             \x20 -j, --jobs <N>  Many\n## warpcc cache\n### warpcc cache dir\nUsage: warpcc cache dir\n\
             ## warpcc list\nUsage: warpcc list <FILE>...\n      --json  JSON\n",
        )
    }

    #[test]
    fn right_commands_are_right() {
        for line in [
            "warpcc run --graph a.svg -j4 -- -c --nonsense x.cu",
            "warpcc run --graph=a.svg x.cu --nonsense",
            "warpcc nvcc --nonsense",
            "warpcc g++ --nonsense",
            "warpcc cache dir | size",
            "$(warpcc cache dir)/never-upload",
            "A=1 warpcc list --json x # --nonsense",
            "cargo build -p warpcc --nonsense",
            "warpcc list",
            "warpcc …",
            "warpcc --help",
        ] {
            assert_eq!(commands().complaints(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn wrong_commands_are_named() {
        for (line, what) in [
            ("warpcc run --graf a.svg -- x.cu", "--graf"),
            ("warpcc list x --jsn", "--jsn"),
            ("A=1 warpcc lst x", "warpcc lst"),
            ("warpcc cache dri", "warpcc cache dri"),
            ("echo; warpcc cache dir --no", "--no"),
            ("warpcc --helo", "--helo"),
        ] {
            let found = commands().complaints(line);
            assert!(
                found.len() == 1 && found[0].contains(what),
                "{line}: {found:?}"
            );
        }
    }
}
