//! Writes the page, or JSON, or a trace, of a made-up build: for screenshots and documentation.
//!
//! `cargo run -p warpcc-report --example sample_build -- out.html [calls [slots]]`; the name's
//! ending says which of the three.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use warpcc_report::sample::{Shape, build};
use warpcc_report::{Build, Summary, json, page, trace};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args
        .next()
        .ok_or("say where to write: out.html, out.json or out.trace")?;
    let mut shape = Shape::default();
    if let Some(calls) = args.next() {
        shape.calls = calls.parse()?;
    }
    if let Some(slots) = args.next() {
        shape.slots = slots.parse()?;
        shape.jobs = shape.slots as usize * 2;
        shape.memory_kib = u64::from(shape.slots) * (5 << 19);
    }
    let build = Build::new(build(&shape));
    let summary = Summary::compute(&build);
    let mut out = BufWriter::new(File::create(&path)?);
    if path.ends_with(".json") {
        json::write(&build, &summary, &mut out)?;
    } else if path.ends_with(".trace") {
        trace::write(&build, &mut out)?;
    } else {
        page::write(&build, &summary, &mut out)?;
    }
    out.flush()?;
    Ok(())
}
