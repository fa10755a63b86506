//! Decides which commands still run after a command has failed, and whose messages are shown.

use warpcc_plan::{TaskGraph, Tool};

/// Which commands nvcc still runs after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It stops: no later command counts.
    Stop,
    /// Under `--threads` commands that run at the same time as the failing one run to their end.
    FinishPhase,
}

impl OnFailure {
    /// The rank of a task: after a task has failed, tasks of a higher rank do not count.
    pub fn rank(self, graph: &TaskGraph, task: usize) -> usize {
        match self {
            Self::Stop => task,
            Self::FinishPhase => phase(graph.steps[task].tool),
        }
    }
}

/// The phases of nvcc under `--threads`, in which commands for several architectures run at once.
pub fn phase(tool: Tool) -> usize {
    match tool {
        Tool::Preprocess | Tool::FilterDependencies => 0,
        Tool::CudaFe => 1,
        Tool::Cicc | Tool::Nvvm => 2,
        Tool::Ptxas => 3,
        _ => LATER,
    }
}

/// The phase after the device compile.
pub const LATER: usize = 4;
