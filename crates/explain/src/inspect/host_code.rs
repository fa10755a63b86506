//! The two halves that the front end cuts a source into: C++ for the host, C for the device.

use super::excerpt::{Marked, cut, first, marked};
use super::facts::lines_of;
use super::known::EarlierFiles;
use crate::block::{Block, Line, NamedValue};

/// Lines of the user's that are shown.
const SHOWN: usize = 48;
/// The call that a launch becomes.
const PUSH: &str = "__cudaPushCallConfiguration(";

/// Summarises the C++ that cudafe++ wrote for the host.
pub fn blocks(text: &str, known: &EarlierFiles) -> Vec<Block> {
    let mut launches: Vec<Vec<String>> = Vec::new();
    let mut elsewhere = 0;
    let mut own: Vec<Line> = Vec::new();
    let mut dropped = 0;
    let mut inside = false;
    for line in marked(text) {
        let source = known.source(line.file);
        // The header that declares it is not a launch.
        let is_launch = line.text.contains(PUSH) && !line.text.contains("unsigned __cuda");
        if is_launch {
            match source.and_then(|source| source.lines.get(line.number.checked_sub(1)?)) {
                Some(yours) => launches.push(vec![
                    line.number.to_string(),
                    cut(yours.trim()),
                    cut(line.text.trim()),
                ]),
                None => elsewhere += 1,
            }
        }
        if source.is_none() || line.text.trim().is_empty() {
            continue;
        }
        let is_dropped = line.text.trim() == "#if 0";
        dropped += usize::from(is_dropped);
        inside |= is_dropped;
        // Pragmas and checks around the user's text have its file's name, and are not his.
        if line.text.starts_with('#') && !inside {
            continue;
        }
        inside &= line.text.trim() != "#endif";
        own.push(shown(&line, is_launch));
    }
    let mut facts = vec![
        lines_of(text),
        NamedValue::new("launches in your source", launches.len().to_string()),
        NamedValue::new("launches in headers", elsewhere.to_string()),
        NamedValue::new("bodies put under `#if 0`", dropped.to_string()),
    ];
    if elsewhere == 0 {
        facts.remove(2);
    }
    let mut blocks = vec![
        Block::text(
            "C++ that the host compiler understands. A kernel keeps its name and loses its body: what \
             is left of it calls a stub. `<<<grid, block>>>` becomes a call that pushes this \
             configuration, followed by an ordinary call of the kernel's host function, which only \
             happens if the push succeeded.",
        ),
        Block::facts("In numbers", facts),
    ];
    if !launches.is_empty() {
        blocks.push(Block::first_rows(
            "Launches",
            &["line", "you wrote", "cudafe++ wrote"],
            launches.into_iter(),
        ));
    }
    if !own.is_empty() {
        blocks.push(Block::lines(
            "Your source, as the host compiler reads it",
            first(own, SHOWN),
        ));
    }
    let includes: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("#include \"") && line.contains(".stub.c"))
        .map(cut)
        .collect();
    if !includes.is_empty() {
        blocks.push(Block::excerpt(
            "At its end: the stub of one architecture, which brings the fat binary with it",
            includes,
        ));
    }
    blocks
}

/// Summarises the C that cicc writes for the device.
pub fn device_blocks(text: &str, known: &EarlierFiles) -> Vec<Block> {
    let mut own: Vec<Line> = Vec::new();
    let mut last = (0, String::new());
    for line in marked(text) {
        let is_own = known.source(line.file).is_some() && !line.text.starts_with('#');
        if !is_own || line.text.trim().is_empty() {
            continue;
        }
        // A mark between every two parameters: what is of one line of yours is one line here.
        if last.0 == line.number && !own.is_empty() {
            own.pop();
            last.1 = format!("{} {}", last.1.trim_end(), line.text.trim());
        } else {
            last = (line.number, line.text.trim().to_owned());
        }
        own.push(Line {
            number: Some(line.number),
            text: cut(&last.1),
            marked: last.1.contains("__global__"),
        });
    }
    let mut blocks = vec![
        Block::text(
            "What the device code is after the front end: templates are instantiated, names mangled, \
             C++ gone. cicc's optimiser begins with this.",
        ),
        Block::facts("", vec![lines_of(text)]),
    ];
    if !own.is_empty() {
        blocks.push(Block::lines("Your kernels in it", first(own, SHOWN)));
    }
    blocks
}

fn shown(line: &Marked<'_>, is_launch: bool) -> Line {
    Line {
        number: (!line.text.starts_with('#')).then_some(line.number),
        text: cut(line.text),
        marked: is_launch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::UserSource;

    #[test]
    fn a_launch_stands_beside_what_it_became() {
        let known = EarlierFiles {
            sources: vec![UserSource {
                path: "a.cu".into(),
                lines: vec!["void f() {".into(), "  k<<<1, 2>>>(3);".into(), "}".into()],
            }],
            ..EarlierFiles::default()
        };
        let text = "# 1 \"h.h\"\nextern \"C\" unsigned __cudaPushCallConfiguration(dim3 a);\n\
                    # 9\n(__cudaPushCallConfiguration(4, 4)) ? (void)0 : h();\n# 1 \"a.cu\"\nvoid f() {\n\
                    (__cudaPushCallConfiguration(1, 2)) ? (void)0 : k(3); \n}\n\
                    #include \"a.cudafe1.stub.c\"\n";
        let blocks = blocks(text, &known);
        let table = blocks.iter().find_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        assert_eq!(
            table.expect("launches").rows,
            [[
                "2",
                "k<<<1, 2>>>(3);",
                "(__cudaPushCallConfiguration(1, 2)) ? (void)0 : k(3);"
            ]]
        );
        let Block::Facts { rows, .. } = &blocks[1] else {
            panic!("facts")
        };
        assert_eq!((rows[1].value.as_str(), rows[2].value.as_str()), ("1", "1"));
    }
}
