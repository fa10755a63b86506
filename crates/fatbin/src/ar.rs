//! The members of a static library, in the form that `ar` of GNU and BSD write.
//!
//! This is a reader of our own, because rewriting a library needs the places of headers, and because the table of long
//! names must not be searched to its end for each member.

use std::ops::Range;

use crate::bytes::slice;
use crate::work;

/// The first bytes of a library.
const MAGIC: &[u8] = b"!<arch>\n";
/// Bytes of a member's header.
const HEADER: usize = 60;
/// The place of the size in a header, in decimal digits.
pub(crate) const SIZE: Range<usize> = 48..58;
/// The last bytes of a header.
const END: &[u8] = b"`\n";
/// The longest name that is read, in bytes, which is the limit of file systems. Every container and problem has a copy
/// of the name.
const LONGEST_NAME: usize = 255;

/// What a member is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A file.
    File,
    /// The table of symbols, with places of four bytes.
    Symbols,
    /// The same with eight bytes.
    WideSymbols,
    /// The table of symbols as BSD and macOS write it.
    BsdSymbols,
    /// The names that are too long for a header.
    Names,
}

/// A member of a library.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    /// What it is for.
    pub(crate) used: Use,
    /// Its name, for people.
    pub(crate) name: String,
    /// Where its header begins.
    pub(crate) header: usize,
    /// Where its header, and a name behind it, ends.
    pub(crate) data_at: usize,
    /// Its content.
    pub(crate) data: &'a [u8],
    /// The length that its header states: the content, and a name in front of it.
    pub(crate) stated: usize,
}

/// The members in order; after an error there are no more.
pub(crate) fn members(file: &[u8]) -> Result<Members<'_>, String> {
    if !file.starts_with(MAGIC) {
        return Err("not a static library with its members in it".to_owned());
    }
    Ok(Members {
        file,
        at: MAGIC.len(),
        names: &[],
    })
}

/// See [`members`].
pub(crate) struct Members<'a> {
    file: &'a [u8],
    at: usize,
    names: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.file.len() {
            return None;
        }
        let at = self.at;
        let read = self.read(at);
        match &read {
            Ok(member) => {
                let end = at + HEADER + member.stated;
                self.at = end.next_multiple_of(2);
                if member.used == Use::Names {
                    self.names = member.data;
                }
            }
            Err(_) => self.at = self.file.len(),
        }
        Some(read)
    }
}

impl<'a> Members<'a> {
    fn read(&self, at: usize) -> Result<Member<'a>, String> {
        let wrong = |what: &str| format!("the member at {at:#x} of the library {what}");
        let header = self.file.get(at..at + HEADER);
        let header = header.ok_or_else(|| wrong("has no whole header"))?;
        if !header.ends_with(END) {
            return Err(wrong("has a header that does not end as one"));
        }
        let stated = number(&header[SIZE]).ok_or_else(|| wrong("states no size"))?;
        let from = at + HEADER;
        let data = slice(self.file, from as u64, stated as u64);
        let data = data.ok_or_else(|| wrong("is longer than the file"))?;
        let short = header[..16].trim_ascii_end();
        let mut member = Member {
            used: Use::File,
            name: String::new(),
            header: at,
            data_at: from,
            data,
            stated,
        };
        let name: &[u8] = match short {
            b"/" => {
                member.used = Use::Symbols;
                b""
            }
            b"/SYM64/" => {
                member.used = Use::WideSymbols;
                b""
            }
            b"//" => {
                member.used = Use::Names;
                b""
            }
            [b'/', digits @ ..] => {
                let place = number(digits).ok_or_else(|| wrong("has no name"))?;
                let rest = self.names.get(place..).unwrap_or_default();
                up_to(rest, |b| matches!(b, b'\n' | 0)).trim_ascii_end()
            }
            [b'#', b'1', b'/', digits @ ..] => {
                let length = number(digits).filter(|length| *length <= data.len());
                let length = length.ok_or_else(|| wrong("has no name"))?;
                let (name, rest) = data.split_at(length);
                member.data = rest;
                member.data_at += length;
                up_to(name, |b| b == 0)
            }
            other => other,
        };
        let name = name.strip_suffix(b"/").unwrap_or(name);
        if name.starts_with(b"__.SYMDEF") {
            member.used = Use::BsdSymbols;
        }
        member.name = String::from_utf8_lossy(name).into_owned();
        Ok(member)
    }
}

/// The start of `bytes` up to a byte that ends a name, but no longer than a name may be.
fn up_to(bytes: &[u8], ends: impl Fn(u8) -> bool) -> &[u8] {
    let near = &bytes[..bytes.len().min(LONGEST_NAME)];
    work::count(near.len());
    let end = near.iter().position(|b| ends(*b)).unwrap_or(near.len());
    &near[..end]
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Use, members};

    fn member(name: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = format!("{name:<16}{:<32}{:<10}`\n", "", data.len()).into_bytes();
        bytes.extend(data);
        if !data.len().is_multiple_of(2) {
            bytes.push(b'\n');
        }
        bytes
    }

    #[test]
    fn names_of_every_form_are_read() {
        let names = b"a_name_of_more_than_sixteen.o/\nsecond_long_name_of_a_member.o/\n";
        let file = [
            b"!<arch>\n".to_vec(),
            member("/", b"\0\0\0\0"),
            member("//", names),
            member("/0", b"one"),
            member("/31", b"two!"),
            member("short.o/", b""),
            member("#1/8", b"bsd.o\0\0\0content"),
        ]
        .concat();
        let all: Vec<_> = members(&file).unwrap().map(Result::unwrap).collect();
        let said: Vec<_> = all
            .iter()
            .map(|m| (m.used, m.name.as_str(), m.data))
            .collect();
        assert_eq!(said[0].0, Use::Symbols);
        assert_eq!(said[1].0, Use::Names);
        assert_eq!(said[2].1, "a_name_of_more_than_sixteen.o");
        assert_eq!(said[3].1, "second_long_name_of_a_member.o");
        assert_eq!((said[4].1, said[4].2), ("short.o", &b""[..]));
        assert_eq!((said[5].1, said[5].2), ("bsd.o", &b"content"[..]));
        // If a library is cut short by more than its padding, there is one error, and then the end.
        let mut cut = members(&file[..file.len() - 2]).unwrap().skip(5);
        assert!(cut.next().unwrap().is_err() && cut.next().is_none());
    }
}
