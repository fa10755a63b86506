//! Real files, edited in places where host code may stand.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::source::{Base, Edit, TestSource};
use crate::soak::random::Random;

/// A line of the list.
pub struct Listed {
    path: PathBuf,
    options: Vec<String>,
}

/// Reads the list of files.
pub fn read_list(list: &Path) -> Result<Vec<Listed>> {
    let text = fs::read_to_string(list).with_context(|| list.display().to_string())?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |line: &str| {
        let mut words = shlex::split(line).context("quotes")?.into_iter();
        Ok(Listed {
            path: PathBuf::from(words.next().context("no path")?),
            options: words.collect(),
        })
    };
    lines.map(read).collect()
}

/// The file of a seed.
pub fn open(listed: &[Listed], seed: u64) -> Result<Base> {
    let at = usize::try_from(seed)? % listed.len().max(1);
    let listed = listed.get(at).context("an empty list")?;
    let text =
        fs::read_to_string(&listed.path).with_context(|| listed.path.display().to_string())?;
    let mut options = listed.options.clone();
    if let Some(folder) = listed.path.parent() {
        options.push(format!("-I{}", folder.display()));
    }
    let stem = listed.path.file_stem().unwrap_or_default();
    Ok(Base {
        name: format!("{}-{seed}", stem.to_string_lossy()),
        source: Box::new(RealFile { text, last: 0 }),
        options,
    })
}

struct RealFile {
    text: String,
    last: usize,
}

impl RealFile {
    /// Puts `added` behind a line that ends a statement or a block.
    fn behind_a_line(&mut self, random: &mut Random, added: &str) {
        let ends: Vec<usize> = self
            .text
            .match_indices('\n')
            .map(|(at, _)| at)
            .filter(|at| self.text[..*at].ends_with([';', '}']))
            .collect();
        if !ends.is_empty() {
            self.text.insert_str(ends[random.below(ends.len())], added);
        }
    }
}

impl TestSource for RealFile {
    fn text(&self) -> String {
        self.text.clone()
    }

    fn edit(&mut self, random: &mut Random) -> Edit {
        self.last += 1;
        let (last, number) = (self.last, random.below(1000));
        let function = format!("int audit_{last}(int x) {{ return x * {number}; }}");
        let name = match random.below(7) {
            0 => {
                self.text += &format!("\n{function}\n");
                "host code added at the end"
            }
            1 => {
                self.text += &format!(
                    "\ntemplate <class T> T audit_t{last}(T x) {{ return x + {number}; }}\nlong use_{last}() {{ auto f = [](int y) {{ return audit_t{last}(y); }}; return f({number}); }}\n"
                );
                "host template instance"
            }
            2 => {
                self.text.insert_str(0, &format!("{function} "));
                "host code added on a line"
            }
            3 => {
                self.text.insert_str(0, &format!("// {number}\n"));
                "comment line"
            }
            4 => {
                self.behind_a_line(random, &format!(" /* {number} */"));
                "comment on a line"
            }
            5 => {
                self.behind_a_line(random, &format!("\n// {number}"));
                "comment line"
            }
            _ => {
                self.text += &format!(
                    "\nstatic int audit_v{last} = {number}; int *at_{last}() {{ return &audit_v{last}; }}\n"
                );
                "host code added at the end"
            }
        };
        Edit { name }
    }
}
