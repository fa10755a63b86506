//! Finds the kernels and the producer of a PTX text. It knows nothing else of the language.

use memchr::memmem;

/// The names of the kernels, in order.
pub fn entries(text: &[u8]) -> impl Iterator<Item = &str> {
    ptx_kernels(text).map(|(_, name)| name)
}

/// The kernels of a PTX text, in order: the place of their `.entry`, in bytes, and their names.
pub fn ptx_kernels(text: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    memmem::find_iter(text, b".entry").filter_map(move |at| {
        // `.visible .entry name(`: a directive follows others on its line, never a word. The search goes back no
        // further than directives can reach, because a text may be one line of megabytes.
        let line = text[at.saturating_sub(LONGEST_DIRECTIVES)..at]
            .rsplit(|b| *b == b'\n')
            .next()
            .unwrap_or_default();
        let directives = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .all(|word| word.starts_with(b"."));
        let rest = text[at + b".entry".len()..].trim_ascii_start();
        let blank = text
            .get(at + b".entry".len())
            .is_some_and(u8::is_ascii_whitespace);
        let end = rest.iter().position(|b| !is_name(*b))?;
        let name = std::str::from_utf8(&rest[..end]).ok()?;
        (directives && blank && !name.is_empty()).then_some((at, name))
    })
}

/// The most bytes that can be before `.entry` on its line: `.visible .weak .extern`, and some more.
const LONGEST_DIRECTIVES: usize = 256;

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

/// The toolkit in the comment at the top of what nvcc makes: `13.5.37`.
pub fn toolkit(text: &[u8]) -> Option<String> {
    // The comment is within the first lines; kernels may follow for megabytes.
    crate::cubin::release(&text[..text.len().min(1024)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_directive() {
        let text = b"// Cuda compilation tools, release 13.5, V13.5.37\n.version 9.5\n\
            .visible .entry _Z1av(\n\t.param .u64 x\n)\n.entry\n b$1 ()\n// see .entry c(\n\
            .weak .entry d(.entryway";
        assert_eq!(entries(text).collect::<Vec<_>>(), ["_Z1av", "b$1", "d"]);
        assert_eq!(toolkit(text).as_deref(), Some("13.5.37"));
    }
}
