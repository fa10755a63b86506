//! The timeline of a build: the engine's run as the reports want it.

use std::time::Duration;

use warpcc_engine::StepOutcome;
use warpcc_plan::Step;

use super::timeline::{FileRole, FileRow, Run, TaskOutcome, TaskRow};
use crate::build::Built;
use crate::request::Request;

/// The engine's run as the reports want it.
pub fn timeline_of(request: &Request, built: &Built, wall: Duration) -> Run {
    let graph = &built.graph;
    let size_of = |id: usize| {
        built
            .run
            .tasks
            .iter()
            .flat_map(|t| &t.files)
            .find(|(file, _)| *file == id)
            .and_then(|(_, size)| *size)
            .or_else(|| {
                std::fs::metadata(request.absolute(&graph.files[id].path))
                    .ok()
                    .map(|m| m.len())
            })
    };
    let rows = built
        .run
        .tasks
        .iter()
        .map(|task| {
            let step: &Step = &graph.steps[task.step];
            let file = |id: &warpcc_plan::FileId, role| FileRow {
                name: graph.file(*id).name().to_owned(),
                size: size_of(id.0 as usize),
                role,
            };
            let mut files: Vec<FileRow> = step
                .reads
                .iter()
                .map(|id| file(id, FileRole::Reads))
                .collect();
            files.extend(step.writes.iter().map(|id| file(id, FileRole::Writes)));
            let why_edges = step
                .reads
                .iter()
                .filter_map(|id| Some((graph.file(*id).writer?, graph.file(*id).name().to_owned())))
                .collect();
            TaskRow {
                number: task.step,
                tool: step.tool.name().to_owned(),
                arch: step.arch.clone(),
                label: step
                    .writes
                    .first()
                    .map_or(String::new(), |id| graph.file(*id).name().to_owned()),
                command: step.raw.clone(),
                started: task.started,
                finished: task.finished,
                user: task.user,
                system: task.system,
                peak_kib: task.peak_kib,
                outcome: match task.outcome {
                    StepOutcome::Ran => TaskOutcome::Ran,
                    StepOutcome::Hit => TaskOutcome::Hit,
                    StepOutcome::Skipped => TaskOutcome::Skipped,
                    StepOutcome::Failed(code) => TaskOutcome::Failed(code),
                },
                files,
                needs: graph.needs(task.step).to_vec(),
                why_edges,
            }
        })
        .collect();
    Run {
        title: request.invocation.inputs.join(" "),
        rows,
        environment: built.graph.environment.clone(),
        wall,
    }
}
