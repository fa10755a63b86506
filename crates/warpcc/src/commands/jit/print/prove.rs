//! Prints the result of `warpcc jit prove`: how many texts were assembled, and each that was not.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use warpcc_jit::Complaint;

use crate::commands::plain_text::{count, plain};

/// Kernels that are named where a complaint names none; `--json` has them all.
const NAMED: usize = 5;

/// The result of `warpcc jit prove`.
#[derive(Debug, Serialize)]
pub struct Proof {
    /// PTX texts in the files.
    pub texts: usize,
    /// Number of distinct texts.
    pub different: usize,
    /// The `ptxas` that assembled the texts.
    pub ptxas: PathBuf,
    /// The results by architecture.
    pub tried: Vec<Tried>,
    /// Texts that none of the architectures can run, so that nothing was tried.
    pub not_for_any: usize,
    /// Texts that are refused.
    pub failures: Vec<RefusedText>,
    /// Texts without a result: the assembler was too slow, or crashed.
    pub unknown: Vec<RefusedText>,
    /// The driver's results; `None` where the driver was not asked.
    pub driver: Option<ByDriver>,
}

/// The results for one architecture.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// `sm_90`.
    pub target: String,
    /// Assembled.
    pub assembled: usize,
    /// Refused.
    pub refused: usize,
}

/// The results with a driver.
#[derive(Debug, Serialize)]
pub struct ByDriver {
    /// `sm_90`.
    pub gpu: String,
    /// The GPU's name.
    pub name: String,
    /// The driver's CUDA version.
    pub driver: String,
    /// Compiled and loaded.
    pub compiled: usize,
    /// Refused.
    pub refused: usize,
    /// Texts for other GPUs, or relocatable.
    pub not_for_it: usize,
}

/// One text, and its problems.
#[derive(Debug, Serialize)]
pub struct RefusedText {
    /// The file, and the member of a wheel.
    pub file: String,
    /// The member of a static library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The container's number in the file, from 0.
    pub container: usize,
    /// The image's number in the container, from 0.
    pub image: usize,
    /// `compute_80`.
    pub target: String,
    /// The architecture that it was assembled for, or the driver that compiled it.
    pub by: String,
    /// Messages, each with the kernel that it is about where that is known.
    pub complaints: Vec<Complaint>,
    /// All kernels of the text; none will run.
    pub kernels: Vec<String>,
}

/// Writes the result.
pub fn write(proof: &Proof, out: &mut dyn Write) -> io::Result<()> {
    if proof.texts == 0 {
        return writeln!(
            out,
            "There is no PTX: nothing here runs on other GPUs than those it was compiled for."
        );
    }
    let different = match proof.texts == proof.different {
        true => String::new(),
        false => format!(", {} of them different", proof.different),
    };
    writeln!(out, "{}{different}", count(proof.texts, "PTX text"))?;
    for tried in &proof.tried {
        let refused = match tried.refused {
            0 => String::new(),
            some => format!(", {some} REFUSED"),
        };
        writeln!(
            out,
            "  {:<8} {} assembled{refused}",
            tried.target, tried.assembled
        )?;
    }
    if proof.not_for_any > 0 {
        writeln!(
            out,
            "  {} not tried: not for any of these architectures",
            proof.not_for_any
        )?;
    }
    if let Some(driver) = &proof.driver {
        let refused = match driver.refused {
            0 => String::new(),
            some => format!(", {some} REFUSED"),
        };
        writeln!(
            out,
            "  driver of CUDA {}, {} ({}): {} compiled{refused}, {} not for it",
            driver.driver,
            plain(&driver.name),
            driver.gpu,
            driver.compiled,
            driver.not_for_it
        )?;
    }
    for failure in &proof.failures {
        write_failure(failure, "refused", out)?;
    }
    for failure in &proof.unknown {
        write_failure(failure, "not known", out)?;
    }
    Ok(())
}

fn write_failure(failure: &RefusedText, word: &str, out: &mut dyn Write) -> io::Result<()> {
    let member = failure.member.as_deref();
    let member = member
        .map(|m| format!("({})", plain(m)))
        .unwrap_or_default();
    writeln!(
        out,
        "{word}: {}{member} container {} image {}, {} for {}",
        plain(&failure.file),
        failure.container,
        failure.image,
        failure.target,
        failure.by
    )?;
    for complaint in &failure.complaints {
        let kernel = complaint.kernel.as_deref();
        let kernel = kernel
            .map(|k| format!("{}: ", plain(k)))
            .unwrap_or_default();
        writeln!(out, "  {kernel}{}", plain(&complaint.text))?;
    }
    let named = failure.complaints.iter().any(|c| c.kernel.is_some());
    let others = if named { "in all" } else { "in it" };
    let mut kernels: Vec<String> = failure
        .kernels
        .iter()
        .take(NAMED)
        .map(|k| plain(k))
        .collect();
    if failure.kernels.len() > NAMED {
        kernels.push("…".to_owned());
    }
    writeln!(
        out,
        "  {others} {}: {}",
        count(failure.kernels.len(), "kernel"),
        kernels.join(", ")
    )
}
