//! Changes to the graph that let work start before nvcc would start it, with the same bytes in
//! the end (docs/design/overlap.md).
//!
//! [`split_host_compile`]: an object holds the fat binary as one `asm` block of numbers in
//! `x.fatbin.c`. The host code is compiled to assembly against a stand-in whose block holds one
//! comment line; when the fat binary is there, its numbers take that line's place
//! ([`splice`]) and the text is assembled. Then ptxas and the host compiler run side by side, and
//! a change of device code alone compiles no host code.
//!
//! [`predict_module_id`]: cicc reads from cudafe++ only the module id. With the id of the last
//! time it need not wait; the id that cudafe++ then writes decides whether the result counts.

use crate::assumed::{Assumed, Expected, Prepared};
use crate::gcc_options::{is_gcc, is_known};
use crate::graph::TaskGraph;
use crate::step::{Arg, FileId, FileKind, Part, PlanFile, Program, Step, Tool};

/// The line that the fat binary's numbers replace. A comment to the assembler.
const MARK: &str = "# the fat binary goes here";

/// Splits every host compile of a graph that allows it. Gives the number of splits. `is_compiler` says whether a program
/// is the compiler itself: another under its name may add options, or count its runs.
pub fn split_host_compile(graph: &mut TaskGraph, is_compiler: &dyn Fn(&str) -> bool) -> usize {
    let candidates: Vec<usize> = (0..graph.steps.len())
        .filter(|&i| is_splittable(graph, i, is_compiler))
        .collect();
    // From the back, so that the indices before stay right.
    for &at in candidates.iter().rev() {
        split(graph, at);
    }
    candidates.len()
}

fn is_splittable(graph: &TaskGraph, at: usize, is_compiler: &dyn Fn(&str) -> bool) -> bool {
    let step = &graph.steps[at];
    let Program::Named(program) = &step.program else {
        return false;
    };
    let mut words = step.args.iter().filter_map(Arg::as_text);
    // Any other option may make a file that has the object's name, or is made in each run.
    let can_split = |word: &str| is_known(word) && word != "-S" && !word.starts_with("-masm=");
    step.tool == Tool::HostCompile
        // clang's assembly has no place for a comment of ours.
        && is_gcc(step)
        && !graph.private.is_empty()
        && !step.has_debug_information()
        && is_compiler(program)
        && words.all(can_split)
        && fat_binary_of(graph, step).is_some()
        && step.args.iter().any(|a| a.as_text() == Some("-c"))
        && step.args.iter().any(|a| a.as_text() == Some("c++"))
}

/// The C form of the fat binary among the files a host compile includes.
fn fat_binary_of(graph: &TaskGraph, step: &Step) -> Option<FileId> {
    step.reads.iter().copied().find(|&id| {
        let file = graph.file(id);
        file.kind == FileKind::Temp
            && file
                .writer
                .is_some_and(|w| graph.steps[w].tool == Tool::Fatbinary)
            && !step.args.iter().any(|a| a.0.contains(&Part::File(id)))
    })
}

fn split(graph: &mut TaskGraph, at: usize) {
    let Some(fatbin) = fat_binary_of(graph, &graph.steps[at]) else {
        return;
    };
    let relocatable = {
        let writer = graph.file(fatbin).writer.map(|w| &graph.steps[w]);
        writer.is_some_and(|w| w.args.iter().any(|a| a.as_text() == Some("--device-c")))
    };
    // The real one goes next door, so that its place is free for the stand-in.
    let path = graph.file(fatbin).path.clone();
    let stand_in = add_file(graph, path.clone(), None);
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    graph.files[fatbin.0 as usize].path = format!("{}real/{name}", graph.private);
    graph.prepared.push(Prepared {
        file: stand_in,
        text: stand_in_text(relocatable),
    });
    let original = graph.steps[at].clone();
    let assembly_path = {
        let source = original
            .reads
            .first()
            .map(|&id| graph.file(id).path.clone())
            .unwrap_or(path);
        format!("{}.s", source.strip_suffix(".cpp").unwrap_or(&source))
    };
    let assembly = add_file(graph, assembly_path, Some(at));
    let output = original.writes.first().copied();
    let mut compile = original.clone();
    compile.tool = Tool::HostAssembly;
    compile.reads = original
        .reads
        .iter()
        .map(|&id| if id == fatbin { stand_in } else { id })
        .collect();
    compile.writes = vec![assembly];
    for arg in &mut compile.args {
        if arg.as_text() == Some("-c") {
            *arg = Arg::text("-S");
        } else if output.is_some_and(|o| *arg == Arg::file(o)) {
            *arg = Arg::file(assembly);
        }
    }
    let source = original.reads.iter().copied().find(|&id| {
        graph
            .file(id)
            .writer
            .is_some_and(|w| graph.steps[w].tool == Tool::CudaFe)
    });
    let mut assemble = original.clone();
    assemble.removes.clear();
    assemble.tool = Tool::Assemble;
    assemble.reads = vec![assembly, fatbin];
    for arg in &mut assemble.args {
        if arg.as_text() == Some("c++") {
            *arg = Arg::text("assembler");
        } else if source.is_some_and(|s| *arg == Arg::file(s)) {
            *arg = Arg::file(assembly);
        }
    }
    compile.raw = original.raw.replacen(" -c ", " -S ", 1);
    assemble.raw = original.raw.replacen(" -x c++ ", " -x assembler ", 1);
    // Options that only the compiler proper reads do not matter to the assembler, but -I and -Wa count.
    graph.steps[at] = compile;
    graph.insert_step(at + 1, assemble);
    graph.files[assembly.0 as usize].writer = Some(at);
}

