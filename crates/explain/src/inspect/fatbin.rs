//! A fat binary, and the C file that carries it into an object.

use warpcc_fatbin::{Format, Image, ReadLimits, read};

use super::elf::{WRAPPER_MAGIC, wrapper_version};
use super::excerpt::cut;
use super::facts::count;
use crate::block::{Block, NamedValue};

/// The magic number of a container.
const CONTAINER: u64 = 0xba55_ed50;

/// The images in a file, as rows of a table.
pub fn images<'a>(images: impl Iterator<Item = &'a Image<'a>>) -> Vec<Vec<String>> {
    let limits = ReadLimits::default();
    let row = |image: &Image<'_>| {
        let size = image.payload(&limits).map_or_else(
            |flaw| flaw.to_string(),
            |payload| count(payload.len() as u64),
        );
        let stored = match image.compressed_size {
            0 => "as it is".to_owned(),
            bytes => format!("{:?}, {} bytes", image.method(), count(bytes.into())),
        };
        vec![
            image.kind.to_string(),
            image.target(),
            size,
            stored,
            image.flags.words().join(", "),
            image.options.clone().unwrap_or_default(),
        ]
    };
    images.map(row).collect()
}

/// The heads of the table that [`images`] fills.
pub const IMAGES: [&str; 6] = ["kind", "target", "bytes", "stored", "flags", "options"];

/// Those of them that differ between machines: nvlink writes the toolkit's folders into a note.
pub const SIZES: [usize; 2] = [2, 3];

/// Summarises a fat binary.
pub fn blocks(bytes: &[u8]) -> Vec<Block> {
    let limits = ReadLimits::default();
    let found = match Format::detect(bytes) {
        Some(format @ Format::Fatbin) => read(bytes, format, &limits),
        _ => return vec![Block::text("Not a fat binary.")],
    };
    let mut blocks = vec![Block::text(
        "Images for several GPUs in one file. The driver takes the machine code that fits its GPU; \
         where there is none, it compiles PTX if that is in here.",
    )];
    for container in &found.containers {
        blocks.push(Block::facts(
            "Container",
            vec![
                NamedValue::new("magic", format!("{CONTAINER:#010x}")),
                NamedValue::new("version", "1"),
                NamedValue::new("header", "16 bytes"),
                NamedValue::new("images", container.images.len().to_string()),
                NamedValue::here("size", format!("{} bytes", count(container.size))),
            ],
        ));
    }
    let rows = images(found.containers.iter().flat_map(|c| &c.images));
    blocks.push(Block::table("Images", &IMAGES, rows).varying(&SIZES));
    for problem in &found.problems {
        blocks.push(Block::text(format!(
            "At {}: {}",
            problem.offset, problem.flaw
        )));
    }
    blocks
}

/// Summarises a fat binary's C file.
pub fn c_blocks(text: &str) -> Vec<Block> {
    let define = |name: &str| {
        let value = super::facts::defined(text, name).unwrap_or_default();
        value.trim_matches('"').to_owned()
    };
    let numbers: usize = text
        .lines()
        .filter_map(|line| line.trim_start_matches('"').strip_prefix(".quad "))
        .map(|line| line.split(',').count())
        .sum();
    let mut blocks = vec![
        Block::text(
            "The fat binary as numbers for the assembler, in a section of its own, and a wrapper: the \
             small record by which the runtime finds it. The stub includes this file.",
        ),
        Block::facts(
            "",
            vec![
                NamedValue::new(
                    "the fat binary's section",
                    define("__CUDAFATBINDATASECTION"),
                ),
                NamedValue::new("the wrapper's section", define("__CUDAFATBINSECTION")),
                NamedValue::here("64-bit numbers", count(numbers as u64)),
            ],
        ),
    ];
    blocks.extend(wrapper(text));
    let shown: Vec<String> = text
        .lines()
        .filter(|line| {
            let line = line.trim_start_matches('"');
            line.starts_with(".section")
                || line.contains("fatbinData")
                || line.contains("__fatBinC_Wrapper_t")
                || line.contains("__cudaPrelinkedFatbins")
                || line.trim_start().starts_with("{ 0x")
        })
        .map(cut)
        .collect();
    blocks.push(Block::excerpt("Around the numbers", shown));
    blocks
}

/// The wrapper's initialiser: `{ 0x466243b1, 1, fatbinData, 0 }`.
fn wrapper(text: &str) -> Option<Block> {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("{ 0x"))?;
    let inner = line.split_once('{')?.1.split_once('}')?.0;
    let [magic, version, data, rest] = inner
        .split(',')
        .map(str::trim)
        .collect::<Vec<_>>()
        .try_into()
        .ok()?;
    let expected = format!("{WRAPPER_MAGIC:#010x}");
    let magic = match magic == expected {
        true => expected,
        false => format!("{magic}, where {expected} is known"),
    };
    let number: u32 = version.parse().ok()?;
    let rest = match number {
        2 => format!("{rest}: the fat binaries it was linked from"),
        _ => rest.to_owned(),
    };
    Some(Block::facts(
        "The wrapper",
        vec![
            NamedValue::new("magic", magic),
            NamedValue::new("version", format!("{version}: {}", wrapper_version(number))),
            NamedValue::new("pointer to the fat binary", data),
            NamedValue::new("fourth field", rest),
        ],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrapper_is_read() {
        let text = "#define __CUDAFATBINSECTION  \".nvFatBinSegment\"\n#define __CUDAFATBINDATASECTION  \".nv_fatbin\"\n\
                    asm(\n\".section .nv_fatbin, \\\"a\\\"\\n\"\n\".quad 0x1,0x2\\n\"\n\".quad 0x3\\n\"\n);\n\
                    static const __fatBinC_Wrapper_t __fatDeviceText = \n\t{ 0x466243b1, 1, fatbinData, 0 };\n";
        let blocks = c_blocks(text);
        let values: Vec<Vec<&str>> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Facts { rows, .. } => Some(rows.iter().map(|f| f.value.as_str()).collect()),
                _ => None,
            })
            .collect();
        assert_eq!(values[0], [".nv_fatbin", ".nvFatBinSegment", "3"]);
        assert_eq!(values[1][0], "0x466243b1");
        assert!(values[1][1].starts_with("1: "));
        assert_eq!(values[1][2], "fatbinData");
    }
}
