//! A cubin: its kernels with what each takes of a GPU, and the sections that hold them.

use warpcc_fatbin::{Format, FunctionRow, ReadLimits, demangle, read};

use super::elf::Elf;
use super::facts::count;
use super::section_names::cubin_section;
use crate::block::{Block, NamedValue};

/// Summarises a cubin.
pub fn blocks(bytes: &[u8]) -> Vec<Block> {
    let limits = ReadLimits::default();
    let found = match Format::detect(bytes) {
        Some(format @ Format::Cubin) => read(bytes, format, &limits),
        _ => return vec![Block::text("Not an ELF file for a GPU.")],
    };
    let image = found.containers.iter().flat_map(|c| &c.images).next();
    let inside = match image.map(|image| image.inside(&limits)) {
        Some(Ok(inside)) => inside,
        Some(Err(flaw)) => return vec![Block::text(format!("It cannot be read: {flaw}"))],
        None => return vec![Block::text("No cubin was found in it.")],
    };
    let rows: Vec<FunctionRow> = inside
        .functions
        .iter()
        .map(|function| FunctionRow {
            demangled: demangle(&function.name),
            function: function.clone(),
        })
        .collect();
    let kind = match inside.relocatable {
        Some(true) => "relocatable: a device link makes it loadable",
        _ => "ready to be loaded",
    };
    let mut blocks = vec![
        Block::text(
            "An ELF file like any other, for another machine: code, constants and symbols of one \
             real architecture. Registers are assigned and instructions scheduled here.",
        ),
        Block::facts(
            "",
            vec![
                NamedValue::new(
                    "architecture",
                    inside
                        .own_arch
                        .map_or_else(|| "not said".to_owned(), |arch| format!("sm_{arch}")),
                ),
                NamedValue::new("state", kind),
                NamedValue::new(
                    "made by",
                    inside.toolkit.unwrap_or_else(|| "not said".to_owned()),
                ),
                NamedValue::new("global variables", format!("{} bytes", inside.global_bytes)),
            ],
        ),
        Block::first_rows(
            "Kernels and functions with code of their own",
            &[
                "function",
                "symbol",
                "kernel",
                "registers",
                "stack",
                "shared",
                "constant",
                "parameters",
                "code",
            ],
            rows.iter().map(function),
        ),
    ];
    if let Some(elf) = Elf::read(bytes) {
        let sections = Block::first_rows(
            "Sections",
            &["section", "bytes", "what it is"],
            elf.sections.iter().map(|section| {
                vec![
                    section.name.clone(),
                    count(section.size),
                    cubin_section(&section.name).to_owned(),
                ]
            }),
        );
        // nvlink writes its options into a note, the toolkit's folders among them.
        blocks.push(sections.varying(&[1]));
    }
    blocks
}

fn function(row: &FunctionRow) -> Vec<String> {
    let usage = row.function.usage.clone().unwrap_or_default();
    let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), count);
    vec![
        row.demangled.clone(),
        row.function.name.clone(),
        if row.function.is_kernel { "yes" } else { "no" }.to_owned(),
        number(usage.registers.map(u64::from)),
        number(usage.stack.map(u64::from)),
        count(usage.shared),
        count(usage.constant_bytes()),
        number(usage.parameters.map(u64::from)),
        count(usage.code),
    ]
}
