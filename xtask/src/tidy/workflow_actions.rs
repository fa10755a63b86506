//! Whether workflows name other people's actions by the hash of a commit: a tag can be moved to other code.

use super::complaint::{Complaint, Source};

/// How many hexadecimal digits the full name of a commit has.
const DIGITS: usize = 40;

/// Checks that each action of others, in a workflow or in a page, is named by a commit.
pub fn actions_are_commits(source: &Source) -> Vec<Complaint> {
    let is_workflow = [".yml", ".yaml", ".md"]
        .iter()
        .any(|ending| source.path.ends_with(ending));
    if !is_workflow {
        return Vec::new();
    }
    let numbered = source.text.lines().enumerate();
    numbered
        .filter(|(_, line)| action(line).is_some_and(|action| !is_fixed(action)))
        .map(|(index, _)| {
            Complaint::at(
                index + 1,
                "name the action by the full hash of a commit, with the version in a comment: its owner can move a tag",
            )
        })
        .collect()
}

/// What a line of a workflow uses.
fn action(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("- ").unwrap_or(line);
    line.strip_prefix("uses:")?.split_whitespace().next()
}

/// Whether it stays what it is, or is this project's own: `./FOLDER`, `OWNER/warpcc`.
fn is_fixed(action: &str) -> bool {
    if action.starts_with("./") || action.starts_with("OWNER/") {
        return true;
    }
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    commit.len() == DIGITS && commit.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_no_commit() {
        let text = "steps:\n  - uses: a/b@v4\n  - uses: a/b@0057852bfaa89a56745cba8c7296529d2fc39830 # v4\n    \
                    uses: a/b@0057852b\n  - uses: a/b\n  - uses: ./here\n  - uses: OWNER/warpcc@TAG\n";
        let lines = |path| {
            let source = Source {
                path,
                bytes: text.as_bytes(),
                text,
            };
            let found = actions_are_commits(&source);
            found.iter().map(|found| found.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("action.yml"), [2, 4, 5]);
        assert_eq!(lines("docs/a.md"), [2, 4, 5]);
        assert_eq!(lines("a.rs"), [0; 0]);
    }
}
