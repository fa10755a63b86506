//! Parses a page of Markdown as far as checks need it: headings, links, code in a line, commands to type.

/// One thing on a line, which is numbered from 1.
#[derive(Debug, PartialEq)]
pub struct At<T> {
    pub line: usize,
    pub what: T,
}

/// The parts of a page that rules check.
#[derive(Debug, Default)]
pub struct Page {
    /// Anchors of headings, as they come after `#` in links.
    pub anchors: Vec<String>,
    /// Targets of links and pictures, without `<` and titles.
    pub links: Vec<At<String>>,
    /// Code within a line of text.
    pub code: Vec<At<String>>,
    /// Lines for a shell: all lines of `sh` blocks, and in `console` blocks those after `$ `.
    pub shell: Vec<At<String>>,
    /// Keys in `toml` blocks that have `_` in their names.
    pub keys: Vec<At<String>>,
    /// Lines of `toml` blocks, without comments.
    pub settings: Vec<At<String>>,
}

impl Page {
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut fence: Option<String> = None;
        let mut continued: Option<At<String>> = None;
        for (number, line) in text.lines().enumerate() {
            let line_number = number + 1;
            if let Some(language) = line.trim_start().strip_prefix("```") {
                fence = match fence {
                    Some(_) => None,
                    None => Some(language.trim().to_owned()),
                };
                continue;
            }
            match fence.as_deref() {
                None => page.text_line(line_number, line),
                Some("sh") => page.shell_line(line_number, line, &mut continued),
                Some("toml") => page.settings_line(line_number, line),
                Some("console") => {
                    if let Some(typed) = line.strip_prefix("$ ") {
                        page.shell_line(line_number, typed, &mut continued);
                    } else if continued.is_some() {
                        page.shell_line(line_number, line, &mut continued);
                    }
                }
                Some(_) => {}
            }
        }
        page
    }

    fn text_line(&mut self, line: usize, text: &str) {
        let (prose, spans) = without_code(text);
        self.code
            .extend(spans.into_iter().map(|what| At { line, what }));
        if let Some(heading) = text
            .strip_prefix('#')
            .map(|rest| rest.trim_start_matches('#'))
            && heading.starts_with(' ')
        {
            self.add_anchor(heading.trim());
        }
        let mut targets: Vec<&str> = Vec::new();
        for (at, _) in prose.match_indices("](") {
            let rest = &prose[at + 2..];
            targets.extend(rest.split_once(')').map(|(target, _)| target));
        }
        if prose.starts_with('[') {
            targets.extend(prose.split_once("]: ").map(|(_, target)| target));
        }
        for target in targets {
            let target = target.split_whitespace().next().unwrap_or_default();
            let what = target.trim_matches(['<', '>']).to_owned();
            self.links.push(At { line, what });
        }
    }

    /// `max_size = "5G"`, `{ url = "…", read_only = true }`.
    fn settings_line(&mut self, line: usize, text: &str) {
        let setting = text.split('#').next().unwrap_or_default();
        self.settings.push(At {
            line,
            what: setting.to_owned(),
        });
        let before_values = setting.split(" = ");
        let names = before_values.filter_map(|part| {
            part.rsplit(|c: char| !(c.is_ascii_lowercase() || c == '_'))
                .next()
        });
        let mut names: Vec<&str> = names.collect();
        // After the last `=` is a value.
        names.pop();
        let of_two_words = names.into_iter().filter(|name| name.contains('_'));
        self.keys.extend(of_two_words.map(|name| At {
            line,
            what: name.to_owned(),
        }));
    }

    /// A backslash at the end of a line makes one command of two lines.
    fn shell_line(&mut self, line: usize, text: &str, continued: &mut Option<At<String>>) {
        let mut command = continued.take().unwrap_or(At {
            line,
            what: String::new(),
        });
        if let Some(begin) = text.strip_suffix('\\') {
            command.what.push_str(begin);
            *continued = Some(command);
        } else {
            command.what.push_str(text);
            self.shell.push(command);
        }
    }

    /// Adds an anchor as GitHub names headings; the second one of the same name ends in `-1`.
    fn add_anchor(&mut self, heading: &str) {
        let mut text = String::new();
        let mut rest = heading;
        // Only the text of a link counts.
        while let Some((before, after)) = rest.split_once("](") {
            text.push_str(before);
            rest = after.split_once(')').map_or("", |(_, after)| after);
        }
        text.push_str(rest);
        let name: String = text
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let same = self
            .anchors
            .iter()
            .filter(|known| {
                known
                    .strip_prefix(name.as_str())
                    .is_some_and(|end| end.is_empty() || is_count(end))
            })
            .count();
        self.anchors.push(match same {
            0 => name,
            n => format!("{name}-{n}"),
        });
    }
}

fn is_count(end: &str) -> bool {
    end.strip_prefix('-')
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A line without its code, and the code. A span ends at as many backquotes as it began with.
fn without_code(line: &str) -> (String, Vec<String>) {
    let (mut prose, mut spans) = (String::new(), Vec::new());
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let quotes = rest[start..].bytes().take_while(|b| *b == b'`').count();
        let inside = &rest[start + quotes..];
        let Some(end) = inside.find(&rest[start..start + quotes]) else {
            break;
        };
        prose.push_str(&rest[..start]);
        // Keeps the words before and after the code apart.
        prose.push('`');
        spans.push(inside[..end].trim().to_owned());
        rest = &inside[end + quotes..];
    }
    prose.push_str(rest);
    (prose, spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_named_as_github_names_them() {
        let page =
            Page::parse("# The key\n## `-o`: What, and why?\n## The key\n```\n# no\n```\n#no\n");
        assert_eq!(page.anchors, ["the-key", "-o-what-and-why", "the-key-1"]);
    }

    #[test]
    fn links_are_found_and_code_is_no_link() {
        let page = Page::parse("See [a](b.md#c \"t\") and ![p](d.svg), `[x](y)`.\n[z]: e.md\n");
        let links: Vec<_> = page.links.iter().map(|l| (l.line, &*l.what)).collect();
        assert_eq!(links, [(1, "b.md#c"), (1, "d.svg"), (2, "e.md")]);
        assert_eq!(page.code[0].what, "[x](y)");
    }

    #[test]
    fn commands_are_those_that_are_typed() {
        let page = Page::parse(
            "```sh\na \\\n  b\n```\n```console\n$ c\noutput\n```\n```rust\nd\n```\n`e f`\n",
        );
        let shell: Vec<_> = page.shell.iter().map(|l| (l.line, &*l.what)).collect();
        assert_eq!(shell, [(2, "a   b"), (6, "c")]);
        assert_eq!(page.code[0].what, "e f");
    }
}
