//! One line per command, as CSV.

use std::io::{self, Write};

use crate::commands::timeline::{FileRole, Run, TaskRow};

const COLUMNS: [&str; 11] = [
    "number",
    "tool",
    "arch",
    "seconds",
    "user",
    "system",
    "peak_kib",
    "cached",
    "exit_code",
    "reads",
    "writes",
];

/// Writes the table with its heading.
///
/// `exit_code` is empty for a command that did not run. The last two columns list
/// files as `name=size` with `;` between them; an unknown size is left empty.
pub fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(COLUMNS)?;
    for row in &run.rows {
        table.write_record([
            row.number.to_string(),
            row.tool.clone(),
            row.arch.clone().unwrap_or_default(),
            format!("{:.6}", row.elapsed().as_secs_f64()),
            format!("{:.6}", row.user.as_secs_f64()),
            format!("{:.6}", row.system.as_secs_f64()),
            row.peak_kib.to_string(),
            row.cached().to_string(),
            row.exit_code()
                .map(|code| code.to_string())
                .unwrap_or_default(),
            files(row, FileRole::Reads),
            files(row, FileRole::Writes),
        ])?;
    }
    table.flush()
}

fn files(row: &TaskRow, role: FileRole) -> String {
    let listed: Vec<_> = row
        .files_of(role)
        .map(|file| {
            let size = file.size.map(|size| size.to_string()).unwrap_or_default();
            format!("{}={size}", file.name)
        })
        .collect();
    listed.join(";")
}
