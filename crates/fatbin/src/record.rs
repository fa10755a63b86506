//! The record of a wheel: a line for each file with its hash and its size, of which some change.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// What a line says about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordLine {
    hash: String,
    size: usize,
}

impl RecordLine {
    /// The entry for a file with this content.
    pub(crate) fn from_content(content: &[u8]) -> Self {
        Self {
            hash: URL_SAFE_NO_PAD.encode(Sha256::digest(content)),
            size: content.len(),
        }
    }
}

/// Whether the record says something else of a file than this content. Hashes of other kinds than an installer of today knows
/// are not looked at.
pub(crate) fn disagrees(record: &[u8], name: &str, content: &[u8]) -> bool {
    let lines = record.split(|byte| *byte == b'\n');
    let mut stated = lines.filter_map(|line| {
        let (path, behind) = path(line);
        (path == name).then(|| String::from_utf8_lossy(&line[behind..]).into_owned())
    });
    stated.any(|fields| {
        let mut fields = fields.trim().trim_start_matches(',').split(',');
        let mut field = || {
            fields
                .next()
                .unwrap_or_default()
                .trim_matches('"')
                .to_owned()
        };
        let (hash, size) = (field(), field());
        let is_other = |digest: &[u8], hash: &str| {
            URL_SAFE_NO_PAD.encode(digest) != hash.trim_end_matches('=')
        };
        let wrong_hash = match hash.split_once('=') {
            Some(("sha256", hash)) => is_other(&Sha256::digest(content), hash),
            Some(("sha384", hash)) => is_other(&Sha384::digest(content), hash),
            Some(("sha512", hash)) => is_other(&Sha512::digest(content), hash),
            _ => false,
        };
        wrong_hash || (!size.is_empty() && size != content.len().to_string())
    })
}

/// The record with new entries for some files; all other lines stay byte for byte.
///
/// # Errors
/// The name of a file that has no line.
pub(crate) fn rewrite(
    record: &[u8],
    entries: &HashMap<String, RecordLine>,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(record.len());
    let mut seen = HashSet::new();
    for line in record.split_inclusive(|byte| *byte == b'\n') {
        let (path, behind) = path(line);
        let Some((name, entry)) = entries.get_key_value(&path) else {
            out.extend_from_slice(line);
            continue;
        };
        seen.insert(name);
        out.extend_from_slice(&line[..behind]);
        out.extend_from_slice(format!(",sha256={},{}", entry.hash, entry.size).as_bytes());
        let text = line.trim_ascii_end().len();
        out.extend_from_slice(&line[text..]);
    }
    let mut missing: Vec<_> = entries.keys().filter(|name| !seen.contains(name)).collect();
    missing.sort();
    match missing.first() {
        None => Ok(out),
        Some(name) => Err((*name).clone()),
    }
}

/// The path of a line, and where the field ends in it. A path with a comma or a quote is quoted, as CSV has it.
fn path(line: &[u8]) -> (String, usize) {
    if line.first() != Some(&b'"') {
        let end = line.iter().position(|b| *b == b',').unwrap_or(line.len());
        return (String::from_utf8_lossy(&line[..end]).into_owned(), end);
    }
    let mut path = Vec::new();
    let mut at = 1;
    while let Some(&byte) = line.get(at) {
        at += 1;
        match (byte, line.get(at)) {
            (b'"', Some(b'"')) => {
                path.push(b'"');
                at += 1;
            }
            (b'"', _) => break,
            _ => path.push(byte),
        }
    }
    (String::from_utf8_lossy(&path).into_owned(), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_other_content_is_noticed() {
        let right = RecordLine::from_content(b"new").hash;
        let says = |fields: &str| {
            let record = format!("b.py,sha256=x,1\r\n\"a,b\",{fields}\r\n");
            disagrees(record.as_bytes(), "a,b", b"new")
        };
        for fields in [
            "",
            ",",
            "md5=x,3",
            &format!("sha256={right},3"),
            &format!("sha256={right}=,"),
            &format!("\"sha256={right}\",\"3\""),
        ] {
            assert!(!says(fields), "{fields}");
        }
        for fields in [
            "sha256=,3",
            "sha384=x,3",
            "sha512=x,3",
            "md5=x,4",
            &format!("sha256={right},4"),
        ] {
            assert!(says(fields), "{fields}");
        }
        assert!(!disagrees(b"", "a", b"new"));
    }

    #[test]
    fn only_the_lines_of_changed_files_change() {
        let record =
            b"a.so,sha256=old,10\r\n\"with,comma.so\",sha512=older,20\r\nb.py,sha256=x,1\r\n\
            d.dist-info/RECORD,,\r\n";
        let entry = RecordLine::from_content(b"new");
        let entries = ["a.so", "with,comma.so"].map(|name| (name.to_owned(), entry.clone()));
        let written = rewrite(record, &entries.into()).expect("both are there");
        // What `openssl dgst -sha256 -binary | base64` says, in the alphabet of URLs.
        assert_eq!(entry.hash, "EVB6Di9eadXfpApiob17buV-a82FxnybhDGzb_8hxDc");
        let expected = format!(
            "a.so,sha256={0},3\r\n\"with,comma.so\",sha256={0},3\r\nb.py,sha256=x,1\r\nd.dist-info/RECORD,,\r\n",
            entry.hash
        );
        assert_eq!(String::from_utf8_lossy(&written), expected);
        let other = [("none.so".to_owned(), entry)].into();
        assert_eq!(rewrite(record, &other), Err("none.so".to_owned()));
    }
}
