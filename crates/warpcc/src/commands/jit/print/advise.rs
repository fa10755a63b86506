//! Prints the result of `warpcc jit advise`: per GPU what the first start compiles, then the advice.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use warpcc_fatbin::Gpu;
use warpcc_jit::Remark;

use super::cache::CacheView;
use super::parts::{seconds, write_remarks};
use crate::commands::plain_text::{count, plain, shortened};
use crate::config::format_bytes;

/// Texts that are shown for each file, the costliest first; `--json` has them all.
const SHOWN: usize = 5;

/// The result of `warpcc jit advise`.
#[derive(Debug, Serialize)]
pub struct JitAdvice {
    /// One for each GPU that was asked about.
    pub gpus: Vec<OnGpu>,
    /// The `ptxas` that measured the costs; `None` where all are estimated, or nothing was to be measured.
    pub ptxas: Option<PathBuf>,
    /// The driver's cache.
    pub cache: CacheView,
    /// Advice, the most urgent first.
    pub remarks: Vec<Remark>,
}

/// The first start on one GPU.
#[derive(Debug, Serialize)]
pub struct OnGpu {
    /// The GPU.
    pub gpu: Gpu,
    /// By file.
    pub files: Vec<OfFile>,
    /// Different texts that the first start compiles.
    pub texts: usize,
    /// Of those, how many were measured.
    pub measured: usize,
    /// Of those, how many `ptxas` refuses.
    pub refused: usize,
    /// The size of the texts, in bytes.
    pub ptx_bytes: u64,
    /// The size of their machine code, in bytes.
    pub cubin_bytes: u64,
    /// The size of the largest machine code of a text, in bytes.
    pub largest_cubin_bytes: u64,
    /// The size of the texts in the driver's cache, in bytes: the PTX and its machine code.
    pub kept_bytes: u64,
    /// Processor time for all texts, in seconds.
    pub seconds: f64,
    /// Processor time for the slowest text, in seconds.
    pub slowest_seconds: f64,
    /// The size limit of the driver's cache, in bytes.
    pub limit: u64,
    /// Whether all texts fit into the driver's cache.
    pub fits: bool,
    /// The option that would make machine code for this GPU.
    pub gencode: Option<String>,
}

/// The first start of one file on one GPU.
#[derive(Debug, Serialize)]
pub struct OfFile {
    /// The file, and the member of a wheel.
    pub file: String,
    /// Containers that run as they are.
    pub run: usize,
    /// Containers that are compiled.
    pub jit: usize,
    /// Containers that are linked again when the program starts.
    pub jit_link: usize,
    /// Containers that cannot be loaded.
    pub fail: usize,
    /// Relocatable containers, which a link decides about.
    pub not_linked: usize,
    /// The texts that are compiled.
    pub texts: Vec<TextRow>,
}

/// One text.
#[derive(Debug, Serialize)]
pub struct TextRow {
    /// The member of a static library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The container's number in the file, from 0.
    pub container: usize,
    /// The image's number in the container, from 0.
    pub image: usize,
    /// `compute_80`.
    pub target: String,
    /// Whether the text is linked with others when the program starts.
    pub linked: bool,
    /// Whether the text equals an earlier one, and so costs nothing more.
    pub repeated: bool,
    /// The names of its kernels, demangled.
    pub kernels: Vec<String>,
    /// The size of the text, in bytes.
    pub ptx_bytes: u64,
    /// The size of the machine code, in bytes.
    pub cubin_bytes: u64,
    /// Processor time, in seconds.
    pub seconds: f64,
    /// Whether the time and the size were measured.
    pub measured: bool,
    /// Why they were not measured, or the problem with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Writes the result.
pub fn write(advice: &JitAdvice, out: &mut dyn Write) -> io::Result<()> {
    for on in &advice.gpus {
        write_gpu(on, out)?;
    }
    writeln!(out)?;
    write_remarks(&advice.remarks, out)?;
    if let Some(ptxas) = &advice.ptxas {
        writeln!(
            out,
            "\nMeasured with {}: its CPU time, and the size of what it makes. The driver has a \
             compiler of its own.",
            ptxas.display()
        )?;
    }
    Ok(())
}

fn write_gpu(on: &OnGpu, out: &mut dyn Write) -> io::Result<()> {
    if on.texts == 0 {
        writeln!(out, "{}: nothing is compiled at start", on.gpu)?;
    } else {
        let how = match (on.measured, on.texts) {
            (0, _) => "estimated".to_owned(),
            (measured, all) if measured == all => "measured".to_owned(),
            (measured, all) => format!("{measured} of {all} measured, the rest estimated"),
        };
        writeln!(
            out,
            "{}: the first start compiles {}, {}, to {} of machine code, in {} ({how}); {} are stored",
            on.gpu,
            count(on.texts, "PTX text"),
            format_bytes(on.ptx_bytes),
            format_bytes(on.cubin_bytes),
            seconds(on.seconds),
            format_bytes(on.kept_bytes),
        )?;
    }
    for file in &on.files {
        let sums = [
            (file.run, "run as they are"),
            (file.jit, "compiled"),
            (file.jit_link, "relinked"),
            (file.not_linked, "not linked yet"),
            (file.fail, "fail"),
        ];
        let parts: Vec<String> = sums
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!("{number} {word}"))
            .collect();
        let parts = match parts.is_empty() {
            true => "nothing to load".to_owned(),
            false => format!("containers: {}", parts.join(", ")),
        };
        writeln!(out, "  {}: {parts}", plain(&file.file))?;
        write_texts(&file.texts, out)?;
    }
    Ok(())
}

fn write_texts(texts: &[TextRow], out: &mut dyn Write) -> io::Result<()> {
    let mut costly: Vec<&TextRow> = texts.iter().filter(|row| !row.repeated).collect();
    costly.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    for row in costly.iter().take(SHOWN) {
        let about = if row.measured { "" } else { "about " };
        let first = row.kernels.first();
        let kernel = first.map(|name| format!(": {}", shortened(&plain(name), 60)));
        writeln!(
            out,
            "    container {} {}  {about}{}, {about}{}, {}{}",
            row.container,
            row.target,
            seconds(row.seconds),
            format_bytes(row.cubin_bytes),
            count(row.kernels.len(), "kernel"),
            kernel.unwrap_or_default()
        )?;
        if let Some(note) = &row.note {
            writeln!(out, "      {}", plain(note))?;
        }
    }
    if costly.len() > SHOWN {
        writeln!(out, "    and {} that take less", costly.len() - SHOWN)?;
    }
    Ok(())
}
