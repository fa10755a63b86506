//! Collects facts from earlier files, for the explanation of later ones.

/// A source of the user's.
#[derive(Debug, Clone)]
pub struct UserSource {
    /// As the commands spell it.
    pub path: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// Contents of earlier files, for the explanation of later ones.
#[derive(Debug, Default)]
pub struct EarlierFiles {
    /// The user's sources.
    pub sources: Vec<UserSource>,
    /// The module ids, as they were made up.
    pub module_ids: Vec<ModuleId>,
}

impl EarlierFiles {
    /// The source that the commands spell so.
    pub fn source(&self, path: &str) -> Option<&UserSource> {
        self.sources.iter().find(|source| source.path == path)
    }
}

/// A module id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleId {
    /// The whole of it.
    pub text: String,
    /// Its end, after the file's name: what a symbol that others see is called, or its checksum.
    pub last: String,
}

impl ModuleId {
    /// The symbol that the last part comes from, of `symbols`.
    pub fn named_after<'s>(&self, symbols: impl Iterator<Item = &'s str>) -> Option<&'s str> {
        let mut symbols = symbols;
        symbols.find(|symbol| {
            *symbol == self.last
                || is_checksum(&self.last)
                    && format!("{:08x}", crc32fast::hash(symbol.as_bytes())) == self.last
        })
    }
}

/// Eight hexadecimal digits.
pub fn is_checksum(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
