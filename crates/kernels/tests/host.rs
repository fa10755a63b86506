//! Planned kernels as they are, but compiled as C++ and run on this machine, block by block and thread by thread.
#![expect(
    unsafe_code,
    reason = "the compiled kernels are called in a library, with addresses as a GPU gets them"
)]

#[path = "../gpu/bundle.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod bundle;
#[path = "../gpu/verify/cases.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod cases;
/// The part of a device that `cases` needs: the address at which plans assume that memory begins.
mod device {
    pub const BASE: u64 = 1 << 40;
}
#[path = "../gpu/reference/mod.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod reference;

use std::ffi::c_void;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bundle::Bundle;
use cases::{Case, GUARD, POISON};
use warpcc_kernels::plan::{Argument, Launch};

const HOST: &str = concat!(
    include_str!("host.h"),
    r#"
#include <barrier>
#include <thread>
#include <utility>
#include <vector>
#define __global__ static
#define __launch_bounds__(...)
static place blockIdx, blockDim;
static thread_local place threadIdx;
static std::barrier<>* all_threads;
static inline void __syncthreads() { all_threads->arrive_and_wait(); }
static inline void __syncwarp() { all_threads->arrive_and_wait(); }
// A block's threads run one after another, or at once where they wait for each other.
template <class... P, size_t... I>
static void start(void (*kernel)(P...), void** given, unsigned wide, unsigned high, unsigned block, bool at_once, std::index_sequence<I...>) {
  auto one = [&](unsigned thread) { threadIdx.x = thread; kernel(*(typename std::remove_const<P>::type*)given[I]...); };
  blockDim.x = block;
  for (blockIdx.y = 0; blockIdx.y < high; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < wide; ++blockIdx.x) {
      if (!at_once) {
        for (unsigned thread = 0; thread < block; ++thread) one(thread);
        continue;
      }
      std::barrier<> together(block);
      all_threads = &together;
      std::vector<std::thread> threads;
      for (unsigned thread = 0; thread < block; ++thread) threads.emplace_back(one, thread);
      for (auto& thread : threads) thread.join();
    }
}
template <class... P>
static void start(void (*kernel)(P...), void** given, unsigned wide, unsigned high, unsigned block, bool at_once) {
  start(kernel, given, wide, high, block, at_once, std::index_sequence_for<P...>());
}
"#
);

type Start = unsafe extern "C" fn(u32, *mut *mut c_void, u32, u32, u32, bool);

/// Memory at the places that plans were made for.
struct Memory {
    words: Vec<u128>,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        Self {
            words: vec![0; bytes / 16 + 64],
        }
    }

    /// The address of plans' `BASE`: a multiple of 512, as a GPU's allocations are.
    fn base(&self) -> u64 {
        (self.words.as_ptr() as u64).next_multiple_of(512)
    }

    fn slice(&mut self, address: u64, bytes: usize) -> &mut [u8] {
        let offset = (self.base() + (address - device::BASE)) - self.words.as_ptr() as u64;
        let all = unsafe {
            std::slice::from_raw_parts_mut(
                self.words.as_mut_ptr().cast::<u8>(),
                self.words.len() * 16,
            )
        };
        &mut all[offset as usize..offset as usize + bytes]
    }
}

fn launch(start: Start, kernel: usize, launch: &Launch, base: u64, workspace: u64) {
    let mut pointers = Vec::new();
    let mut longer: Vec<Vec<u128>> = Vec::new();
    for argument in &launch.arguments {
        let bytes = match argument {
            Argument::Address(address) => (address - device::BASE + base).to_ne_bytes().to_vec(),
            Argument::Workspace(offset) => (workspace + offset - device::BASE + base)
                .to_ne_bytes()
                .to_vec(),
            Argument::Bytes(bytes) => bytes.to_vec(),
        };
        let mut held = vec![0u128; bytes.len().div_ceil(16)];
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                held.as_mut_ptr().cast::<u8>(),
                bytes.len(),
            );
        }
        longer.push(held);
    }
    for held in &mut longer {
        pointers.push(held.as_mut_ptr().cast::<c_void>());
    }
    unsafe {
        start(
            kernel as u32,
            pointers.as_mut_ptr(),
            launch.grid.0,
            launch.grid.1,
            launch.block,
            matches!(launch.kernel.name(), "warpcc_reduce" | "warpcc_parts"),
        )
    };
}

