//! The commands of a page, by the section that they stand in.

use anyhow::{Result, bail};

/// Sections with their blocks of shell commands.
pub struct InstallPage {
    sections: Vec<(String, Vec<String>)>,
}

impl InstallPage {
    pub fn parse(text: &str) -> Self {
        let mut sections: Vec<(String, Vec<String>)> = Vec::new();
        let mut block: Option<String> = None;
        for line in text.lines() {
            match (&mut block, line) {
                (Some(commands), "```") => {
                    if let Some((_, blocks)) = sections.last_mut() {
                        blocks.push(std::mem::take(commands));
                    }
                    block = None;
                }
                (Some(commands), line) => *commands += &format!("{line}\n"),
                (None, "```sh") => block = Some(String::new()),
                (None, line) => {
                    if let Some(title) = line.strip_prefix("## ") {
                        sections.push((title.to_owned(), Vec::new()));
                    }
                }
            }
        }
        Self { sections }
    }

    /// The blocks of a section.
    pub fn blocks(&self, section: &str) -> Result<&[String]> {
        match self.sections.iter().find(|(title, _)| title == section) {
            Some((_, blocks)) => Ok(blocks),
            None => bail!("the page has no section `{section}`"),
        }
    }

    /// Every block with its section.
    #[cfg(test)]
    pub fn all_blocks(&self) -> impl Iterator<Item = (&str, &str)> {
        let sections = self.sections.iter();
        sections.flat_map(|(title, blocks)| blocks.iter().map(|b| (title.as_str(), b.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_shell_and_no_others() -> Result<()> {
        let page = InstallPage::parse(
            "# T\n## A\ntext\n```sh\none\ntwo\n```\n```text\nno\n```\n```sh\nthree\n```\n## B\n",
        );
        assert_eq!(page.blocks("A")?, ["one\ntwo\n", "three\n"]);
        assert!(page.blocks("B")?.is_empty());
        assert!(page.blocks("C").is_err());
        assert_eq!(page.all_blocks().count(), 2);
        Ok(())
    }
}
