//! Has nvcc compile a source to LTO-IR in a fat binary.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::EmbedError;
use crate::depfile::inputs_of;

/// How sources are compiled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nvcc {
    /// The program, after its launcher if there is one.
    pub command: Vec<OsString>,
    pub architectures: Vec<String>,
    pub options: Vec<OsString>,
}

impl Nvcc {
    /// Compiles; the fat binary, and the files that nvcc read.
    pub(crate) fn compile(
        &self,
        source: &Path,
        scratch: &Path,
    ) -> Result<(Vec<u8>, Vec<PathBuf>), EmbedError> {
        let fails = |why: String| EmbedError::new(format!("{}: {why}", source.display()));
        let [program, first @ ..] = self.command.as_slice() else {
            return Err(fails("there is no nvcc to compile it".to_owned()));
        };
        let architectures = self.architectures.iter().map(|text| number_of(text));
        let architectures: Vec<String> = architectures.collect::<Result<_, _>>()?;
        if architectures.is_empty() {
            let why = "name the architectures to compile for (80, 90)";
            return Err(fails(why.to_owned()));
        }
        let (output, dependencies) = (scratch.join("f.fatbin"), scratch.join("f.d"));
        let mut command = Command::new(program);
        command.args(first);
        // Without relocatable code, a function that nothing in the source calls would not be in it.
        command.args(["-fatbin", "-rdc=true"]);
        for number in &architectures {
            command.arg(format!(
                "--generate-code=arch=compute_{number},code=lto_{number}"
            ));
        }
        command.args(&self.options);
        command.arg("-MD").arg("-MF").arg(&dependencies);
        command.arg("-o").arg(&output).arg(source);
        let ran = command.output();
        let ran = ran.map_err(|error| {
            let program = Path::new(program).display();
            fails(format!("{program} cannot be started: {error}"))
        })?;
        let said = String::from_utf8_lossy(&ran.stderr);
        let said = format!("{}{said}", String::from_utf8_lossy(&ran.stdout));
        if !ran.status.success() {
            return Err(fails(format!(
                "it does not compile to LTO-IR ({})\n{}",
                ran.status,
                said.trim_end()
            )));
        }
        let read = |path: &Path| {
            let bytes = std::fs::read(path);
            bytes.map_err(|error| fails(format!("nvcc made no {}: {error}", path.display())))
        };
        let inputs = inputs_of(&read(&dependencies)?);
        Ok((read(&output)?, inputs))
    }
}

/// `90a` of `90a`, `sm_90a`, `lto_90a`, and of CMake's `90a-real`.
fn number_of(text: &str) -> Result<String, EmbedError> {
    let plain = text.trim();
    let plain = plain
        .strip_suffix("-real")
        .or_else(|| plain.strip_suffix("-virtual"))
        .unwrap_or(plain);
    let prefixes = ["sm_", "compute_", "lto_"];
    let plain = prefixes
        .iter()
        .find_map(|prefix| plain.strip_prefix(prefix))
        .unwrap_or(plain);
    let digits = plain.strip_suffix(['a', 'f']).unwrap_or(plain);
    match digits.len() {
        2 | 3 if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(plain.to_owned()),
        _ => Err(EmbedError::new(format!(
            "{text:?} is no architecture: write 80, 90 or 90a"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_in_every_spelling() {
        for text in [
            "90a",
            "sm_90a",
            "compute_90a",
            "lto_90a",
            "90a-real",
            "90a-virtual",
        ] {
            assert_eq!(number_of(text).expect("an architecture"), "90a");
        }
        for text in ["", "native", "all", "9", "sm_", "90b", "-1"] {
            let error = number_of(text).expect_err("none").to_string();
            assert!(error.contains("no architecture"), "{error}");
        }
    }
}
