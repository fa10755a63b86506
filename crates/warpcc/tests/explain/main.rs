//! Tests `warpcc explain` against nvcc's own files, cuobjdump, readelf, and a browser.

#[path = "../space/mod.rs"]
mod space;

mod browser;
mod cli_page;
mod modes;
mod oracle;
mod refused;
mod tutorial;

use std::path::{Path, PathBuf};

use space::{Outcome, Program, TestSpace};
use warpcc_explain::{Block, Explanation, FileExplanation, StepExplanation, Table};

/// Two architectures, and PTX of one.
const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";

/// A kernel, a variable, a launch, and code that depends on the architecture.
const KERNEL: &str = "__device__ int launches;\n\
    __global__ void scale(float *p, float by) {\n\
    #ifdef __CUDA_ARCH__\n\
      if (threadIdx.x == 0) atomicAdd(&launches, 1);\n\
    #endif\n\
      p[threadIdx.x] *= by;\n\
    }\n\
    void run(float *p) {\n\
      scale<<<1, 32>>>(p, 2.0f);\n\
    }\n";

/// Runs `warpcc explain FLAGS NVCC ARGS`.
fn explain(space: &TestSpace, flags: &str, args: &str) -> Outcome {
    let mut words = vec!["explain".to_owned()];
    words.extend(space.words(flags));
    words.push(space.toolkit.nvcc.display().to_string());
    words.extend(space.words(args));
    let outcome = space.run(&Program::Other(TestSpace::warpcc(), Vec::new()), &words);
    space.demand_no_leftovers("explain");
    outcome
}

/// The explanation from `--json`.
fn explanation(space: &TestSpace, args: &str) -> Explanation {
    let outcome = explain(space, "--json", args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    serde_json::from_slice(&outcome.stdout).expect("an explanation in JSON")
}

/// Runs nvcc itself with the same arguments. Gives its outcome, and the folder of its intermediate files.
fn reference(space: &TestSpace, args: &str) -> (Outcome, PathBuf) {
    let kept = space.beside("kept");
    space::remove_tree(&kept);
    let outcome = space.run(&Program::NvccKeep(kept.clone()), &space.words(args));
    (outcome, kept)
}

/// The file of this name that a step wrote; the last one where several steps did.
fn file<'s>(explanation: &'s Explanation, name: &str) -> &'s FileExplanation {
    let found = explanation
        .files()
        .filter(|(_, file)| file.name == name)
        .last();
    found
        .unwrap_or_else(|| panic!("no {name} in the explanation"))
        .1
}

/// The steps of a tool.
fn steps<'s>(explanation: &'s Explanation, tool: &str) -> Vec<&'s StepExplanation> {
    explanation
        .steps
        .iter()
        .filter(|step| step.tool == tool)
        .collect()
}

/// A table of a file, by the beginning of its title.
fn table<'f>(file: &'f FileExplanation, title: &str) -> &'f Table {
    let tables = file.blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    let found = tables.clone().find(|table| table.title.starts_with(title));
    found.unwrap_or_else(|| {
        let titles: Vec<&str> = tables.map(|table| table.title.as_str()).collect();
        panic!("no table {title:?} of {} but {titles:?}", file.name)
    })
}

/// The cells of a table's column.
fn column<'t>(table: &'t Table, name: &str) -> Vec<&'t str> {
    let at = table.columns.iter().position(|column| column == name);
    let at = at.unwrap_or_else(|| panic!("no column {name:?} but {:?}", table.columns));
    table.rows.iter().map(|row| row[at].as_str()).collect()
}

/// A fact of a file, by its name.
fn fact<'f>(file: &'f FileExplanation, name: &str) -> &'f str {
    let facts = file.blocks.iter().flat_map(|block| match block {
        Block::Facts { rows, .. } => rows.as_slice(),
        _ => &[],
    });
    let found = facts.clone().find(|fact| fact.name == name);
    let found = found.unwrap_or_else(|| {
        panic!(
            "no fact {name:?} of {}: {facts:?}",
            file.name,
            facts = facts.collect::<Vec<_>>()
        )
    });
    &found.value
}

/// All sentences and lines of a file.
fn words(file: &FileExplanation) -> String {
    let lines = file.blocks.iter().flat_map(|block| match block {
        Block::Text { text } => vec![text.clone()],
        Block::Excerpt { lines, .. } => lines.iter().map(|line| line.text.clone()).collect(),
        _ => Vec::new(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text of a file that nvcc kept.
fn kept_text(kept: &Path, name: &str) -> String {
    let path = kept.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