fn add_file(graph: &mut TaskGraph, path: String, writer: Option<usize>) -> FileId {
    let id = FileId(u32::try_from(graph.files.len()).unwrap_or(u32::MAX));
    graph.files.push(PlanFile {
        path,
        kind: FileKind::Temp,
        writer,
    });
    id
}

/// The C form of a fat binary with the mark in place of its numbers, as 13.5's fatbinary writes it.
fn stand_in_text(relocatable: bool) -> String {
    let section = if relocatable {
        "__nv_relfatbin"
    } else {
        ".nv_fatbin"
    };
    let wrapper = if relocatable {
        "#undef __FATIDNAME_CORE\n#undef __FATIDNAME\n#define __FATIDNAME_CORE(x) __fatbinwrap##x\n#define __FATIDNAME(x) __FATIDNAME_CORE(x)\nextern const __fatBinC_Wrapper_t __FATIDNAME(__NV_MODULE_ID)"
    } else {
        "static const __fatBinC_Wrapper_t __fatDeviceText"
    };
    format!(
        "#ifndef __SKIP_INTERNAL_FATBINARY_HEADERS\n#include \"fatbinary_section.h\"\n#endif\n\
         #define __CUDAFATBINSECTION  \".nvFatBinSegment\"\n#define __CUDAFATBINDATASECTION  \"{section}\"\n\
         asm(\n\".section {section}, \\\"a\\\"\\n\"\n\".align 8\\n\"\n\"fatbinData:\\n\"\n\"{MARK}\\n\"\n\".text\\n\");\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\nextern const unsigned long long fatbinData[1024];\n\
         #ifdef __cplusplus\n}}\n#endif\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\
         {wrapper} __attribute__ ((aligned (8))) __attribute__ ((section (__CUDAFATBINSECTION)))= \n\
         \t{{ 0x466243b1, 1, fatbinData, 0 }};\n#undef __CUDAFATBINDATASECTION\n#undef __CUDAFATBINSECTION\n\
         #ifdef __cplusplus\n}}\n#endif\n"
    )
}

/// Puts the numbers of a fat binary's C form into an assembly made with the stand-in; `None` when
/// the C form is not the stand-in with numbers, or the mark is not there exactly once.
pub fn splice(assembly: &[u8], fatbin: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(fatbin).ok()?;
    let relocatable = text.contains("\"__nv_relfatbin\"");
    let (frame, numbers) = take_apart(text)?;
    let (expected, _) = take_apart(&stand_in_text(relocatable))?;
    if frame != expected {
        return None;
    }
    let mark = format!("\n{MARK}\n");
    let mut found = memchr::memmem::find_iter(assembly, mark.as_bytes());
    let (Some(at), None) = (found.next(), found.next()) else {
        return None;
    };
    let mut out = Vec::with_capacity(assembly.len() + numbers.len());
    out.extend_from_slice(&assembly[..=at]);
    out.extend_from_slice(numbers.as_bytes());
    out.extend_from_slice(&assembly[at + mark.len()..]);
    Some(out)
}

