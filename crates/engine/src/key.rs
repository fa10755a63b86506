//! The parts of a step's key, by name: the key and `warpcc why` are both computed from them.
//!
//! | part | counts for |
//! |---|---|
//! | tool: its name, its path, the BLAKE3 of its content | every step; its libraries and the programs that it starts
//! (cc1plus, as) are in the manifest |
//! | arguments, files in them by content | every step |
//! | base names of files | steps whose result may contain them (see [`Step::names_matter`]) |
//! | working directory, keep folder | host and device code with debug information; the working directory also for LTO and
//! OptiX code |
//! | the host compiler's variables | host steps |
//! | relocatable: the names of the mapped folders | host and device code with debug information, cudafe++; paths below one count by its name |
//! | LANG and the LC_ variables | every step: diagnostics are part of a result |
//!
//! Not tracked by the key: files that a tool finds for itself. They are observed while the tool runs and are part of
//! the record's input manifest.

use std::io;
use std::path::Path;

use warpcc_cache::{Hashing, Key, KeySink, KeyVariants, guards};
use warpcc_path_map::WorkDir;
use warpcc_plan::{Arg, FileId, Part, Program, Step, TaskGraph, Tool};

use crate::any_lines;
use crate::context::RunContext;
use crate::located::Located;
use crate::options::RunOptions;
use crate::prefix_map::fixed_argument;
use crate::run_environment::directory_as_called;
use crate::terminal::Terminal;

/// The version of step records: it changes when their meaning changes.
const DOMAIN: &str = "warpcc step 4";
/// The version of step records whose key ignores the lines of preprocessed texts.
const DOMAIN_OF_TOKENS: &str = "warpcc step of tokens 2";

/// Variables that change what gcc or clang does.
pub const HOST_VARIABLES: &[&str] = &[
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "OBJC_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GCC_COMPARE_DEBUG",
    "SOURCE_DATE_EPOCH",
    "GCC_COLORS",
    "LD_RUN_PATH",
    "LDEMULATION",
    "COLLECT_GCC_OPTIONS",
    "CCC_OVERRIDE_OPTIONS",
    "AS_OPTIONS",
];

/// Variables that change the language of diagnostics. The C library reads the last three for itself, so no condition is made of
/// them: they say where its locales, catalogues and converters are.
pub const LANGUAGE_VARIABLES: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_MESSAGES",
    "LC_CTYPE",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
];

/// Whether the result contains the working directory in a form that cannot be searched: cicc writes it into LTO and OptiX
/// code (seen on 13.5), which is compressed.
pub fn packs_directory(step: &Step, graph: &TaskGraph) -> bool {
    let packed = |arg: &str| ["-lto", "--emit-optix-ir"].contains(&arg);
    let lto = |id: &FileId| graph.file(*id).path.ends_with(".ltoir");
    step.tool == Tool::Cicc
        && (step.writes.iter().any(lto) || step.args.iter().filter_map(Arg::as_text).any(packed))
}

/// Returns the hash of a file's content for a key.
type ContentHasher<'a> = &'a dyn Fn(FileId) -> io::Result<String>;

/// Writes the arguments of `step` into `sink`. A file of the plan is described by its content.
fn describe_arguments(
    step: &Step,
    graph: &TaskGraph,
    options: &RunOptions<'_>,
    content: ContentHasher<'_>,
    sink: &mut dyn KeySink,
) -> io::Result<()> {
    let names = step.names_matter() && !guards::is_off("file-names");
    for arg in &step.args {
        if let Some(text) = arg.as_text() {
            sink.part(
                "argument",
                fixed_argument(options.path_map, text).as_bytes(),
            );
            continue;
        }
        for part in &arg.0 {
            let id = match part {
                Part::Text(text) => {
                    sink.part("argument head", text.as_bytes());
                    continue;
                }
                Part::File(id) => id,
            };
            let file = graph.file(*id);
            if names {
                sink.part("file name", file.name().as_bytes());
            }
            if !step.writes.contains(id) {
                sink.part("input", content(*id)?.as_bytes());
                continue;
            }
            sink.part("output", b"");
            if graph.private.is_empty() {
                // Without a private folder the stub contains the user's own path.
                sink.part("output path", file.path.as_bytes());
            }
        }
    }
    Ok(())
}

