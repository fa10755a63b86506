//! `warpcc fatbin list` for programs: JSON and CSV.

use std::io::{self, Write};

use serde::Serialize;
use warpcc_fatbin::ImageRow;

/// The version of all JSON of these commands: another one where a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// An object with the version in it.
#[derive(Serialize)]
pub struct Versioned<T> {
    schema: u32,
    #[serde(flatten)]
    object: T,
}

/// The object with the version.
pub fn versioned<T: Serialize>(object: T) -> Versioned<T> {
    Versioned {
        schema: SCHEMA,
        object,
    }
}

/// The first columns of both tables.
const IMAGE: [&str; 8] = [
    "file",
    "member",
    "section",
    "container",
    "image",
    "kind",
    "arch",
    "target",
];

/// Writes an array with an object for each image, one on a line.
pub fn write_json<'r>(
    rows: impl Iterator<Item = &'r ImageRow>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "[")?;
    for (number, row) in rows.enumerate() {
        writeln!(out, "{}", if number == 0 { "" } else { "," })?;
        serde_json::to_writer(&mut *out, &versioned(row))?;
    }
    writeln!(out, "\n]")
}

/// Writes one line for each image.
pub fn write_csv<'r>(
    rows: impl Iterator<Item = &'r ImageRow>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(IMAGE.iter().chain(&[
        "offset",
        "size",
        "stored_size",
        "compression",
        "compressed_size",
        "code_version",
        "toolkit",
        "flags",
        "options",
        "identifier",
    ]))?;
    for row in rows {
        let version = row
            .code_version
            .map(|(major, minor)| format!("{major}.{minor}"));
        let compression = serde_json::to_value(row.compression)?;
        let mut record = image(row);
        record.extend([
            row.offset.to_string(),
            row.size.to_string(),
            row.stored_size.to_string(),
            compression.as_str().unwrap_or_default().to_owned(),
            row.compressed_size
                .map(|s| s.to_string())
                .unwrap_or_default(),
            version.unwrap_or_default(),
            row.toolkit.clone().unwrap_or_default(),
            row.flags.join(" "),
            row.options.clone().unwrap_or_default(),
            row.identifier.clone().unwrap_or_default(),
        ]);
        table.write_record(record)?;
    }
    table.flush()
}

/// Writes one line for each kernel and device function of each image.
pub fn write_kernel_csv<'r>(
    rows: impl Iterator<Item = &'r ImageRow>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(IMAGE.iter().chain(&[
        "name",
        "demangled",
        "is_kernel",
        "registers",
        "stack",
        "frame",
        "shared",
        "local",
        "constant",
        "parameters",
        "code",
        "local_loads",
        "local_stores",
    ]))?;
    for row in rows {
        for function in row.functions.iter().flatten() {
            let mut record = image(row);
            record.extend([
                function.function.name.clone(),
                function.demangled.clone(),
                function.function.is_kernel.to_string(),
            ]);
            let usage = function.function.usage.as_ref();
            let number = |value: Option<u64>| value.map(|v| v.to_string()).unwrap_or_default();
            record.extend([
                number(usage.and_then(|u| u.registers.map(u64::from))),
                number(usage.and_then(|u| u.stack.map(u64::from))),
                number(usage.and_then(|u| u.frame.map(u64::from))),
                number(usage.map(|u| u.shared)),
                number(usage.map(|u| u.local)),
                number(usage.map(|u| u.constant_bytes())),
                number(usage.and_then(|u| u.parameters.map(u64::from))),
                number(usage.map(|u| u.code)),
                number(usage.and_then(|u| u.local_loads.map(u64::from))),
                number(usage.and_then(|u| u.local_stores.map(u64::from))),
            ]);
            table.write_record(record)?;
        }
    }
    table.flush()
}

fn image(row: &ImageRow) -> Vec<String> {
    vec![
        row.file.clone(),
        row.member.clone().unwrap_or_default(),
        row.section.to_string(),
        row.container.to_string(),
        row.image.to_string(),
        row.kind.to_string(),
        row.arch.clone(),
        row.target.clone(),
    ]
}