/// The C form's frame, without what may differ between toolkits and says nothing about code (the
/// array's length, `#undef`s), and the lines of the block.
fn take_apart(text: &str) -> Option<(String, String)> {
    let mut frame = String::with_capacity(2048);
    let mut numbers = String::with_capacity(text.len());
    for line in text.lines() {
        let content = line.strip_prefix('"').and_then(|l| l.strip_suffix("\\n\""));
        match content {
            Some(content) if content.starts_with(".quad ") && !content.contains(['\\', '"']) => {
                numbers.push_str(content);
                numbers.push('\n');
            }
            Some(content) if content == MARK => {}
            _ if line.starts_with("#undef ") => {}
            _ if line.starts_with("extern const unsigned long long fatbinData[") => {
                let length = line.split(['[', ']']).nth(1)?;
                if !length.bytes().all(|b| b.is_ascii_digit()) || !line.ends_with("];") {
                    return None;
                }
                frame.push_str("fatbinData[]\n");
            }
            _ => {
                frame.push_str(line);
                frame.push('\n');
            }
        }
    }
    Some((frame, numbers))
}

/// The name under which a module id is remembered: the arguments from which cudafe++ makes it.
pub fn module_id_subject(graph: &TaskGraph) -> Option<Vec<String>> {
    let step = graph.steps.iter().find(|s| s.tool == Tool::CudaFe)?;
    let one = graph
        .steps
        .iter()
        .filter(|s| s.tool == Tool::CudaFe)
        .count()
        == 1;
    let value = |flag: &str| {
        let at = step.args.iter().position(|a| a.as_text() == Some(flag))?;
        step.args.get(at + 1)?.as_text().map(str::to_owned)
    };
    let subject = vec![
        value("--orig_src_path_name")?,
        value("--orig_src_file_name")?,
    ];
    (one && module_id_file(graph).is_some()).then_some(subject)
}

/// The module id file, where one cudafe++ writes it and ciccs read it.
pub fn module_id_file(graph: &TaskGraph) -> Option<FileId> {
    let writer = graph.steps.iter().find(|s| s.tool == Tool::CudaFe)?;
    let read = |id: &FileId| {
        graph
            .steps
            .iter()
            .any(|s| s.tool == Tool::Cicc && s.reads.contains(id))
    };
    writer
        .writes
        .iter()
        .copied()
        .find(|id| graph.file(*id).path.ends_with(".module_id") && read(id))
}

/// Whether an id can be the same next time: with no external function to be named after it holds
/// cudafe++'s process id (NVCC_FACTS).
pub fn is_lasting_module_id(id: &str) -> bool {
    let mut parts = id.trim_end().rsplit('_');
    let (last, before) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let is_process = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let is_checksum = before.len() == 8 && before.bytes().all(|b| b.is_ascii_hexdigit());
    !(id.is_empty() || is_process && is_checksum)
}

/// Lets every cicc start on `id`, to be confirmed by what cudafe++ writes.
pub fn predict_module_id(graph: &mut TaskGraph, id: &str) {
    let Some(actual) = module_id_file(graph) else {
        return;
    };
    if graph.private.is_empty() {
        return;
    }
    let name = graph.file(actual).name().to_owned();
    let predicted = add_file(
        graph,
        format!("{}real/predicted.{name}", graph.private),
        None,
    );
    graph.prepared.push(Prepared {
        file: predicted,
        text: id.to_owned(),
    });
    graph.assumed.push(Assumed {
        file: actual,
        expected: Expected::Text(id.to_owned()),
        redo: None,
    });
    for step in graph.steps.iter_mut().filter(|s| s.tool == Tool::Cicc) {
        for read in step.reads.iter_mut().filter(|r| **r == actual) {
            *read = predicted;
        }
        for part in step.args.iter_mut().flat_map(|a| &mut a.0) {
            if *part == Part::File(actual) {
                *part = Part::File(predicted);
            }
        }
    }
    graph.recount_needs();
}

/// The stub that a split host compile includes, written by the last cicc.
pub fn stub_file(graph: &TaskGraph) -> Option<FileId> {
    let mut compiles = graph.steps.iter().filter(|s| s.tool == Tool::HostAssembly);
    let (Some(step), None) = (compiles.next(), compiles.next()) else {
        return None;
    };
    step.reads.iter().copied().find(|&id| {
        graph
            .file(id)
            .writer
            .is_some_and(|w| graph.steps[w].tool == Tool::Cicc)
    })
}

/// Lets the split host compile start on `stub`, the text of the last time, to be confirmed by what
/// cicc writes. It then works in a folder of its own, where cicc's file does not get in its way.
pub fn predict_stub(graph: &mut TaskGraph, stub: &str) {
    let Some(actual) = stub_file(graph) else {
        return;
    };
    let Some(at) = graph
        .steps
        .iter()
        .position(|s| s.tool == Tool::HostAssembly)
    else {
        return;
    };
    let predicted = stand_in_for_stub(graph, actual, at);
    graph.prepared.push(Prepared {
        file: predicted,
        text: stub.to_owned(),
    });
    graph.assumed.push(Assumed {
        file: actual,
        expected: Expected::Text(stub.to_owned()),
        redo: Some((at, predicted)),
    });
    graph.recount_needs();
}