/// Writes the parts of `step` into `sink`.
///
/// # Errors
/// An input cannot be read.
pub fn describe(
    step: &Step,
    graph: &TaskGraph,
    (program, tool): (&Path, &[u8; 32]),
    options: &RunOptions<'_>,
    content: ContentHasher<'_>,
    sink: &mut dyn KeySink,
) -> io::Result<()> {
    let debug = step.has_debug_information();
    sink.part("tool", step.tool.name().as_bytes());
    // The path counts too: a tool looks for its libraries and programs relative to its own folder, and only the manifest of
    // a run from the same path lists them.
    let path = program.as_os_str().as_encoded_bytes();
    if !guards::is_off("tool-path") {
        sink.part("tool path", &options.path_map.fixed_bytes(path));
    }
    if !guards::is_off("tool-content") {
        sink.part("tool content", tool);
    }
    if let Program::Named(path) = &step.program {
        // gcc, g++ and c++ may be one binary that looks at its name.
        sink.part(
            "tool name",
            path.rsplit('/').next().unwrap_or(path).as_bytes(),
        );
    }
    describe_arguments(step, graph, options, content, sink)?;
    for id in &step.reads {
        let in_arguments = step.args.iter().any(|a| a.0.contains(&Part::File(*id)));
        if !in_arguments {
            sink.part("included name", graph.file(*id).name().as_bytes());
            sink.part("included", content(*id)?.as_bytes());
        }
    }
    let packs = packs_directory(step, graph);
    if (debug || packs) && !guards::is_off("folder-in-step-keys") {
        sink.part(
            "working directory",
            &options
                .path_map
                .fixed_bytes(options.directory.as_os_str().as_encoded_bytes()),
        );
        if let Some(called) = directory_as_called(options.variable("PWD"), options.directory) {
            let called = options.path_map.fixed_bytes(called.as_encoded_bytes());
            sink.part("working directory as called", &called);
        }
        let relocated = !options.path_map.is_empty() && step.tool == Tool::HostCompile;
        if !(relocated || matches!(step.tool, Tool::Cicc | Tool::Ptxas)) {
            sink.part("keep folder", graph.private.as_bytes());
        }
    }
    let host = matches!(
        step.tool,
        Tool::HostCompile | Tool::HostAssembly | Tool::Assemble
    );
    for name in LANGUAGE_VARIABLES
        .iter()
        .chain(if host { HOST_VARIABLES } else { &[] })
    {
        if let Some(value) = options.variable(name)
            && !guards::is_off("variables-in-step-keys")
        {
            sink.part(name, &options.path_map.fixed_list(value.as_encoded_bytes()));
        }
    }
    // Debug information and the host compiler treat a fixed name differently from the folder itself.
    if !options.path_map.is_empty() && (debug || host || step.tool == Tool::CudaFe) {
        sink.part("relocatable", options.path_map.names().as_bytes());
    }
    Ok(())
}

/// The keys of one call or step, for a run in `at` whose diagnostics go to `terminal`.
pub fn key_variants(key: Key, at: WorkDir<'_>, terminal: Option<&Terminal>) -> KeyVariants {
    let path_specific = (!at.path_map.is_empty()).then(|| key.path_specific(at));
    let on_terminal = terminal.map(|terminal| |key: &Key| terminal.key(key));
    let on_terminal = on_terminal
        .as_ref()
        .map(|make| make as &dyn Fn(&Key) -> Key);
    KeyVariants::new(key, path_specific, on_terminal)
}

/// The step's keys, if its result can be stored at all.
pub(crate) fn keys_of(run: &RunContext<'_>, step: &Step, program: &Located) -> Option<KeyVariants> {
    let cacheable = matches!(
        step.tool,
        Tool::CudaFe
            | Tool::Cicc
            | Tool::Nvvm
            | Tool::Ptxas
            | Tool::Fatbinary
            | Tool::Nvlink
            | Tool::HostCompile
            | Tool::HostAssembly
            | Tool::Assemble
    );
    // Such a step may use the date without being noticed.
    if !cacheable || run.graph.preprocesses_unseen(step) {
        return None;
    }
    let tool = run.tool_content(&program.path)?;
    let key = |domain: &str, content: ContentHasher<'_>| {
        let mut sink = Hashing::new(domain);
        let program = (&*program.path, &tool);
        describe(step, run.graph, program, run.options, content, &mut sink).ok()?;
        Some(sink.finish())
    };
    let artifacts = run.artifacts;
    let tokens = |id| match artifacts.is_preprocessed(id) {
        true => match artifacts.lineless(id)? {
            Some(text) => Ok(blake3::Hash::from(text.hash).to_hex().to_string()),
            None => Err(io::ErrorKind::InvalidData.into()),
        },
        false => artifacts.content_in_keys(id),
    };
    // The tokens come first: one reading of each text then serves this key and the key of its content.
    let of_any_lines = any_lines::may_serve(run, step).then(|| key(DOMAIN_OF_TOKENS, &tokens));
    let whole = |id| artifacts.content_in_keys(id);
    let keys = key_variants(
        key(DOMAIN, &whole)?,
        run.options.work_dir(),
        run.options.terminal,
    );
    Some(match of_any_lines.flatten() {
        Some(key) => keys.or_of_any_lines(key),
        None => keys,
    })
}
