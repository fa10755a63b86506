//! The words that the host compiler gets, also those in options files that only it reads (`-Xcompiler @FILE`, clang's
//! `--config FILE`). They count as if they were typed.

use std::path::Path;

use super::Invocation;
use crate::host_options::host_side_file;

/// Options files may include each other, and a file may name itself.
const MOST_FILES: usize = 64;

/// The reason to bypass a call with more options files, or with one that is no text.
const NOT_READ: &str = "an options file of the host compiler that is not understood";

/// The reason to bypass a call where the shell changes the name of one.
const NAMED_BY_SHELL: &str = "an options file of the host compiler whose name the shell changes";

impl Invocation {
    /// Notes what `words` mean, which are on nvcc's command line, and the words in the options files that they name.
    pub(super) fn note_host_words(
        &mut self,
        words: &[String],
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) {
        let mut files = self.note_words(words, None);
        self.plain = self.plain.or(self.hidden_plain.take());
        if self.quoted_host_words().any(the_shell_names_a_file) {
            self.plain = self.plain.or(Some(NAMED_BY_SHELL));
        }
        while let Some(file) = files.pop() {
            if self.host_options_files.contains(&file) {
                continue;
            }
            // Without the file, gcc takes the word itself for an argument.
            let text = read(&file);
            self.host_options_files.push(file.clone());
            match text.map(String::from_utf8) {
                Some(Ok(text)) if self.host_options_files.len() < MOST_FILES => {
                    let folder = Path::new(&file).parent();
                    files.extend(self.note_words(&split(&text), folder));
                }
                Some(_) => self.hidden_plain = Some(NOT_READ),
                None => {}
            }
        }
    }

    /// Notes what `words` mean. Returns the options files that they name; `folder` is that of the file with these words.
    fn note_words(&mut self, words: &[String], folder: Option<&Path>) -> Vec<String> {
        let mut files = Vec::new();
        let mut is_config = false;
        for word in words {
            let file = match std::mem::take(&mut is_config) {
                true => Some(word.as_str()),
                false => word
                    .strip_prefix('@')
                    .or_else(|| word.strip_prefix("--config=")),
            };
            files.extend(file.map(str::to_owned));
            // clang's configuration files name others from their own folder, option files from the working directory.
            let in_folder = file.zip(folder).map(|(file, folder)| folder.join(file));
            files.extend(in_folder.and_then(|path| path.to_str().map(str::to_owned)));
            is_config = word == "--config";
            let option = word.strip_prefix("-Xclang=").unwrap_or(word);
            if let Some(reason) = host_side_file(option) {
                self.hidden_plain = Some(reason);
            }
            self.debug |= word.starts_with("-g") && word != "-g0";
        }
        files
    }
}

/// Whether the shell, to which nvcc gives `word` as it is, may make another options file's name of it than what is between the
/// quotes around the word.
fn the_shell_names_a_file(word: &str) -> bool {
    const QUOTES: [char; 2] = ['"', '\''];
    let inner = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    let inner = QUOTES.into_iter().find_map(inner).unwrap_or(word);
    let changes = |c: char| QUOTES.contains(&c) || "\\$`*?[{~".contains(c);
    let bare = inner.replace([QUOTES[0], QUOTES[1], '\\'], "");
    let names =
        bare.starts_with(['@', '$', '`', '*', '?', '[', '{']) || bare.starts_with("--config");
    names && inner.contains(changes)
}

/// The words of an options file, as gcc and clang read it. A comment of a configuration file becomes words too: they may be
/// options without it.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // A line may continue.
            '\\' => {
                let next = chars.next().filter(|c| !matches!(c, '\n' | '\r'));
                word.get_or_insert_default().extend(next);
            }
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // gcc reads no further than a NUL, and clang does.
            c if quote.is_none() && (c.is_ascii_whitespace() || matches!(c, '\0' | '\x0b')) => {
                words.extend(word.take());
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Invocation {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let read = |name: &str| -> Option<Vec<u8>> {
            let text = match name {
                "quiet" => "-O1 -Wall",
                "loud" => "-O1\r\n\"-save-\"st\\ats",
                "outer" => "-Wall '@loud'",
                "itself" => "@itself @quiet",
                "d/base.cfg" => "# comment\n-Wall \\\n @next.cfg",
                "d/next.cfg" => "-Xclang -working-directory -Xclang /x",
                "behind-nul" => "-O1\0-save-stats",
                "debug" => "-ggdb",
                "no-text" => return Some(vec![0xff, 0xfe, b'-', 0]),
                _ => return None,
            };
            Some(text.as_bytes().to_vec())
        };
        Invocation::parse(&args, "", "", &read).expect("parses")
    }

    #[test]
    fn words_of_a_file_count_as_typed_ones() {
        for (words, plain) in [
            ("@quiet", None),
            ("@itself", None),
            ("@none", None),
            ("-O2,@loud", Some("host option -save-stats")),
            ("@outer", Some("host option -save-stats")),
            ("@behind-nul", Some("host option -save-stats")),
            ("@no-text", Some(NOT_READ)),
            ("-Xclang=-save-stats", Some("host option -save-stats")),
            (
                "--config,d/base.cfg",
                Some("host option -working-directory"),
            ),
            (
                "--config=d/base.cfg",
                Some("host option -working-directory"),
            ),
        ] {
            let invocation = parse(&format!("-c a.cu -Xcompiler {words}"));
            let found = invocation.plain.or(invocation.hidden_plain);
            assert_eq!(found, plain, "{words}");
        }
        let apart = parse("-c a.cu -Xcompiler --config -Xcompiler d/next.cfg");
        assert_eq!(apart.hidden_plain, Some("host option -working-directory"));
        assert!(parse("-c a.cu -Xcompiler @debug").debug);
        assert!(!parse("-c a.cu -Xcompiler @quiet").debug);
    }

    /// gcc reads what the shell makes of the name.
    #[test]
    fn a_name_that_the_shell_changes_is_left_to_nvcc() {
        for word in [
            "@qui\"et\"",
            "\"@\"quiet",
            "@qui\\et",
            "\\@quiet",
            "@$NAME",
            "$NAME",
            "\"$NAME\"",
            "`cat`",
            "@qu*",
            "\"@a,b\"",
            "--con\"fig=quiet\"",
            "--config=~/quiet",
        ] {
            let invocation = parse(&format!("-c a.cu -Xcompiler {word}"));
            assert_eq!(invocation.plain, Some(NAMED_BY_SHELL), "{word}");
        }
        for word in [
            "@quiet",
            "\"@quiet\"",
            "'@quiet'",
            "-DA=\"@b\"",
            "-DA=\\\"b\\\"",
        ] {
            let invocation = parse(&format!("-c a.cu -Xcompiler {word}"));
            assert_eq!(invocation.plain, None, "{word}");
        }
    }

    #[test]
    fn every_file_is_noted_once() {
        let invocation = parse("-c a.cu -Xcompiler @itself");
        assert_eq!(invocation.host_options_files, ["itself", "quiet"]);
    }
}
