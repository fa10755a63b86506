//! PTX: its virtual GPU, its entry points with their parameters, and the code of the first.

use warpcc_fatbin::demangle;

use super::excerpt::{cut, first};
use super::facts::count;
use crate::block::{Block, Line, NamedValue};

/// Lines of the first entry point that are shown.
const SHOWN: usize = 36;

struct EntryPoint<'t> {
    name: &'t str,
    parameters: Vec<String>,
    bounds: Vec<&'t str>,
    instructions: usize,
    lines: Vec<&'t str>,
}

/// Summarises a PTX text.
pub fn blocks(text: &str) -> Vec<Block> {
    let directive = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .unwrap_or("not said")
            .trim()
            .to_owned()
    };
    let entries = entries(text);
    let functions = text
        .lines()
        .filter(|line| line.starts_with('.') && line.contains(".func "))
        .count();
    let variables: Vec<Vec<String>> = text
        .lines()
        .filter(|line| {
            line.starts_with('.')
                && [".global ", ".const ", ".shared "]
                    .iter()
                    .any(|space| line.contains(space))
        })
        .map(|line| vec![cut(line)])
        .collect();
    let mut facts = vec![
        NamedValue::new("PTX version", directive(".version")),
        NamedValue::new("target", directive(".target")),
        NamedValue::new("address size", directive(".address_size")),
        NamedValue::new("entry points", count(entries.len() as u64)),
    ];
    if functions > 0 {
        facts.push(NamedValue::new("other functions", count(functions as u64)));
    }
    let mut blocks = vec![
        Block::text(
            "Assembly for a GPU that does not exist: as many registers as the code likes, no \
             scheduling. ptxas turns it into machine code now; a driver can do that later, for GPUs \
             that are not built yet.",
        ),
        Block::facts("Header", facts),
        Block::first_rows(
            "Entry points",
            &["kernel", "symbol", "parameters", "bounds", "instructions"],
            entries.iter().map(|entry| {
                vec![
                    demangle(entry.name),
                    entry.name.to_owned(),
                    entry.parameters.join(", "),
                    entry.bounds.join(" "),
                    count(entry.instructions as u64),
                ]
            }),
        ),
    ];
    if !variables.is_empty() {
        let variables = variables.into_iter();
        blocks.push(Block::first_rows("Variables", &["declaration"], variables));
    }
    if let Some(entry) = entries.iter().min_by_key(|entry| entry.lines.len()) {
        let lines = entry.lines.iter().filter(|line| !line.trim().is_empty());
        let lines = lines.map(|line| Line {
            number: None,
            text: cut(&laid_out(line)),
            marked: line.contains(".entry"),
        });
        let title = if entries.len() == 1 {
            "The kernel"
        } else {
            "The shortest kernel"
        };
        blocks.push(Block::lines(title, first(lines.collect(), SHOWN)));
    }
    blocks
}

/// Tabs at the start are four spaces, later ones one.
fn laid_out(line: &str) -> String {
    let code = line.trim_start_matches('\t');
    let depth = line.len() - code.len();
    let words: Vec<&str> = code.split_whitespace().collect();
    format!("{}{}", "    ".repeat(depth), words.join(" "))
}

fn entries(text: &str) -> Vec<EntryPoint<'_>> {
    let mut found: Vec<EntryPoint<'_>> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let words = line.trim();
        if let Some((before, rest)) = line.split_once(".entry ")
            && before.split_whitespace().all(|word| word.starts_with('.'))
        {
            let name = rest.trim_start();
            let end = name.find(['(', ' ']).unwrap_or(name.len());
            found.push(EntryPoint {
                name: &name[..end],
                parameters: Vec::new(),
                bounds: Vec::new(),
                instructions: 0,
                lines: Vec::new(),
            });
            open = true;
        }
        let Some(entry) = found.last_mut().filter(|_| open) else {
            continue;
        };
        entry.lines.push(line);
        // In the body there are parameters of calls as well.
        let in_head = !entry.lines.contains(&"{");
        if let Some(parameter) = words.strip_prefix(".param ").filter(|_| in_head) {
            entry.parameters.push(parameter_type(parameter));
        } else if [
            ".maxntid",
            ".reqntid",
            ".minnctapersm",
            ".maxnreg",
            ".explicitcluster",
            ".reqnctapercluster",
        ]
        .iter()
        .any(|bound| words.starts_with(bound))
        {
            entry.bounds.push(words);
        } else if words.ends_with(';')
            && words.starts_with(|c: char| c.is_ascii_lowercase() || c == '@')
        {
            entry.instructions += 1;
        }
        // A body's last brace stands alone at the start of its line.
        if line == "}" {
            open = false;
        }
    }
    found
}

/// `.u64` or `.align 8 .b8[24]` of a parameter's declaration.
fn parameter_type(declaration: &str) -> String {
    let declaration = declaration.trim_end_matches([',', ')']);
    let size = declaration.rfind('[').map_or("", |at| &declaration[at..]);
    let words = declaration
        .split_whitespace()
        .filter(|word| word.starts_with('.') || word.bytes().all(|b| b.is_ascii_digit()));
    format!("{}{size}", words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//\n// Cuda compilation tools, release 13.5, V13.5.37\n.version 9.5\n\
        .target sm_80\n.address_size 64\n\n.visible .global .align 4 .u32 counter;\n\
        .visible .entry _Z5scalePfS_i(\n\t.param .u64 .ptr .align 1 _Z5scalePfS_i_param_0,\n\
        \t.param .align 8 .b8 _Z5scalePfS_i_param_1[24]\n)\n.maxntid 128, 1, 1\n{\n\
        \t.reg .b32 \t%r<4>;\n\tld.param.u64 \t%rd1, [x];\n$L__BB0_1:\n\t@%p1 bra \t$L__BB0_1;\n\tret;\n\n}\n\
        .func helper()\n{\n\tret;\n}\n";

    #[test]
    fn entries_have_parameters_and_bounds() {
        let found = entries(TEXT);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "_Z5scalePfS_i");
        assert_eq!(
            found[0].parameters,
            [".u64 .ptr .align 1", ".align 8 .b8[24]"]
        );
        assert_eq!(found[0].bounds, [".maxntid 128, 1, 1"]);
        assert_eq!(found[0].instructions, 3);
        let Block::Facts { rows, .. } = &blocks(TEXT)[1] else {
            panic!("facts")
        };
        let values: Vec<&str> = rows.iter().map(|fact| fact.value.as_str()).collect();
        assert_eq!(values, ["9.5", "sm_80", "64", "1", "1"]);
    }
}
