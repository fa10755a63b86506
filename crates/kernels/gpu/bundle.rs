//! Many planned kernels as few programs: starting a compiler costs more than a small kernel.

use std::collections::HashMap;
use std::sync::Arc;

use warpcc_kernels::HEADER;
use warpcc_kernels::plan::Launch;
use warpcc_rtc::{CallLimits, CompileRequest, Compiler, Target};

/// Distinct kernels, numbered.
#[derive(Default)]
pub struct Bundle {
    texts: Vec<(String, String)>,
    known: HashMap<String, usize>,
}

impl Bundle {
    /// The number of a launch's kernel.
    pub fn add(&mut self, launch: &Launch) -> usize {
        let text = format!("{}{}", launch.kernel.parameters(), launch.kernel.source());
        *self.known.entry(text.clone()).or_insert_with(|| {
            self.texts.push((launch.kernel.name().to_owned(), text));
            self.texts.len() - 1
        })
    }

    /// The number of kernels.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The kernel's name in its program.
    pub fn name(number: usize) -> String {
        format!("kernel{number}")
    }

    /// A program of some kernels, each in a namespace of its own.
    pub fn program(&self, numbers: &[usize]) -> String {
        let mut program = HEADER.to_owned();
        for &number in numbers {
            let (name, text) = &self.texts[number];
            let text = text.replace(name.as_str(), &Self::name(number));
            program += &format!("namespace n{number} {{\n{text}}}\n");
        }
        program
    }

    /// The image of some kernels in one program.
    pub fn image(
        &self,
        compiler: &Compiler,
        target: Target,
        numbers: &[usize],
    ) -> Result<Arc<[u8]>, String> {
        let request = CompileRequest::new("bundle", self.program(numbers), target);
        match compiler.compile(&request, &CallLimits::default()) {
            Ok(compiled) => Ok(compiled.image),
            Err(error) => Err(error.to_string()),
        }
    }
}