fn run(case: &Case, kernels: &[usize], start: Start, memory: &mut Memory) -> Result<(), String> {
    for (address, bytes) in &case.inputs {
        memory.slice(*address, bytes.len()).copy_from_slice(bytes);
    }
    let (output, size) = case.output;
    let whole = memory.slice(output - GUARD, (size + 2 * GUARD) as usize);
    whole.fill(POISON);
    if let Some(before) = &case.before {
        whole[GUARD as usize..][..before.len()].copy_from_slice(before);
    }
    let base = memory.base();
    for (each, kernel) in case.plan.launches.iter().zip(kernels) {
        launch(start, *kernel, each, base, case.workspace);
    }
    let whole = memory.slice(output - GUARD, (size + 2 * GUARD) as usize);
    let (front, rest) = whole.split_at(GUARD as usize);
    let (middle, back) = rest.split_at(size as usize);
    if front.iter().chain(back).any(|byte| *byte != POISON) {
        return Err("it wrote beyond its output".to_owned());
    }
    (case.judge)(middle)
}

/// Cases and the numbers of their kernels: of each group a share. The functions have a test of their own.
fn chosen(seed: u64, bundle: &mut Bundle) -> Vec<(Case, Vec<usize>)> {
    let mut chosen: Vec<(Case, Vec<usize>)> = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for case in cases::of_plans(&mut reference::Random(seed)) {
        let case = case.unwrap_or_else(|why| panic!("seed {seed}: no plan: {why}"));
        let count = seen.entry(case.group).or_insert(0usize);
        *count += 1;
        let every = match case.group {
            "fused" => 1,
            // 256 threads for each block: what few blocks do.
            "reduce" if case.plan.launches.iter().any(|l| l.grid.0 * l.grid.1 > 1) => continue,
            "reduce" => 100,
            "broadcasting" => 30,
            "offsets" => 61,
            _ => continue,
        };
        if (*count + seed as usize).is_multiple_of(every) {
            let launches = case.plan.launches.iter();
            let kernels = launches.map(|launch| bundle.add(launch)).collect();
            chosen.push((case, kernels));
        }
    }
    chosen
}

/// All kernels as a library for the host.
fn host_library(bundle: &Bundle, folder: &Path) -> PathBuf {
    let numbers: Vec<usize> = (0..bundle.len()).collect();
    let mut text = format!(
        "{HOST}{}\nextern \"C\" void start_kernel(unsigned number, void** given, unsigned wide, unsigned high, unsigned block, bool at_once) {{\n  switch (number) {{\n",
        bundle.program(&numbers)
    );
    for number in numbers {
        let _ = writeln!(
            text,
            "    case {number}: start(n{number}::kernel{number}, given, wide, high, block, at_once); break;"
        );
    }
    text += "  }\n}\n";
    let (source, library) = (folder.join("kernels.cpp"), folder.join("kernels.so"));
    // A kernel has C's name on a GPU; here each stays in its namespace.
    let text = text.replace("extern \"C\" __global__", "__global__");
    std::fs::write(&source, text).expect("room");
    let built = Command::new("g++")
        .args([
            "-std=c++20",
            "-O0",
            "-shared",
            "-fPIC",
            "-fno-strict-aliasing",
            "-w",
            "-o",
        ])
        .arg(&library)
        .arg(&source)
        .output()
        .expect("g++");
    let said = String::from_utf8_lossy(&built.stderr);
    let said: String = said.chars().take(3000).collect();
    assert!(built.status.success(), "{said}");
    library
}

#[test]
fn planned_kernels_give_what_they_must() {
    // The same cases in each run; rtc-verify takes others each time.
    let seed = 20_261_121u64;
    let mut bundle = Bundle::default();
    let chosen = chosen(seed, &mut bundle);
    let folder = tempfile::tempdir().unwrap();
    let library = host_library(&bundle, folder.path());
    let library = unsafe { libloading::Library::new(&library) }.unwrap();
    let start: Start = *unsafe { library.get(b"start_kernel") }.unwrap();
    let mut memory = Memory::new(8 << 20);
    let mut wrong = Vec::new();
    let count = chosen.len();
    for (case, kernels) in &chosen {
        if let Err(why) = run(case, kernels, start, &mut memory) {
            wrong.push(format!("{}: {}: {why}", case.group, case.label));
        }
    }
    println!("{count} cases, {} kernels", bundle.len());
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} of {count} wrong\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
