//! Many planned kernels as few programs, compiled side by side: a compiler's start costs more than a small kernel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use warpcc_rtc::kernels::HEADER;
use warpcc_rtc::kernels::plan::Launch;
use warpcc_rtc::{Compiler, Limits, Request, Target};

/// Distinct kernels, numbered.
#[derive(Default)]
pub struct Bundle {
    texts: Vec<(String, String)>,
    known: HashMap<String, usize>,
}

impl Bundle {
    /// The number of a launch's kernel.
    pub fn add(&mut self, launch: &Launch) -> usize {
        let text = format!("{}{}", launch.parameters, launch.source);
        *self.known.entry(text.clone()).or_insert_with(|| {
            self.texts.push((launch.name.clone(), text));
            self.texts.len() - 1
        })
    }

    /// How many there are.
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

    /// A kernel's own text.
    pub fn text(&self, number: usize) -> &str {
        &self.texts[number].1
    }

    /// Compiles all, `together` in a program, on `threads` threads; each program's kernels and its
    /// image, or why there is none, as soon as it is there.
    pub fn compile(
        self: &Arc<Self>,
        compiler: &Compiler,
        target: Target,
        together: usize,
        threads: usize,
    ) -> mpsc::Receiver<(Vec<usize>, Result<Arc<[u8]>, String>)> {
        let (sender, receiver) = mpsc::channel();
        let next = Arc::new(AtomicUsize::new(0));
        // Programs take turns through the list, so that each has light and heavy kernels.
        let programs = self.len().div_ceil(together.max(1));
        for _ in 0..threads {
            let (bundle, compiler, sender, next) =
                (self.clone(), compiler.clone(), sender.clone(), next.clone());
            std::thread::spawn(move || {
                loop {
                    let first = next.fetch_add(1, Ordering::Relaxed);
                    if first >= programs {
                        return;
                    }
                    let numbers: Vec<usize> = (first..bundle.len()).step_by(programs).collect();
                    let made = bundle.image(&compiler, target, &numbers);
                    if made.is_ok() || numbers.len() == 1 {
                        let _ = sender.send((numbers, made));
                        continue;
                    }
                    // The kernel at fault costs itself only.
                    for number in numbers {
                        let made = bundle.image(&compiler, target, &[number]);
                        let _ = sender.send((vec![number], made));
                    }
                }
            });
        }
        receiver
    }

    /// The image of some kernels in one program.
    pub fn image(
        &self,
        compiler: &Compiler,
        target: Target,
        numbers: &[usize],
    ) -> Result<Arc<[u8]>, String> {
        let request = Request::new("bundle", self.program(numbers), target);
        match compiler.compile(&request, &Limits::default()) {
            Ok(compiled) => Ok(compiled.image),
            Err(error) => Err(error.to_string()),
        }
    }
}
