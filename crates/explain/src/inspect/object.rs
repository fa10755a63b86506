//! A host object, program or library: where the fat binary went, and what runs before main.

use object::read::archive::ArchiveFile;
use warpcc_fatbin::{Format, ReadLimits, demangle, read};

use super::elf::{Elf, WRAPPER_MAGIC, wrapper_version};
use super::facts::count;
use super::fatbin;
use super::known::EarlierFiles;
use super::section_names::host_section;
use crate::block::{Block, NamedValue};

/// Summarises an object, a program or a shared library.
pub fn blocks(bytes: &[u8], known: &EarlierFiles) -> Vec<Block> {
    let Some(elf) = Elf::read(bytes) else {
        return vec![Block::text("Not a 64-bit ELF file.")];
    };
    let linked = !elf.needed.is_empty();
    let mut blocks = vec![Block::text(if linked {
        "The host linker has put the objects together. Fat binaries and wrappers of all of them are in \
         here; the constructors below run before main, in this order, and register them."
    } else {
        "The host compiler saw an ordinary C++ file: the fat binary is data to it, the wrapper a \
         constant, and the registration a constructor."
    })];
    blocks.push(
        Block::first_rows(
            "Sections",
            &["section", "bytes", "what it is"],
            sections(&elf),
        )
        .varying(&[1]),
    );
    if !elf.wrappers.is_empty() {
        let rows = elf.wrappers.iter().map(|wrapper| {
            let magic = match wrapper.magic {
                WRAPPER_MAGIC => format!("{WRAPPER_MAGIC:#010x}"),
                other => format!("{other:#010x}, which is not known"),
            };
            let [data, list] = wrapper.points.clone();
            vec![
                demangle(&wrapper.name),
                magic,
                format!("{}: {}", wrapper.version, wrapper_version(wrapper.version)),
                demangle(&data),
                demangle(&list),
            ]
        });
        blocks.push(Block::first_rows(
            "Wrappers of fat binaries",
            &["symbol", "magic", "version", "fat binary", "fourth field"],
            rows,
        ));
        if elf.wrappers.iter().any(|wrapper| wrapper.version == 2) {
            blocks.push(Block::text(
                "The wrapper of version 2 is what is registered. Its fourth field points to a list that \
                 is filled before main: the fat binaries of the objects it was linked from, each \
                 entered by its own object's constructor.",
            ));
        }
    }
    if let Some(format @ Format::Elf) = Format::detect(bytes) {
        let found = read(bytes, format, &ReadLimits::default());
        for container in &found.containers {
            let rows = fatbin::images(container.images.iter());
            let title = format!("Images in {}", container.section);
            blocks.push(Block::table(&title, &fatbin::IMAGES, rows).varying(&fatbin::SIZES));
        }
    }
    if !elf.constructors.is_empty() {
        blocks.push(Block::first_rows(
            "What runs before main, in this order",
            &["", "array", "function", "of", "what it does"],
            elf.constructors
                .iter()
                .enumerate()
                .map(|(at, (array, function, source))| {
                    vec![
                        (at + 1).to_string(),
                        array.clone(),
                        demangle(function),
                        source.clone(),
                        constructor(function).to_owned(),
                    ]
                }),
        ));
    }
    blocks.extend(runtime(&elf, linked));
    blocks.extend(id_of(&elf, known).filter(|_| !linked));
    blocks
}

fn sections(elf: &Elf) -> impl Iterator<Item = Vec<String>> {
    elf.sections
        .iter()
        .filter(|section| !host_section(&section.name).is_empty() && section.size > 0)
        .map(|section| {
            vec![
                section.name.clone(),
                count(section.size),
                host_section(&section.name).to_owned(),
            ]
        })
}

fn constructor(function: &str) -> &'static str {
    match function {
        "frame_dummy" => "the C library's start",
        _ if function.contains("____cudaRegisterAll") => {
            "registers this object's fat binary and its kernels"
        }
        _ if function.starts_with("_GLOBAL__sub_I") => "makes the global C++ objects of a file",
        _ => "",
    }
}

/// The functions of the CUDA runtime that it calls, and the libraries that it needs.
fn runtime(elf: &Elf, linked: bool) -> Option<Block> {
    let of_runtime = |name: &str| {
        name.starts_with("cuda") || name.starts_with("__cuda") && !name.contains("RegisterLinked")
    };
    let mut names: Vec<String> = elf
        .symbols
        .iter()
        .filter(|symbol| !symbol.defined && of_runtime(&symbol.name))
        .map(|symbol| symbol.name.clone())
        .collect();
    // Which one is used first is the host compiler's affair.
    names.sort();
    let joined = |names: &[String]| match names {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    let mut facts = vec![NamedValue::new(
        "unresolved calls to the CUDA runtime",
        joined(&names),
    )];
    let open: Vec<String> = elf
        .symbols
        .iter()
        .filter(|symbol| {
            !symbol.defined
                && ["__cudaRegisterLinkedBinary", "__fatbinwrap"]
                    .iter()
                    .any(|prefix| symbol.name.starts_with(prefix))
        })
        .map(|symbol| symbol.name.clone())
        .collect();
    if !open.is_empty() {
        facts.push(NamedValue::new(
            "unresolved between the objects and the device link",
            joined(&open),
        ));
    }
    if linked {
        facts.push(NamedValue::here(
            "shared libraries it needs",
            joined(&elf.needed),
        ));
        let inside = elf
            .symbols
            .iter()
            .any(|s| s.defined && s.name == "__cudaRegisterFatBinary");
        facts.push(NamedValue::new(
            "CUDA runtime",
            if inside { "inside" } else { "not inside" },
        ));
    }
    Some(Block::facts("With the CUDA runtime", facts))
}

/// Which symbol the module id is named after, now that there are symbols.
fn id_of(elf: &Elf, known: &EarlierFiles) -> Option<Block> {
    let symbols = || {
        elf.symbols
            .iter()
            .filter(|symbol| symbol.defined && symbol.global)
            .map(|symbol| symbol.name.as_str())
    };
    // An object has the id of one source; the last that fits is its own.
    let (id, symbol) = known
        .module_ids
        .iter()
        .rev()
        .find_map(|id| Some((id, id.named_after(symbols())?)))?;
    Some(Block::text(format!(
        "The module id `{}` is named after `{}` (`{symbol}`): the symbol is here, and gives its last \
         part, {}.",
        id.text,
        demangle(symbol),
        id.last
    )))
}

/// Summarises a static library.
pub fn library_blocks(bytes: &[u8]) -> Vec<Block> {
    let Ok(archive) = ArchiveFile::parse(bytes) else {
        return vec![Block::text("Not a library that can be read.")];
    };
    let rows = archive.members().flatten().map(|member| {
        let data = member.data(bytes).unwrap_or_default();
        let elf = Elf::read(data);
        let size = |name: &str| {
            elf.as_ref()
                .and_then(|elf| elf.size(name))
                .map_or_else(|| "-".to_owned(), count)
        };
        vec![
            String::from_utf8_lossy(member.name()).into_owned(),
            count(data.len() as u64),
            size(".nv_fatbin"),
            size("__nv_relfatbin"),
        ]
    });
    vec![
        Block::text(
            "Objects side by side, each with its own fat binary. A device link reads `__nv_relfatbin` \
             out of a library as out of an object.",
        ),
        Block::first_rows(
            "Members",
            &["member", "bytes", ".nv_fatbin", "__nv_relfatbin"],
            rows,
        )
        .varying(&[1]),
    ]
}
