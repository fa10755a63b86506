//! The steps of a build as they were measured: what each cost, what it needs, and what it reads and writes.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Tools whose steps may run on a cluster (docs/remote-execution.md).
const LEAVE: [&str; 4] = ["cudafe++", "cicc", "ptxas", "fatbinary"];

/// One step of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The file that is compiled.
    pub file: String,
    /// The tool, and its architecture where it has one.
    pub name: String,
    /// Seconds of a processor.
    pub seconds: f64,
    /// Bytes that it reads of what other steps of the file wrote.
    pub reads: f64,
    /// Bytes that it writes.
    pub writes: f64,
    /// The steps it waits for, by their place in [`Project::steps`].
    pub needs: Vec<usize>,
    /// Whether it may run elsewhere.
    pub leaves: bool,
}

/// Steps, each after those that it needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Project {
    pub steps: Vec<Step>,
}

impl Project {
    /// From what `warpcc report --json` says of a build from an empty cache. `before` are the seconds of a processor that
    /// a call takes before its first step and beside all steps: warpcc's own, and nvcc's dry run.
    pub fn of_report(report: &Value, before: f64) -> Result<Self> {
        let mut steps: Vec<Step> = Vec::new();
        for call in report["calls"].as_array().context("no calls")? {
            let source = call["sources"][0]
                .as_str()
                .context("a call without a source")?;
            let file = source.rsplit('/').next().unwrap_or(source).to_owned();
            let tasks = call["tasks"].as_array().context("a call without tasks")?;
            let first = steps.len();
            steps.push(Step {
                file: file.clone(),
                name: "plan".to_owned(),
                seconds: before,
                reads: 0.0,
                writes: 0.0,
                needs: Vec::new(),
                leaves: false,
            });
            // A task may come before one that it needs: nvcc's order is not the only one.
            let number = |task: &Value, key: &str| task[key].as_f64().unwrap_or(0.0);
            let mut place: BTreeMap<u64, usize> = BTreeMap::new();
            while place.len() < tasks.len() {
                let known = place.len();
                for (index, task) in (0_u64..).zip(tasks) {
                    let needs = task["needs"].as_array().into_iter().flatten();
                    let needs: Vec<u64> = needs.filter_map(Value::as_u64).collect();
                    if place.contains_key(&index) || needs.iter().any(|n| !place.contains_key(n)) {
                        continue;
                    }
                    ensure!(
                        task["state"] == "ran",
                        "{file}: a step did not run: the cache was not empty"
                    );
                    let tool = task["tool"].as_str().context("a task without a tool")?;
                    let of = task["architecture"].as_str();
                    let mut needs: Vec<usize> = needs.iter().map(|n| place[n]).collect();
                    if needs.is_empty() {
                        needs.push(first);
                    }
                    place.insert(index, steps.len());
                    steps.push(Step {
                        file: file.clone(),
                        name: of.map_or(tool.to_owned(), |of| format!("{tool} {of}")),
                        seconds: number(task, "user_s") + number(task, "system_s"),
                        reads: number(task, "input_bytes"),
                        writes: number(task, "output_bytes"),
                        needs,
                        leaves: LEAVE.contains(&tool),
                    });
                }
                ensure!(
                    place.len() > known,
                    "{file}: steps that wait for each other"
                );
            }
        }
        Ok(Self { steps })
    }

    /// The project with each of its files `times` over.
    pub fn repeated(&self, times: usize) -> Self {
        let count = self.steps.len();
        let copy = |copy: usize| {
            self.steps.iter().map(move |step| {
                let mut step = step.clone();
                step.needs.iter_mut().for_each(|need| *need += copy * count);
                step
            })
        };
        Self {
            steps: (0..times).flat_map(copy).collect(),
        }
    }

    /// As text, one step in a line.
    pub fn to_csv(&self) -> String {
        let mut text = "file,step,seconds,reads_bytes,writes_bytes,needs,leaves\n".to_owned();
        for step in &self.steps {
            let needs: Vec<String> = step.needs.iter().map(usize::to_string).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{},{},{:.4},{},{},{},{}",
                step.file,
                step.name,
                step.seconds,
                step.reads,
                step.writes,
                needs.join(";"),
                step.leaves
            );
        }
        text
    }

    /// The other way round.
    pub fn of_csv(text: &str) -> Result<Self> {
        let mut steps: Vec<Step> = Vec::new();
        for line in text.lines().skip(1) {
            let columns: Vec<&str> = line.split(',').collect();
            let [file, name, seconds, reads, writes, needs, leaves] = columns.as_slice() else {
                anyhow::bail!("not seven columns: {line}");
            };
            let wrong = || format!("not a step: {line}");
            let needs = needs.split(';').filter(|need| !need.is_empty());
            let needs: Vec<usize> = needs
                .map(str::parse)
                .collect::<Result<_, _>>()
                .with_context(wrong)?;
            ensure!(needs.iter().all(|&need| need < steps.len()), wrong());
            steps.push(Step {
                file: (*file).to_owned(),
                name: (*name).to_owned(),
                seconds: seconds.parse().with_context(wrong)?,
                reads: reads.parse().with_context(wrong)?,
                writes: writes.parse().with_context(wrong)?,
                needs,
                leaves: leaves.parse().with_context(wrong)?,
            });
        }
        Ok(Self { steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(tool: &str, needs: &[u64], seconds: f64) -> Value {
        json!({"tool": tool, "architecture": null, "state": "ran", "needs": needs, "user_s": seconds,
               "system_s": 0.5, "input_bytes": 7, "output_bytes": 9})
    }

    #[test]
    fn a_report_becomes_steps_and_stays_what_it_is() {
        let call = json!({"sources": ["src/a.cu"], "tasks": [
            task("cicc", &[1], 2.0), task("preprocess", &[], 1.0)]});
        let project = Project::of_report(&json!({"calls": [call]}), 0.1).expect("a project");
        let names: Vec<&str> = project
            .steps
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(names, ["plan", "preprocess", "cicc"]);
        assert_eq!(project.steps[2].needs, [1]);
        assert_eq!(project.steps[1].needs, [0]);
        assert_eq!(
            (project.steps[2].seconds, project.steps[2].leaves),
            (2.5, true)
        );
        assert_eq!(
            Project::of_csv(&project.to_csv()).expect("the same"),
            project
        );
        assert_eq!(project.repeated(2).steps[5].needs, [4]);
    }
}
