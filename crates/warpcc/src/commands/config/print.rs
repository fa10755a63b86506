//! Every setting and who decided it, for people and as JSON.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::config::{EditedFile, SettingRow};

/// Write it for people; `file` is the settings file that was looked for.
pub fn write_text(rows: &[SettingRow], file: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    let width = |text: fn(&SettingRow) -> &str| {
        rows.iter()
            .map(|row| text(row).chars().count())
            .max()
            .unwrap_or(0)
    };
    let (names, values) = (width(|row| row.name), width(shown));
    for row in rows {
        let (name, value) = (row.name, shown(row));
        writeln!(out, "{name:<names$}  {value:<values$}  {}", row.source)?;
    }
    match file {
        Some(file) => writeln!(
            out,
            "\nSet one: WARPCC_JOBS=8, or warpcc config --set jobs=8, which writes {}",
            file.display()
        ),
        None => writeln!(out, "\nSet one: WARPCC_JOBS=8"),
    }
}

/// Write it for programs.
pub fn write_json(rows: &[SettingRow], out: &mut dyn Write) -> io::Result<()> {
    let row = |row: &SettingRow| {
        let about = json!({
            "value": row.value,
            "source": row.source.to_string(),
            "variable": row.variable,
        });
        (row.name.to_owned(), about)
    };
    let all: Map<String, Value> = rows.iter().map(row).collect();
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)
}

/// Write what was changed in the settings file. The values may be secret, and are not shown.
pub fn write_changes(edited: &EditedFile, out: &mut dyn Write) -> io::Result<()> {
    let path = edited.path.display();
    for change in &edited.changes {
        match change.line {
            Some(line) => writeln!(out, "{} is set in {path}:{line}", change.name)?,
            None => writeln!(out, "{} is not set in {path}", change.name)?,
        }
        if let Some(variable) = change.overridden_by {
            writeln!(out, "  but {variable} is set too, and counts instead")?;
        }
    }
    Ok(())
}

fn shown(row: &SettingRow) -> &str {
    if row.value.is_empty() {
        "-"
    } else {
        &row.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::output::text_of;
    use crate::config::Config;

    #[test]
    fn settings_read_well() {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".into()),
            "WARPCC_JOBS" => Some("8".into()),
            // Or else it is this machine's.
            "WARPCC_MEMORY" => Some("48G".into()),
            _ => None,
        };
        let config = Config::load(env).unwrap();
        let (rows, file) = (config.rows(), config.file.as_deref());
        insta::assert_snapshot!("settings", text_of(|out| write_text(&rows, file, out)));
        let json = text_of(|out| write_json(&rows, out));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["jobs"]["source"], "environment WARPCC_JOBS");
    }
}
