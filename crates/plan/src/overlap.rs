//! Changes to the graph that let work start earlier than under nvcc, with the same final bytes (docs/design/overlap.md).
//!
//! [`split_host_compile`]: an object contains the fat binary as one `asm` block of numbers, from `x.fatbin.c`. The host code
//! is compiled to assembly with a stand-in whose block is one comment line. When the fat binary exists, its numbers replace
//! that line ([`splice`]) and the text is assembled. So ptxas and the host compiler run at the same time, and a change of
//! device code alone compiles no host code.

use crate::assumed::Prepared;
use crate::gcc_options::{is_gcc, is_known};
use crate::graph::TaskGraph;
use crate::step::{Arg, FileId, FileKind, Part, Program, Step, Tool};

/// The line that the fat binary's numbers replace. It is a comment for the assembler.
const MARK: &str = "# the fat binary goes here";

/// Splits every host compile of a graph that allows it, and returns their number. `is_compiler` says whether a program is
/// the compiler itself: another program of that name may add options, or count its runs.
pub fn split_host_compile(graph: &mut TaskGraph, is_compiler: &dyn Fn(&str) -> bool) -> usize {
    let candidates: Vec<usize> = (0..graph.steps.len())
        .filter(|&i| is_splittable(graph, i, is_compiler))
        .collect();
    // It goes backwards, so that earlier indices stay valid.
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
    // Any other option may make a file that is named after the object, or one in each run.
    let can_split = |word: &str| is_known(word) && word != "-S" && !word.starts_with("-masm=");
    step.tool == Tool::HostCompile
        // clang's assembly does not keep the comment.
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
    // The real one goes to another folder, so that the stand-in can have its path.
    let path = graph.file(fatbin).path.clone();
    let stand_in = graph.add_temporary(path.clone(), None);
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
    let assembly = graph.add_temporary(assembly_path, Some(at));
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
    // Options that only the compiler proper reads do not matter to the assembler; -I and -Wa do.
    graph.steps[at] = compile;
    graph.insert_step(at + 1, assemble);
    graph.files[assembly.0 as usize].writer = Some(at);
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

/// The three parts of an assembly with a fat binary in it, each of megabytes.
pub struct Spliced<'a> {
    /// What is before the fat binary.
    pub before: &'a [u8],
    /// The fat binary, as directives.
    pub numbers: String,
    /// What is behind it.
    pub after: &'a [u8],
}

/// Puts the numbers of a fat binary's C form into an assembly made with the stand-in; `None` when
/// the C form is not the stand-in with numbers, or the mark is not there exactly once.
pub fn splice<'a>(assembly: &'a [u8], fatbin: &[u8]) -> Option<Spliced<'a>> {
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
    Some(Spliced {
        before: &assembly[..=at],
        numbers,
        after: &assembly[at + mark.len()..],
    })
}

/// The frame of the C form, and the lines of its block. The frame is without what may differ between toolkits and says
/// nothing about code: the array's length, and `#undef`s.
fn take_apart(text: &str) -> Option<(String, String)> {
    let mut frame = String::with_capacity(2048);
    let mut numbers = String::with_capacity(text.len());
    for line in text.lines() {
        let content = line.strip_prefix('"').and_then(|l| l.strip_suffix("\\n\""));
        match content {
            // A fat binary has tens of thousands of these lines.
            Some(content)
                if content.starts_with(".quad ")
                    && memchr::memchr2(b'\\', b'"', content.as_bytes()).is_none() =>
            {
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
        let parts = [spliced.before, spliced.numbers.as_bytes(), spliced.after];
        assert_eq!(
            String::from_utf8_lossy(&parts.concat()),
            assembly.replace(MARK, ".quad 0x1,0x2\n.quad 0x3")
        );
        assert!(splice(assembly.as_bytes(), c_form(true).as_bytes()).is_some());
        // 13.0 writes no #undef at the end.
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
