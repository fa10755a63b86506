//! Finds the kernel that a message of `ptxas` is about, by the line or the name in the message.

use serde::Serialize;
use warpcc_fatbin::ptx_kernels;

/// The most messages that are kept of one text, because an invalid one can have thousands.
const MOST: usize = 20;

/// One line of what an assembler says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// In its words.
    pub text: String,
    /// The line of the PTX, from 1.
    pub line: Option<usize>,
    /// The kernel, as the PTX names it.
    pub kernel: Option<String>,
}

/// The messages in an assembler's output about `ptx`, at most twenty.
pub fn complaints(said: &str, ptx: &[u8]) -> Vec<Complaint> {
    let kernels = kernels_by_line(ptx);
    let lines = said.lines().map(str::trim);
    let told = lines.filter(|line| is_complaint(line)).take(MOST);
    let mut found: Vec<Complaint> = told
        .map(|text| {
            let line = number_after(text, "line ");
            let by_line = || line.and_then(|line| kernel_of_line(&kernels, ptx, line));
            let kernel = named(text, &kernels).or_else(by_line);
            Complaint {
                text: text.to_owned(),
                line,
                kernel: kernel.map(str::to_owned),
            }
        })
        .collect();
    if found.is_empty() {
        found.push(Complaint {
            text: said.trim().lines().next().unwrap_or_default().to_owned(),
            line: None,
            kernel: None,
        });
    }
    found
}

/// Warnings and the last line, which only says that there were errors, are left out.
fn is_complaint(line: &str) -> bool {
    let text = line.to_ascii_lowercase();
    (text.contains("error") || text.contains("fatal")) && !text.contains("aborted due to errors")
}

fn number_after(text: &str, word: &str) -> Option<usize> {
    let (_, rest) = text.split_once(word)?;
    let digits: &str = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The kernels with their lines, counted in one pass: a text may have thousands in megabytes.
fn kernels_by_line(ptx: &[u8]) -> Vec<(usize, &str)> {
    let (mut line, mut counted) = (1, 0);
    let by_line = |(at, name): (usize, _)| {
        let between = ptx.get(counted..at).unwrap_or_default();
        line += between.iter().filter(|b| **b == b'\n').count();
        counted = at;
        (line, name)
    };
    ptx_kernels(ptx).map(by_line).collect()
}

/// The last kernel that begins at or before the line, unless its body has ended before.
fn kernel_of_line<'k>(kernels: &[(usize, &'k str)], ptx: &[u8], line: usize) -> Option<&'k str> {
    let (from, name) = kernels.iter().rev().find(|(from, _)| *from <= line)?;
    let body = ptx.split(|b| *b == b'\n').take(line.saturating_sub(1));
    // In the PTX of nvcc and clang, a body ends with a bracket at the start of a line.
    let ended = body.skip(from - 1).any(|line| line.starts_with(b"}"));
    (!ended).then_some(name)
}

/// A kernel whose whole name is in the text.
fn named<'k>(text: &str, kernels: &[(usize, &'k str)]) -> Option<&'k str> {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '%')));
    words.find_map(|word| {
        let known = kernels.iter().find(|(_, name)| *name == word);
        known.map(|(_, name)| *name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &[u8] = b".version 8.0\n.target sm_80\n\n.visible .entry one(\n)\n{\nret;\n}\n\
        .func f()\n{\nbad;\n}\n.visible .entry two(\n)\n{\nbad;\nret;\n}\n";

    fn kernel(text: &str) -> Option<String> {
        complaints(text, PTX)[0].kernel.clone()
    }

    #[test]
    fn a_line_or_a_name_tells_the_kernel() {
        let at = |line| kernel(&format!("ptxas PTX, line {line}; error   : Unknown symbol"));
        assert_eq!(at(7).as_deref(), Some("one"));
        assert_eq!(at(16).as_deref(), Some("two"));
        assert_eq!(at(11), None, "in a function of no kernel");
        assert_eq!(at(2), None);
        assert_eq!(
            kernel("ptxas error   : Entry function 'two' uses too much shared data").as_deref(),
            Some("two")
        );
    }

    #[test]
    fn only_complaints_count_and_there_is_always_one() {
        let said = "ptxas PTX, line 7; warning : x\nptxas PTX, line 16; error : y\n\
                    ptxas fatal   : Ptx assembly aborted due to errors\n";
        let found = complaints(said, PTX);
        assert_eq!((found.len(), found[0].line), (1, Some(16)));
        let odd = complaints("something else\n", PTX);
        assert_eq!((odd.len(), odd[0].text.as_str()), (1, "something else"));
        assert_eq!(complaints(&"error : x\n".repeat(100), b"").len(), MOST);
        assert_eq!(
            complaints("error line 99999999999999999999999", b"")[0].line,
            None
        );
    }
}
