//! Runs to draw in tests: a compilation for several architectures, as nvcc does it.

use std::time::Duration;

use crate::commands::timeline::{FileRole, FileRow, Run, TaskOutcome, TaskRow};

const ARCHES: [&str; 8] = ["75", "80", "86", "87", "89", "90", "100", "120"];

/// Build rows one after the other.
struct Rows(Vec<TaskRow>);

impl Rows {
    fn add(
        &mut self,
        tool: &str,
        arch: Option<String>,
        ms: (u64, u64),
        reads: &[(usize, String)],
        writes: &[String],
    ) -> usize {
        let number = self.0.len() + 1;
        let file = |name: &String, role| FileRow {
            name: name.clone(),
            size: Some(1000 + name.len() as u64),
            role,
        };
        let label = writes.first().cloned().unwrap_or_default();
        let mut needs: Vec<usize> = reads.iter().map(|read| read.0).collect();
        needs.dedup();
        self.0.push(TaskRow {
            number,
            tool: tool.into(),
            label: label.clone(),
            command: format!(
                "\"$CICC_PATH/{tool}\" --gen <a & b> {} -o \"{label}\"",
                arch.clone().unwrap_or_default()
            ),
            arch,
            started: Duration::from_millis(ms.0),
            finished: Duration::from_millis(ms.0 + ms.1),
            user: Duration::from_millis(ms.1 * 9 / 10),
            system: Duration::from_millis(ms.1 / 10),
            peak_kib: 100 * ms.1,
            outcome: TaskOutcome::Ran,
            files: reads
                .iter()
                .map(|read| file(&read.1, FileRole::Reads))
                .chain(writes.iter().map(|name| file(name, FileRole::Writes)))
                .collect(),
            needs,
            why_edges: reads.to_vec(),
        });
        number
    }
}

/// A compilation for the first `arches` architectures.
pub(super) fn compilation(arches: usize) -> Run {
    let mut rows = Rows(Vec::new());
    let name = |ending: &str| format!("scan.{ending}");
    let host = rows.add("host", None, (0, 900), &[], &[name("cpp4.ii")]);
    let fe = rows.add(
        "cudafe++",
        None,
        (900, 700),
        &[(host, name("cpp4.ii"))],
        &[name("cudafe1.cpp"), name("module_id")],
    );
    let mut images = Vec::new();
    for (at, arch) in ARCHES.iter().take(arches).enumerate() {
        let slow = 150 * at as u64;
        let sm = Some(format!("sm_{arch}"));
        let ii = name(&format!("compute_{arch}.cpp1.ii"));
        let ptx = name(&format!("compute_{arch}.ptx"));
        let cubin = name(&format!("sm_{arch}.cubin"));
        let pre = rows.add(
            "host",
            sm.clone(),
            (10 * at as u64, 800),
            &[],
            std::slice::from_ref(&ii),
        );
        let cicc = rows.add(
            "cicc",
            sm.clone(),
            (1600, 1900 + slow),
            &[(pre, ii), (fe, name("module_id"))],
            std::slice::from_ref(&ptx),
        );
        let ptxas = rows.add(
            "ptxas",
            sm,
            (3500 + slow, 1100 + 2 * slow),
            &[(cicc, ptx)],
            std::slice::from_ref(&cubin),
        );
        images.push((ptxas, cubin));
    }
    let end = 4600 + 450 * arches as u64;
    let fatbin = rows.add("fatbinary", None, (end, 40), &images, &[name("fatbin.c")]);
    rows.add(
        "host",
        None,
        (end + 40, 1300),
        &[(fe, name("cudafe1.cpp")), (fatbin, name("fatbin.c"))],
        &[name("o")],
    );
    let mut run = Run {
        title: "nvcc -c scan.cu -o scan.o".into(),
        rows: rows.0,
        environment: vec![
            ("_SPACE_".into(), " ".into()),
            ("PATH".into(), "/usr/bin".into()),
        ],
        wall: Duration::from_millis(end + 1340),
    };
    for row in run
        .rows
        .iter_mut()
        .filter(|row| row.arch.as_deref() == Some("sm_80"))
    {
        row.outcome = TaskOutcome::Hit;
        row.finished = row.started;
    }
    run
}
