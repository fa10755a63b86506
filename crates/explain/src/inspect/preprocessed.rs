//! Preprocessed text: for whom it is, how much the headers add, and what became of the user's lines.

use std::collections::HashMap;

use warpcc_plan::{Arg, Step};

use super::excerpt::{cut, first, marked};
use super::facts::count;
use super::known::EarlierFiles;
use crate::block::{Block, Line, NamedValue};

/// Lines of the user's that are shown.
const SHOWN: usize = 40;
/// Headers that are named, of those that add most.
const LARGEST: usize = 5;

/// Summarises the output of `gcc -E`.
pub fn blocks(step: &Step, text: &str, known: &EarlierFiles) -> Vec<Block> {
    let mut lines_of: HashMap<&str, u64> = HashMap::new();
    let mut own: Vec<Line> = Vec::new();
    let mut attributes = false;
    for line in marked(text) {
        if line.text.trim().is_empty() {
            continue;
        }
        *lines_of.entry(line.file).or_default() += 1;
        if known.source(line.file).is_some() {
            let marked = line.text.contains("__attribute__((");
            attributes |= marked;
            own.push(Line {
                number: Some(line.number),
                text: cut(line.text),
                marked,
            });
        }
    }
    let is_header = |file: &str| !file.starts_with('<') && known.source(file).is_none();
    let mut headers: Vec<(&str, u64)> = lines_of
        .iter()
        .filter(|(file, _)| is_header(file))
        .map(|(file, lines)| (*file, *lines))
        .collect();
    headers.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
    let total: u64 = lines_of.values().sum();
    let mut blocks = vec![
        Block::text(pass(step)),
        Block::facts(
            "Size",
            vec![
                NamedValue::here("lines, without empty ones", count(total)),
                NamedValue::new("of them from your source", count(own.len() as u64)),
                NamedValue::here("headers with lines in it", count(headers.len() as u64)),
            ],
        ),
    ];
    let largest = headers
        .iter()
        .take(LARGEST)
        .map(|(file, lines)| vec![(*file).to_owned(), count(*lines)]);
    let largest: Vec<Vec<String>> = largest.collect();
    if !largest.is_empty() {
        let table = Block::table("Headers that add most", &["header", "lines"], largest);
        blocks.push(table.varying(&[0, 1]));
    }
    if !own.is_empty() {
        blocks.push(Block::lines(
            "Your source, as the next program reads it",
            first(own, SHOWN),
        ));
        if attributes {
            blocks.push(Block::text(
                "`__global__`, `__device__`, `__shared__` and similar words are macros of CUDA's headers: \
                 what the compiler sees are attributes. `<<<>>>` is still there.",
            ));
        }
    }
    blocks
}

fn pass(step: &Step) -> String {
    let defined = |name: &str| {
        step.args.iter().filter_map(Arg::as_text).find_map(|word| {
            word.strip_prefix("-D")?
                .strip_prefix(name)?
                .strip_prefix('=')
        })
    };
    let macros = step
        .args
        .iter()
        .filter_map(Arg::as_text)
        .filter(|word| word.starts_with("-D"))
        .count();
    match defined("__CUDA_ARCH__") {
        Some(value) => format!(
            "A device's text: `__CUDA_ARCH__` is {value} in it, and code under `#ifdef __CUDA_ARCH__` is \
             kept. nvcc defines {macros} macros for this pass; the options say what each is for."
        ),
        None => format!(
            "The host's text: `__CUDA_ARCH__` is not defined in it, so code under `#ifdef \
             __CUDA_ARCH__` is gone. nvcc defines {macros} macros for this pass; the options say what \
             each is for."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::UserSource;

    #[test]
    fn own_lines_are_told_from_headers() {
        let known = EarlierFiles {
            sources: vec![UserSource {
                path: "a.cu".into(),
                lines: Vec::new(),
            }],
            ..EarlierFiles::default()
        };
        let text = "# 0 \"a.cu\"\n# 1 \"h.h\" 1\nint h;\n\nint i;\n# 2 \"a.cu\" 2\n\
                    __attribute__((global)) void k() {}\n";
        let step = Step {
            tool: warpcc_plan::Tool::Preprocess,
            program: warpcc_plan::Program::Named("gcc".into()),
            args: vec![Arg::text("-D__CUDA_ARCH__=800")],
            reads: Vec::new(),
            writes: Vec::new(),
            removes: Vec::new(),
            arch: None,
            raw: String::new(),
        };
        let blocks = blocks(&step, text, &known);
        let Block::Text { text } = &blocks[0] else {
            panic!("{blocks:?}")
        };
        assert!(text.contains("`__CUDA_ARCH__` is 800"), "{text}");
        let Block::Facts { rows, .. } = &blocks[1] else {
            panic!("{blocks:?}")
        };
        let values: Vec<&str> = rows.iter().map(|fact| fact.value.as_str()).collect();
        assert_eq!(values, ["3", "1", "1"]);
        let Block::Excerpt { lines, .. } = &blocks[3] else {
            panic!("{blocks:?}")
        };
        assert_eq!((lines[0].number, lines[0].marked), (Some(2), true));
    }
}
