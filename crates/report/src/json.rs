//! A build for programs: one JSON document with a stable, documented form (`docs/report.md`).
//!
//! A field may be added within a version of the form; one is only taken away or changed with a
//! new number.

use std::io::{self, Write};

use serde::Serialize;

use crate::build::Build;
use crate::record::InvocationRecord;
use crate::summary::Summary;

/// The number of the form that [`write()`] writes.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    summary: &'a Summary,
    calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    /// Since the build's start.
    from_s: f64,
    /// Since the build's start.
    to_s: f64,
    file: &'a str,
    folder: &'a str,
    #[serde(flatten)]
    record: &'a InvocationRecord,
}

/// Writes the build, its summary and every record.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(build: &Build, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let calls = build.calls.iter().map(|call| Call {
        from_s: call.started.as_secs_f64(),
        to_s: call.finished.as_secs_f64(),
        file: &call.file,
        folder: &call.folder,
        record: &call.record,
    });
    let document = Document {
        schema: SCHEMA,
        summary,
        calls: calls.collect(),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Shape, build};

    #[test]
    fn the_form_is_stable() {
        let shape = Shape {
            calls: 3,
            architectures: vec!["90a".into()],
            direct_hits: 400,
            ..Shape::default()
        };
        let build = Build::new(build(&shape));
        let mut out = Vec::new();
        write(&build, &Summary::compute(&build), &mut out).unwrap();
        let mut json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        // One element of each list shows its form.
        fn thin(value: &mut serde_json::Value) {
            match value {
                serde_json::Value::Array(list) => {
                    list.truncate(1);
                    list.iter_mut().for_each(thin);
                }
                serde_json::Value::Object(map) => map.values_mut().for_each(thin),
                _ => {}
            }
        }
        json["calls"]
            .as_array_mut()
            .unwrap()
            .retain(|call| call["outcome"] == "built");
        thin(&mut json);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
    }

    #[test]
    fn an_empty_build_is_a_document_too() {
        let build = Build::new(Vec::new());
        let mut out = Vec::new();
        write(&build, &Summary::compute(&build), &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["calls"].as_array().map(Vec::len), Some(0));
    }
}
