//! Removes the names of the user's folders from a plan: cudafe++, cicc and fatbinary get source paths that are the same in
//! every clone (docs/keys.md, Clones).
//!
//! `fixed` returns the fixed name of a path below a mapped folder. cudafe++ makes the module id from the path that it gets,
//! by its own rule. So an id that is made from a fixed name is as unique within a link as nvcc's own.

use crate::graph::TaskGraph;
use crate::step::{Arg, Part, Tool};

/// Options of cudafe++ and cicc whose value names the source.
const SOURCE_NAMES: [&str; 2] = ["--orig_src_file_name", "--orig_src_path_name"];

/// How fatbinary gets the source's name, with `-rdc` and line tables.
const IDENT: &str = "--ident=";

/// Replaces the source's path by its fixed name in the arguments that end up in an output.
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
