//! Where the tokens of a preprocessed text stand: the line and the column of each, hashed for groups of files.
//!
//! Two texts may have the same tokens ([`crate::tokens`]) and have them in other lines. If a text asks for lines, the lines of
//! some of its files count ([`crate::queried_lines`]). To find these files takes longer than to hash the text, and is needed
//! only for an edited text whose tokens are known. So a result is stored with the layout of its whole text, and the files are
//! found when it is used.

use serde::{Deserialize, Serialize};

/// How many groups there are. Two files of one group cannot be told apart, which costs a hit in 256. A layout takes 2 KiB.
const GROUPS: usize = 256;
/// The group of the main file, which is edited most.
const MAIN: usize = 0;

/// A hash for each group: the first bytes of a BLAKE3, or zeros for a group without tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextLayout(Vec<[u8; 8]>);

impl TextLayout {
    /// The groups whose files differ in another text with the same tokens.
    pub fn differing(&self, other: &Self) -> Vec<usize> {
        let count = self.0.len().max(other.0.len());
        let differs = |group: &usize| self.0.get(*group) != other.0.get(*group);
        (0..count).filter(differs).collect()
    }
}

/// The group of a file in a text with that main file: the one that the first line names.
pub fn group_of(path: &[u8], main: &[u8]) -> usize {
    // It must be the same on every machine. FNV-1a, 32 bits.
    let hash = path.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    match path == main {
        true => MAIN,
        false => 1 + hash as usize % (GROUPS - 1),
    }
}

/// Makes the layout of a text while its lines arrive.
pub struct LayoutMaker {
    /// For each group: the number and the indentation of each line with tokens.
    groups: Vec<Vec<u8>>,
    main: Option<Vec<u8>>,
    path: Vec<u8>,
    group: usize,
    line: u64,
}

impl Default for LayoutMaker {
    fn default() -> Self {
        Self {
            groups: vec![Vec::new(); GROUPS],
            main: None,
            path: Vec::new(),
            group: MAIN,
            line: 1,
        }
    }
}

impl LayoutMaker {
    /// A line marker: the next line is line `number` of the file.
    pub fn enter(&mut self, path: &[u8], number: &[u8]) {
        let digit = |byte: &u8| u64::from(byte.wrapping_sub(b'0'));
        let number = number.iter();
        self.line = number.fold(0, |sum, byte| {
            sum.wrapping_mul(10).wrapping_add(digit(byte))
        });
        if self.main.is_none() || self.path != path {
            self.path.clear();
            self.path.extend_from_slice(path);
            let main = self.main.get_or_insert_with(|| path.to_vec());
            self.group = group_of(path, main);
        }
    }

    /// A line that begins with this indentation, and that goes on for `more` lines in a raw string.
    pub fn take(&mut self, indentation: &[u8], more: usize) {
        let group = &mut self.groups[self.group];
        let mut rest = self.line;
        while rest > 0x7f {
            group.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        group.push(rest as u8);
        group.extend_from_slice(indentation);
        group.push(b'\n');
        self.skip(1 + more);
    }

    /// Lines without tokens.
    pub fn skip(&mut self, lines: usize) {
        self.line = self.line.wrapping_add(lines as u64);
    }

    /// The layout, once the whole text was taken.
    pub fn finish(self) -> TextLayout {
        let hash = |lines: &Vec<u8>| {
            let mut first = [0; 8];
            if !lines.is_empty() {
                first.copy_from_slice(&blake3::hash(lines).as_bytes()[..8]);
            }
            first
        };
        TextLayout(self.groups.iter().map(hash).collect())
    }
}