/// Gives the host compile a stub of its own, in a folder where cicc's file does not get in its way.
fn stand_in_for_stub(graph: &mut TaskGraph, actual: FileId, at: usize) -> FileId {
    let folder = format!("{}host/", graph.private);
    let name = graph.file(actual).name().to_owned();
    let stand_in = add_file(graph, format!("{folder}{name}"), None);
    // cudafe++'s output and the stub's placeholder are next to it: a quoted #include looks there first.
    let mut reads = graph.steps[at].reads.clone();
    for id in &mut reads {
        if *id == actual {
            *id = stand_in;
            continue;
        }
        let name = graph.file(*id).name().to_owned();
        graph.files[id.0 as usize].path = format!("{folder}{name}");
    }
    graph.steps[at].reads = reads;
    stand_in
}

/// Lets the split host compile start on a stub that a second cicc makes, which ends after its front
/// end (`--device-syntax-only`, what nvcc's `-fdevice-syntax-only` passes on). The real cicc closes
/// its stub only when it ends, some seconds of optimising later, and confirms it then. Costs a
/// front end's CPU time, so it is for machines with nothing else to do.
pub fn make_stub_early(graph: &mut TaskGraph) {
    let Some(actual) = stub_file(graph) else {
        return;
    };
    let Some(compile) = graph
        .steps
        .iter()
        .position(|s| s.tool == Tool::HostAssembly)
    else {
        return;
    };
    let Some(writer) = graph.file(actual).writer else {
        return;
    };
    let stand_in = stand_in_for_stub(graph, actual, compile);
    let mut step = graph.steps[writer].clone();
    step.removes.clear();
    step.tool = Tool::EarlyStub;
    step.writes = vec![stand_in];
    for arg in &mut step.args {
        for part in &mut arg.0 {
            let Part::File(id) = part else { continue };
            if *id == actual {
                *id = stand_in;
            } else if graph.steps[writer].writes.contains(id) {
                // Its other outputs are not read.
                let name = format!("{}host/early.{}", graph.private, graph.file(*id).name());
                *part = Part::Text(name);
            }
        }
    }
    step.args.insert(0, Arg::text("--device-syntax-only"));
    step.raw = format!("{} --device-syntax-only", step.raw);
    graph.insert_step(compile, step);
    graph.assumed.push(Assumed {
        file: actual,
        expected: Expected::SameAs(stand_in, compile),
        redo: Some((compile + 1, stand_in)),
    });
    graph.recount_needs();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c_form(relocatable: bool) -> String {
        stand_in_text(relocatable)
            .replace(
                &format!("\"{MARK}\\n\""),
                "\".quad 0x1,0x2\\n\"\n\".quad 0x3\\n\"",
            )
            .replace("[1024]", "[3]")
    }

    #[test]
    fn numbers_take_the_marks_place() {
        let assembly = format!(
            "\t.file \"a\"\n#APP\n\t.section .nv_fatbin, \"a\"\nfatbinData:\n{MARK}\n.text\n#NO_APP\n"
        );
        let spliced = splice(assembly.as_bytes(), c_form(false).as_bytes()).expect("splices");
        assert_eq!(
            String::from_utf8_lossy(&spliced),
            assembly.replace(MARK, ".quad 0x1,0x2\n.quad 0x3")
        );
        assert!(splice(assembly.as_bytes(), c_form(true).as_bytes()).is_some());
        // 13.0 has no #undef at the end.
        let old = c_form(false).replace("#undef __CUDAFATBINSECTION\n", "");
        assert!(splice(assembly.as_bytes(), old.as_bytes()).is_some());
    }

    #[test]
    fn anything_else_is_refused() {
        let assembly = format!("x\n{MARK}\ny\n");
        let twice = format!("{assembly}{assembly}");
        assert!(splice(twice.as_bytes(), c_form(false).as_bytes()).is_none());
        assert!(splice(b"x\ny\n", c_form(false).as_bytes()).is_none());
        for (from, to) in [
            ("aligned (8)", "aligned (16)"),
            (".align 8", ".align 16"),
            ("[3]", "[n]"),
            (", 0 }", ", 1 }"),
        ] {
            let other = c_form(false).replace(from, to);
            assert!(
                splice(assembly.as_bytes(), other.as_bytes()).is_none(),
                "{to}"
            );
        }
    }
}
