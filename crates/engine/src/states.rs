//! The state of every task. It is changed in one place only, so that the lists of ready, running and finished tasks always
//! agree.

use warpcc_plan::TaskGraph;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Some task that it needs is not done.
    Waiting,
    /// It may start.
    Ready,
    /// A thread works on it.
    Running,
    /// It succeeded.
    Done,
    /// It failed, or never started because another task failed.
    Over,
}

/// All tasks of a run.
pub struct TaskStates {
    states: Vec<TaskState>,
    needs: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
    priority: Vec<u64>,
}

impl TaskStates {
    /// All tasks wait, except those that need nothing. `expected` returns how many milliseconds a task will take.
    pub fn new(graph: &TaskGraph, in_plan_order: bool, expected: impl Fn(usize) -> u64) -> Self {
        let count = graph.steps.len();
        let needs: Vec<Vec<usize>> = (0..count)
            .map(|i| {
                if in_plan_order {
                    i.checked_sub(1).into_iter().collect()
                } else {
                    graph.needs(i).to_vec()
                }
            })
            .collect();
        let mut dependents = vec![Vec::new(); count];
        for (i, needs) in needs.iter().enumerate() {
            for &need in needs {
                dependents[need].push(i);
            }
        }
        // The task with the longest expected path to the end goes first. A task only needs tasks with a lower index.
        let mut priority = vec![0; count];
        for i in (0..count).rev() {
            let after = dependents[i]
                .iter()
                .map(|&d| priority[d])
                .max()
                .unwrap_or(0);
            priority[i] = expected(i) + after;
        }
        let states = needs
            .iter()
            .map(|n| {
                if n.is_empty() {
                    TaskState::Ready
                } else {
                    TaskState::Waiting
                }
            })
            .collect();
        Self {
            states,
            needs,
            dependents,
            priority,
        }
    }

    /// The milliseconds from the task's start to the end of the run.
    pub fn priority(&self, task: usize) -> u64 {
        self.priority[task]
    }

    /// The milliseconds from the start of the run to its end.
    pub fn longest(&self) -> u64 {
        self.priority.iter().copied().max().unwrap_or(0)
    }

    /// The state of one task.
    pub fn get(&self, task: usize) -> TaskState {
        self.states[task]
    }

    /// Whether everything that the task needs is done.
    pub fn is_free(&self, task: usize) -> bool {
        self.needs[task]
            .iter()
            .all(|&n| self.states[n] == TaskState::Done)
    }

    /// The ready task with the longest path to the end.
    pub fn next(&self) -> Option<usize> {
        (0..self.states.len())
            .filter(|&i| self.states[i] == TaskState::Ready)
            .max_by_key(|&i| (self.priority[i], std::cmp::Reverse(i)))
    }

    /// Changes a state. No other function does.
    pub fn advance(&mut self, task: usize, to: TaskState) {
        self.states[task] = to;
        if to != TaskState::Done {
            return;
        }
        for d in 0..self.dependents[task].len() {
            let dependent = self.dependents[task][d];
            let free = self.needs[dependent]
                .iter()
                .all(|&n| self.states[n] == TaskState::Done);
            if free && self.states[dependent] == TaskState::Waiting {
                self.states[dependent] = TaskState::Ready;
            }
        }
    }

    /// Lets a task start although one that it needs is not done.
    pub fn release(&mut self, task: usize, need: usize) {
        self.needs[task].retain(|&n| n != need);
        self.dependents[need].retain(|&d| d != task);
        if self.states[task] == TaskState::Waiting && self.is_free(task) {
            self.advance(task, TaskState::Ready);
        }
    }

    /// Whether a task that needs this one may have started. That is only so when this one is done.
    pub fn has_been_used(&self, task: usize) -> bool {
        let is_unused =
            |d: &usize| matches!(self.states[*d], TaskState::Waiting | TaskState::Ready);
        self.states[task] == TaskState::Done && !self.dependents[task].iter().all(is_unused)
    }

    /// Lets a task that is done start again. No task that needs it has started.
    pub fn take_back(&mut self, task: usize) {
        for d in 0..self.dependents[task].len() {
            let dependent = self.dependents[task][d];
            if self.states[dependent] == TaskState::Ready {
                self.advance(dependent, TaskState::Waiting);
            }
        }
        self.advance(task, TaskState::Ready);
    }

    /// After a failure, keeps tasks that do not count any more from starting.
    pub fn cut(&mut self, is_cut: impl Fn(usize) -> bool) {
        for i in 0..self.states.len() {
            if is_cut(i) && matches!(self.states[i], TaskState::Waiting | TaskState::Ready) {
                self.advance(i, TaskState::Over);
            }
        }
    }

    /// Keeps all tasks from starting.
    pub fn stop(&mut self) {
        for i in 0..self.states.len() {
            if matches!(self.states[i], TaskState::Waiting | TaskState::Ready) {
                self.advance(i, TaskState::Over);
            }
        }
    }

    /// Whether no task can start and none is running.
    pub fn is_finished(&self) -> bool {
        !self
            .states
            .iter()
            .any(|s| matches!(s, TaskState::Ready | TaskState::Running))
    }
}
