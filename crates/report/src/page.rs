//! A build as one self-contained HTML page: it needs no network, no fonts and no other file.
//!
//! The page shows text from outside: names of files, options, messages. This text is added as JSON in which `<` is
//! escaped, and is put into the page as text only. If that ever fails, the page's content security policy still allows no
//! script but this one, by its hash, and loads nothing.

use std::io::{self, Write};
use std::sync::LazyLock;

use warpcc_markup::{escape, policy};

use crate::build::Build;
use crate::summary::Summary;

mod data;
mod palette;

const TEMPLATE: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
/// One script, made of several files. Later files use definitions of earlier ones.
const SCRIPTS: [&str; 5] = [
    include_str!("../page/format.js"),
    include_str!("../page/model.js"),
    include_str!("../page/timeline.js"),
    include_str!("../page/tables.js"),
    include_str!("../page/main.js"),
];

static SCRIPT: LazyLock<String> =
    LazyLock::new(|| format!("'use strict';\n(() => {{\n{}\n}})();\n", SCRIPTS.join("\n")));

/// Writes the page.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(build: &Build, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let style = STYLE
        .replace("{{light}}", &palette::variables(palette::LIGHT))
        .replace("{{dark}}", &palette::variables(palette::DARK));
    // The page is filled in piece by piece, so that no text from outside is taken for a placeholder.
    for (at, piece) in TEMPLATE.split("{{").enumerate() {
        let Some((place, rest)) = piece.split_once("}}").filter(|_| at > 0) else {
            out.write_all(piece.as_bytes())?;
            continue;
        };
        match place {
            "policy" => out.write_all(policy(&SCRIPT, &style).as_bytes())?,
            "title" => out.write_all(escape(&build.title()).as_bytes())?,
            "style" => out.write_all(style.as_bytes())?,
            "data" => serde_json::to_writer(Escaping(&mut *out), &data::collect(build, summary))?,
            "script" => out.write_all(SCRIPT.as_bytes())?,
            _ => return Err(io::Error::other(format!("the page has no place {place:?}"))),
        }
        out.write_all(rest.as_bytes())?;
    }
    Ok(())
}

/// Writes JSON that cannot end the HTML element around it: `<` occurs only in strings, where it is escaped.
struct Escaping<'a>(&'a mut dyn Write);

impl Write for Escaping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|byte| *byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CallOutcome, InvocationRecord, Task};
    use crate::sample;

    fn page(records: Vec<InvocationRecord>) -> String {
        let build = Build::new(records);
        let mut out = Vec::new();
        write(&build, &Summary::compute(&build), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_cannot_leave_their_place() {
        let nasty = "</script><script>alert(1)</script>{{data}}<!--\"'&ä\u{2028}.cu";
        let page = page(vec![InvocationRecord {
            directory: nasty.into(),
            driver: Some(nasty.into()),
            sources: vec![nasty.into()],
            args: vec![nasty.into()],
            outcome: CallOutcome::Fallback {
                reason: nasty.into(),
            },
            tasks: vec![Task {
                tool: nasty.into(),
                architecture: Some(nasty.into()),
                label: nasty.into(),
                not_stored: Some(nasty.into()),
                ..Task::default()
            }],
            ..InvocationRecord::default()
        }]);
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("<!--"));
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let json: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(json["meta"]["title"], nasty);
        assert_eq!(json["tools"][0], nasty);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let page = page(sample::build(&sample::Shape::default()));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
