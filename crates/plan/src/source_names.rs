//! A plan without the names of the user's folders: what goes into cudafe++, cicc and fatbinary names sources by paths
//! that are the same in every clone (docs/keys.md, Clones).
//!
//! `fixed` gives a path below a folder that does not count its fixed name. cudafe++ makes the module id from the path it is
//! told, by its own rule; so an id made from a fixed name is as unique within a link as nvcc's own.

use crate::graph::TaskGraph;
use crate::step::{Arg, Part, Tool};

/// Flags of cudafe++ and cicc whose value names the source.
const SOURCE_NAMES: [&str; 2] = ["--orig_src_file_name", "--orig_src_path_name"];

/// How fatbinary gets the source's name, with `-rdc` and line tables.
const IDENT: &str = "--ident=";

/// Names the source by its fixed name wherever a tool writes that name down.
pub fn rename_sources(graph: &mut TaskGraph, fixed: &dyn Fn(&str) -> String) {
    for step in &mut graph.steps {
        match step.tool {
            Tool::CudaFe | Tool::Cicc => {
                for at in 1..step.args.len() {
                    let is_name = step.args[at - 1]
                        .as_text()
                        .is_some_and(|flag| SOURCE_NAMES.contains(&flag));
                    if let Some(path) = step.args[at].as_text().filter(|_| is_name) {
                        step.args[at] = Arg::text(fixed(path));
                    }
                }
            }
            Tool::Fatbinary => {
                for part in step.args.iter_mut().flat_map(|arg| &mut arg.0) {
                    if let Part::Text(text) = part
                        && let Some(path) = text.strip_prefix(IDENT)
                    {
                        *text = format!("{IDENT}{}", fixed(path));
                    }
                }
            }
            _ => {}
        }
    }
}
