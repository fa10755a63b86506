//! Changes to the graph that let work start with what an earlier run wrote, or a step before its end. The real results then confirm it
//! (docs/design/overlap.md).
//!
//! [`predict_module_id`]: cicc reads only the module id from cudafe++. With the id of the last run it need not wait; the id
//! that cudafe++ then writes decides whether the result counts.
//!
//! [`predict_stub`] and [`take_announced_stub`]: the host compile need not wait for the stub that cicc writes.

use crate::assumed::{Assumed, Expected, Prepared};
use crate::graph::TaskGraph;
use crate::step::{FileId, Part, Tool};

/// The name under which a module id is stored: the arguments from which cudafe++ makes it.
pub fn module_id_subject(graph: &TaskGraph) -> Option<Vec<String>> {
    let step = graph.steps.iter().find(|s| s.tool == Tool::CudaFe)?;
    let one = graph
        .steps
        .iter()
        .filter(|s| s.tool == Tool::CudaFe)
        .count()
        == 1;
    let value = |flag: &str| {
        let at = step.args.iter().position(|a| a.as_text() == Some(flag))?;
        step.args.get(at + 1)?.as_text().map(str::to_owned)
    };
    let subject = vec![
        value("--orig_src_path_name")?,
        value("--orig_src_file_name")?,
    ];
    (one && module_id_file(graph).is_some()).then_some(subject)
}

/// The module id file, if one cudafe++ writes it and ciccs read it.
pub fn module_id_file(graph: &TaskGraph) -> Option<FileId> {
    let writer = graph.steps.iter().find(|s| s.tool == Tool::CudaFe)?;
    let read = |id: &FileId| {
        graph
            .steps
            .iter()
            .any(|s| s.tool == Tool::Cicc && s.reads.contains(id))
    };
    writer
        .writes
        .iter()
        .copied()
        .find(|id| graph.file(*id).is_module_id() && read(id))
}

/// Whether an id can be the same next time: without an external function to name it after, it contains cudafe++'s process
/// id.
pub fn is_lasting_module_id(id: &str) -> bool {
    let mut parts = id.trim_end().rsplit('_');
    let (last, before) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let is_process = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let is_checksum = before.len() == 8 && before.bytes().all(|b| b.is_ascii_hexdigit());
    !(id.is_empty() || is_process && is_checksum)
}

/// Lets every cicc start with `id`. The id that cudafe++ writes confirms it.
pub fn predict_module_id(graph: &mut TaskGraph, id: &str) {
    let Some(actual) = module_id_file(graph) else {
        return;
    };
    if graph.private.is_empty() {
        return;
    }
    let name = graph.file(actual).name().to_owned();
    let predicted = graph.add_temporary(format!("{}real/predicted.{name}", graph.private), None);
    graph.prepared.push(Prepared {
        file: predicted,
        text: id.to_owned(),
    });
    graph.assumed.push(Assumed {
        file: actual,
        expected: Expected::Text(id.to_owned()),
        stand_in: predicted,
    });
    for step in graph.steps.iter_mut().filter(|s| s.tool == Tool::Cicc) {
        for read in step.reads.iter_mut().filter(|r| **r == actual) {
            *read = predicted;
        }
        for part in step.args.iter_mut().flat_map(|a| &mut a.0) {
            if *part == Part::File(actual) {
                *part = Part::File(predicted);
            }
        }
    }
    graph.recount_needs();
}

/// The stub that a split host compile includes, written by the last cicc.
pub fn stub_file(graph: &TaskGraph) -> Option<FileId> {
    let mut compiles = graph.steps.iter().filter(|s| s.tool == Tool::HostAssembly);
    let (Some(step), None) = (compiles.next(), compiles.next()) else {
        return None;
    };
    step.reads.iter().copied().find(|&id| {
        graph
            .file(id)
            .writer
            .is_some_and(|w| graph.steps[w].tool == Tool::Cicc)
    })
}

/// Lets the split host compile start with `stub`, the text of the last run. The stub that cicc writes confirms it. The host
/// compile works in a folder of its own, where it does not find cicc's file.
pub fn predict_stub(graph: &mut TaskGraph, stub: &str) {
    let Some(actual) = stub_file(graph) else {
        return;
    };
    let Some(at) = graph
        .steps
        .iter()
        .position(|s| s.tool == Tool::HostAssembly)
    else {
        return;
    };
    let predicted = stand_in_for_stub(graph, actual, at);
    graph.prepared.push(Prepared {
        file: predicted,
        text: stub.to_owned(),
    });
    graph.assumed.push(Assumed {
        file: actual,
        expected: Expected::Text(stub.to_owned()),
        stand_in: predicted,
    });
    graph.recount_needs();
}

/// Gives the host compile a stub of its own, in a folder where it does not find cicc's file.
fn stand_in_for_stub(graph: &mut TaskGraph, actual: FileId, at: usize) -> FileId {
    let folder = format!("{}host/", graph.private);
    let name = graph.file(actual).name().to_owned();
    let stand_in = graph.add_temporary(format!("{folder}{name}"), None);
    // cudafe++'s output and the stub's placeholder are in that folder too, because a quoted #include looks there first.
    let mut reads = graph.steps[at].reads.clone();
    for id in &mut reads {
        if *id == actual {
            *id = stand_in;
            continue;
        }
        let name = graph.file(*id).name().to_owned();
        graph.files[id.0 as usize].path = format!("{folder}{name}");
    }
    graph.steps[at].reads = reads;
    stand_in
}

/// Lets the split host compile start as soon as cicc announces its stub: when its front end is done, and libNVVM begins. The
/// stub that is there at cicc's end confirms it.
pub fn take_announced_stub(graph: &mut TaskGraph) {
    let Some(actual) = stub_file(graph) else {
        return;
    };
    let Some(compile) = graph
        .steps
        .iter()
        .position(|s| s.tool == Tool::HostAssembly)
    else {
        return;
    };
    let stand_in = stand_in_for_stub(graph, actual, compile);
    graph.assumed.push(Assumed {
        file: actual,
        expected: Expected::Announced,
        stand_in,
    });
    graph.recount_needs();
}
