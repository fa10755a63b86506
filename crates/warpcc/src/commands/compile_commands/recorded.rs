//! The calls of nvcc that warpcc remembers, as a compilation database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::database::CompileCommand;
use crate::call_record::records;
use crate::config::Config;
use crate::store::need_store;
use warpcc_report::InvocationRecord;

/// The last call for each source.
pub struct RecordedCommands {
    /// In the order of the sources' paths.
    pub entries: Vec<CompileCommand>,
    /// How many calls were left out because their command lines are not remembered whole.
    pub cut: usize,
}

/// The last call that compiled a source. Calls in which there was nothing to cache name no source.
struct Last {
    started: u64,
    source: String,
    call: InvocationRecord,
}

/// Endings of what is linked and not compiled.
const BINARIES: [&str; 5] = ["o", "a", "so", "cubin", "fatbin"];

/// The calls whose sources are below `project`, in all builds that are remembered.
///
/// # Errors
/// There is no cache, or its history cannot be read.
pub fn calls_below(project: &Path, config: &Config) -> anyhow::Result<RecordedCommands> {
    let history = records(&need_store(config)?);
    let mut last: BTreeMap<PathBuf, Last> = BTreeMap::new();
    for build in history.builds()? {
        let Some(found) = history.build(&build.id)? else {
            continue;
        };
        for call in found.records {
            for source in sources_below(&call, project) {
                let path = Path::new(&call.directory).join(&source);
                if last
                    .get(&path)
                    .is_none_or(|known| known.started < call.started_unix_ns)
                {
                    let call = call.clone();
                    last.insert(
                        path,
                        Last {
                            started: call.started_unix_ns,
                            source,
                            call,
                        },
                    );
                }
            }
        }
    }
    let mut recorded = RecordedCommands {
        entries: Vec::new(),
        cut: 0,
    };
    for Last { source, call, .. } in last.into_values() {
        if call.args_are_cut() {
            recorded.cut += 1;
            continue;
        }
        recorded.entries.push(CompileCommand {
            directory: call.directory,
            file: source,
            arguments: Some(call.args),
            command: None,
            output: None,
        });
    }
    Ok(recorded)
}

/// The sources of a call that are there, and below `project`.
fn sources_below(call: &InvocationRecord, project: &Path) -> Vec<String> {
    let is_below = |source: &&String| {
        let path = Path::new(&call.directory).join(source);
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_text = ending.is_none_or(|ending| !BINARIES.contains(&ending));
        is_text
            && path
                .canonicalize()
                .is_ok_and(|path| path.starts_with(project))
    };
    call.sources.iter().filter(is_below).cloned().collect()
}
