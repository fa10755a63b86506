//! Dry runs of the 12.x toolkits that no registry has, as public build logs show them.
//!
//! The recorded dry runs of 12.4 are rewritten with everything in which another version's logs differ. The plan must stay the
//! same. This checks the parser, not the toolkits: no such nvcc was run.

use std::fs;
use std::path::{Path, PathBuf};

use warpcc_plan::{FileId, TaskGraph, Transcript};

/// What a version's dry run has that 12.4's has not, and the other way round.
struct Version {
    minor: &'static str,
    build: &'static str,
    /// `-D__NV_LEGACY_LAUNCH` in each command of gcc.
    legacy_launch: bool,
    /// Variables with cicc's folders. cicc is then named `"$CICC_PATH/cicc"`.
    cicc_folders: &'static [&'static str],
    /// `-D__CUDACC_DEVICE_ATOMIC_BUILTINS__=1`
    atomic_builtins: bool,
}

const CICC: &str = "CICC_PATH=/toolkit/bin/../nvvm/bin";
const CICC_NEXT: &str = "CICC_NEXT_PATH=/toolkit/bin/../nvvm-next/bin";

/// 12.0 to 12.3: logs of projects that show `nvcc -v` or `--dryrun`. 12.5: nixpkgs has its `nvcc.profile`, and sccache's
/// issue 2238 a dry run with the same variables. 12.6: sccache's pull request 2247. 12.8 and 12.9: logs of projects.
/// 12.7 was never released.
const VERSIONS: [Version; 8] = [
    Version {
        minor: "0",
        build: "76",
        legacy_launch: false,
        cicc_folders: &[],
        atomic_builtins: false,
    },
    Version {
        minor: "1",
        build: "105",
        legacy_launch: false,
        cicc_folders: &[],
        atomic_builtins: false,
    },
    Version {
        minor: "2",
        build: "140",
        legacy_launch: false,
        cicc_folders: &[],
        atomic_builtins: false,
    },
    Version {
        minor: "3",
        build: "52",
        legacy_launch: false,
        cicc_folders: &[],
        atomic_builtins: false,
    },
    Version {
        minor: "5",
        build: "40",
        legacy_launch: true,
        cicc_folders: &[CICC, CICC_NEXT],
        atomic_builtins: false,
    },
    Version {
        minor: "6",
        build: "20",
        legacy_launch: true,
        cicc_folders: &[CICC],
        atomic_builtins: false,
    },
    Version {
        minor: "8",
        build: "93",
        legacy_launch: true,
        cicc_folders: &[CICC],
        atomic_builtins: true,
    },
    Version {
        minor: "9",
        build: "86",
        legacy_launch: true,
        cicc_folders: &[CICC],
        atomic_builtins: true,
    },
];

impl Version {
    /// The text of a dry run of 12.4 as this version would write it.
    fn rewrite(&self, recorded: &str) -> String {
        let lines = recorded.lines().flat_map(|line| self.lines(line));
        lines.map(|line| line + "\n").collect()
    }

    fn lines(&self, line: &str) -> Vec<String> {
        // A Debian package has no folder for targets. NVIDIA's own has.
        if line == "#$ _TARGET_SIZE_=64" {
            return vec!["#$ _TARGET_DIR_=targets/x86_64-linux".into()];
        }
        if line.starts_with("#$ _NVVM_BRANCH_SUFFIX_") {
            return Vec::new();
        }
        let mut line = line
            .replace(
                "/toolkit/bin/../include",
                "/toolkit/bin/../targets/x86_64-linux/include",
            )
            .replace(
                "/toolkit/bin/../lib64\"",
                "/toolkit/bin/../targets/x86_64-linux/lib\"",
            )
            .replace("_MINOR__=4", &format!("_MINOR__={}", self.minor))
            .replace(
                "__CUDACC_VER_BUILD__=131",
                &format!("__CUDACC_VER_BUILD__={}", self.build),
            );
        if !self.legacy_launch {
            line = line.replace("-D__NV_LEGACY_LAUNCH ", "");
        }
        if self.atomic_builtins {
            let last = "-D__NVCC_DIAG_PRAGMA_SUPPORT__=1 ";
            line = line.replace(
                last,
                &format!("{last}-D__CUDACC_DEVICE_ATOMIC_BUILTINS__=1 "),
            );
        }
        if !self.cicc_folders.is_empty() {
            line = line.replace("#$ cicc ", "#$ \"$CICC_PATH/cicc\" ");
        }
        let is_top = line.starts_with("#$ TOP=");
        let folders = self.cicc_folders.iter().filter(|_| is_top);
        let folders = folders
            .map(|folder| format!("#$ {folder}"))
            .collect::<Vec<_>>();
        [vec![line], folders].concat()
    }
}

fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/12.4")
}

/// Each step with its tool, its architecture, what it reads and writes; or why the call is bypassed.
fn plan(text: &str, private: &str) -> Result<Vec<String>, String> {
    let graph = Transcript::parse(text).and_then(|t| TaskGraph::build(&t, private));
    let graph = graph.map_err(|why| why.reason.to_string())?;
    let paths = |ids: &[FileId]| {
        let paths = ids.iter().map(|&id| graph.file(id).path.as_str());
        paths.collect::<Vec<_>>().join(" ")
    };
    let steps = graph.steps.iter().enumerate().map(|(number, step)| {
        let arch = step.arch.as_deref().unwrap_or_default();
        let (reads, writes) = (paths(&step.reads), paths(&step.writes));
        format!(
            "{} {arch} {:?}: {reads} > {writes}",
            step.tool,
            graph.needs(number)
        )
    });
    Ok(steps.collect())
}

#[test]
fn other_minor_versions_have_the_plans_of_12_4() {
    let modes = fs::read_dir(transcripts()).expect("the recorded modes");
    let mut compiled = 0;
    for mode in modes.map(|entry| entry.expect("a mode").path()) {
        let recorded = fs::read_to_string(&mode).expect("a transcript");
        let name = mode
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let private = if name.starts_with("keep") {
            ""
        } else {
            "/keep/K/"
        };
        let expected = plan(&recorded, private).map(|steps| {
            let folder = "/toolkit/bin/../targets/x86_64-linux";
            let steps = steps
                .iter()
                .map(|step| step.replace("/toolkit/bin/../include", &format!("{folder}/include")));
            steps.collect::<Vec<_>>()
        });
        for version in &VERSIONS {
            let text = version.rewrite(&recorded);
            compiled += usize::from(text.contains(if version.cicc_folders.is_empty() {
                "#$ cicc"
            } else {
                "$CICC_PATH/cicc"
            }));
            assert_eq!(
                plan(&text, private),
                expected,
                "12.{} {name}",
                version.minor
            );
        }
    }
    assert!(compiled > 200, "{compiled} dry runs with cicc");
}
