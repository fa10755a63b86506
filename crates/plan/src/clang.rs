//! Translates a plan into arguments with which clang reads the source as nvcc's tools do. It is for editors, which
//! understand clang's options but not nvcc's.
//!
//! What clang gets are the words that nvcc gives its host compiler, so options files, variables, `-Xcompiler` and nvcc's own
//! defaults are in them. Words that change what the source means stay. Words that only change the code made of it go: clang
//! does not know all of gcc's, and an unknown one is an error.

use crate::graph::TaskGraph;
use crate::step::{Arg, FileKind, Program, Step, Tool};
use crate::transcript::Transcript;
use crate::words::{self, Word};

/// The reading of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReading {
    /// As the command line names it.
    pub source: String,
    /// Options of clang, in order; without the language, the architecture and the toolkit.
    pub words: Vec<String>,
    /// The host compiler, as nvcc calls it.
    pub host_compiler: String,
    /// For device code: the toolkit's folder, as nvcc names it, and the newest architecture, such as `sm_90a`. `None` for a
    /// source of the host alone.
    pub device: Option<DeviceReading>,
}

/// What only device code has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceReading {
    /// The toolkit's folder, as nvcc names it.
    pub toolkit: Option<String>,
    /// The newest architecture that code is made for, such as `sm_90a`.
    pub architecture: Option<String>,
}

/// Macros that tell a source which features the user has switched on. nvcc defines other macros too: some describe what
/// only nvcc can do, and clang defines the rest itself.
const DESCRIBING: [&str; 6] = [
    "__CUDACC_RDC__",
    "__CUDACC_EXTENDED_LAMBDA__",
    "__CUDACC_RELAXED_CONSTEXPR__",
    "__CUDACC_VER_MAJOR__",
    "__CUDACC_VER_MINOR__",
    "__CUDACC_VER_BUILD__",
];

/// How macros of nvcc's own begin.
const NVCC_MACROS: [&str; 3] = ["__CUDA", "__NV", "CUDA_DOUBLE_MATH_FUNCTIONS"];

/// Options whose value is the next word.
const WITH_VALUE: [&str; 11] = [
    "-D",
    "-U",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-isysroot",
    "--sysroot",
    "-iprefix",
];

/// Beginnings of words that change what a source means. `-O` and `-m` define macros.
const KEPT: [&str; 12] = [
    "-D",
    "-U",
    "-I",
    "-i",
    "-std=",
    "-O",
    "-m",
    "-W",
    "-w",
    "--sysroot=",
    "-stdlib=",
    "-nostdinc",
];

/// `-f` options, without `-f` and `no-`, that change what a source means and that every clang knows.
const LANGUAGE: [&str; 18] = [
    "exceptions",
    "rtti",
    "openmp",
    "char8_t",
    "signed-char",
    "unsigned-char",
    "short-enums",
    "short-wchar",
    "PIC",
    "pic",
    "PIE",
    "pie",
    "fast-math",
    "math-errno",
    "ms-extensions",
    "sized-deallocation",
    "aligned-new",
    "freestanding",
];

/// `-f` options with a number, which limit templates.
const LIMITS: [&str; 2] = ["-ftemplate-depth=", "-fconstexpr-depth="];

/// The readings of all sources of a plan, each source once.
pub fn source_readings(transcript: &Transcript, graph: &TaskGraph) -> Vec<SourceReading> {
    let mut readings: Vec<SourceReading> = Vec::new();
    // The host's pass comes first: `__CUDA_ARCH__` and what depends on it is clang's to define.
    let passes = graph.steps.iter().filter(|step| reads_source(graph, step));
    let (host, device): (Vec<&Step>, Vec<&Step>) = passes.partition(|step| step.arch.is_none());
    for step in host.into_iter().chain(device) {
        let (Some(source), Program::Named(program)) = (step.reads.first(), &step.program) else {
            continue;
        };
        let source = graph.file(*source).path.clone();
        if readings.iter().any(|reading| reading.source == source) {
            continue;
        }
        readings.push(SourceReading {
            words: clang_words(step, &toolkit_words(transcript), standard(graph, step)),
            host_compiler: program.clone(),
            device: is_device_code(step).then(|| DeviceReading {
                toolkit: transcript.variable("TOP"),
                architecture: newest_architecture(graph, &source),
            }),
            source,
        });
    }
    readings
}

/// Whether a step of the host compiler reads a source of the user's.
fn reads_source(graph: &TaskGraph, step: &Step) -> bool {
    let first = step.reads.first().map(|id| graph.file(*id));
    // With kept intermediate files no file is temporary.
    let is_own = first.is_some_and(|file| file.kind == FileKind::External && file.writer.is_none());
    match step.tool {
        Tool::Preprocess => is_own,
        // The stub of a link is a file of the toolkit's.
        Tool::HostCompile => is_own && !is_link_stub(step),
        _ => false,
    }
}

fn is_link_stub(step: &Step) -> bool {
    let texts = step.args.iter().flat_map(|arg| &arg.0);
    let mut texts = texts.filter_map(|part| match part {
        crate::step::Part::Text(text) => Some(text.as_str()),
        crate::step::Part::File(_) => None,
    });
    texts.any(|text| text.starts_with("-DREGISTERLINKBINARYFILE="))
}

fn is_device_code(step: &Step) -> bool {
    step.tool == Tool::Preprocess
        && (step.args.iter()).any(|arg| arg.as_text() == Some("-D__CUDACC__"))
}

/// The words that nvcc.profile adds for the toolkit's own headers.
fn toolkit_words(transcript: &Transcript) -> Vec<String> {
    let value = transcript.variable("INCLUDES").unwrap_or_default();
    let split = words::split(&value, |name| transcript.variable(name));
    let words = split.map(|line| line.words).unwrap_or_default();
    let text = |word: Word| match word {
        Word::Text(text) => Some(text),
        Word::Substitution(_) => None,
    };
    words.into_iter().filter_map(text).collect()
}

/// The C++ standard with which the front end reads a preprocessed source: the host compiler's default is not clang's.
fn standard(graph: &TaskGraph, pass: &Step) -> Option<String> {
    let reads_it = |step: &&Step| step.reads.iter().any(|id| pass.writes.contains(id));
    let front_end = graph.steps.iter().find(reads_it)?;
    let words = front_end.args.iter().filter_map(Arg::as_text);
    let version = words.filter_map(|word| word.strip_prefix("--c++")).next()?;
    Some(format!("-std=gnu++{version}"))
}

/// The newest architecture that a source is compiled for.
fn newest_architecture(graph: &TaskGraph, source: &str) -> Option<String> {
    let passes = graph.steps.iter().filter(|step| {
        let first = step.reads.first();
        step.tool == Tool::Preprocess && first.is_some_and(|id| graph.file(*id).path == source)
    });
    let texts: Vec<_> = passes.flat_map(|step| &step.writes).collect();
    let compiles = graph
        .steps
        .iter()
        .filter(|step| step.tool == Tool::Cicc && step.reads.iter().any(|id| texts.contains(&id)));
    // `90a` is newer than `90`, and `100` than both.
    let order = |name: &&str| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        (digits, (*name).to_owned())
    };
    let names = compiles.filter_map(|step| step.arch.as_deref());
    let names = names.filter_map(|arch| arch.rsplit_once('_').map(|(_, name)| name));
    names.max_by_key(order).map(|name| format!("sm_{name}"))
}

/// What clang is told of the words that the host compiler gets.
fn clang_words(step: &Step, of_toolkit: &[String], standard: Option<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut words = step.args.iter().filter_map(Arg::as_text);
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            let Some(value) = words.next() else { break };
            // clang includes the runtime's header itself, among others.
            if (word, value) != ("-include", "cuda_runtime.h") {
                kept.extend([word.to_owned(), value.to_owned()]);
            }
        } else if matches!(word, "-x" | "-o" | "-MF" | "-MT" | "-MQ") {
            words.next();
        } else if let Some(folder) = (word.strip_prefix("-I"))
            .filter(|_| of_toolkit.iter().any(|of_toolkit| of_toolkit == word))
        {
            // Messages about the toolkit's headers are not for people who edit something else.
            kept.extend(["-isystem".to_owned(), folder.to_owned()]);
        } else if is_kept(word) {
            kept.push(word.to_owned());
        }
    }
    if !kept.iter().any(|word| word.starts_with("-std=")) {
        kept.extend(standard);
    }
    kept
}

fn is_kept(word: &str) -> bool {
    if let Some(definition) = word.strip_prefix("-D") {
        let name = definition.split('=').next().unwrap_or_default();
        let is_nvccs = NVCC_MACROS.iter().any(|own| name.starts_with(own));
        return !is_nvccs || DESCRIBING.contains(&name);
    }
    // A warning that only clang has would be an error that the build does not have.
    if word.starts_with("-Werror") || word.starts_with("-Wa,") || word.starts_with("-Wp,") {
        return false;
    }
    if let Some(feature) = word.strip_prefix("-f") {
        let feature = feature.strip_prefix("no-").unwrap_or(feature);
        return LANGUAGE.contains(&feature) || LIMITS.iter().any(|limit| word.starts_with(limit));
    }
    word == "-pthread" || KEPT.iter().any(|beginning| word.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nvcc 13.5 prints for two architectures, without the steps after cicc.
    const DRY_RUN: &str = r#"#$ TOP=/tk/bin/..
#$ INCLUDES="-I/tk/bin/../include"
#$ gcc -D__CUDA_ARCH_LIST__=900,1200 -E -x c++ -D__CUDACC__ -D__NVCC__ -D__CUDACC_RELAXED_CONSTEXPR__  -O2 -fPIC -fno-gnu-unique -Wall -Werror=vla -Werror -I"inc" "-I/tk/bin/../include" "-isystem" "/tk/bin/../include/cccl" -D "__CUDA_NO_HALF_OPERATORS__" -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_DEVICE_ATOMIC_BUILTINS__=1 -include "cuda_runtime.h" -include "own.h" -m64 "a b.cu" -o "/tmp/x.cpp4.ii"
#$ cudafe++ --c++17 --gen_c_file_name "/tmp/x.cudafe1.cpp" --stub_file_name "x.stub.c" --gen_module_id_file --module_id_file_name "/tmp/x.module_id" "/tmp/x.cpp4.ii"
#$ gcc -D__CUDA_ARCH__=900 -E -x c++ -D__CUDACC__ "a b.cu" -o "/tmp/x.90.ii"
#$ "/tk/cicc" --c++17 -arch compute_90a --module_id_file_name "/tmp/x.module_id" "/tmp/x.90.ii" -o "/tmp/x.90.ptx"
#$ gcc -D__CUDA_ARCH__=1200 -E -x c++ -D__CUDACC__ "a b.cu" -o "/tmp/x.120.ii"
#$ "/tk/cicc" --c++17 -arch compute_120 --module_id_file_name "/tmp/x.module_id" "/tmp/x.120.ii" -o "/tmp/x.120.ptx"
#$ gcc -std=c++20 -D__CUDA_ARCH_LIST__=900 -c -x c++ -D__NVCC__ -D "X=1" "b.cpp" -o "b.o"
"#;

    fn readings(text: &str) -> Vec<SourceReading> {
        let transcript = Transcript::parse(text).expect("parses");
        let graph = TaskGraph::build(&transcript, "").expect("a graph");
        source_readings(&transcript, &graph)
    }

    #[test]
    fn words_that_change_the_meaning_stay() {
        let [device, host] = &readings(DRY_RUN)[..] else {
            panic!("two sources")
        };
        assert_eq!(device.source, "a b.cu");
        assert_eq!(
            device.words,
            [
                "-D__CUDACC_RELAXED_CONSTEXPR__",
                "-O2",
                "-fPIC",
                "-Wall",
                "-Iinc",
                "-isystem",
                "/tk/bin/../include",
                "-isystem",
                "/tk/bin/../include/cccl",
                "-D",
                "__CUDA_NO_HALF_OPERATORS__",
                "-D__CUDACC_VER_MAJOR__=13",
                "-include",
                "own.h",
                "-m64",
                "-std=gnu++17",
            ]
        );
        let of_device = device.device.as_ref().expect("device code");
        assert_eq!(of_device.architecture.as_deref(), Some("sm_120"));
        assert_eq!(of_device.toolkit.as_deref(), Some("/tk/bin/.."));
        assert_eq!((host.source.as_str(), &host.device), ("b.cpp", &None));
        assert_eq!(host.words, ["-std=c++20", "-D", "X=1"]);
    }

    #[test]
    fn device_code_alone_is_read_as_its_own_pass_reads_it() {
        let only = DRY_RUN
            .lines()
            .filter(|l| !l.contains(".cpp"))
            .fold(String::new(), |text, line| format!("{text}{line}\n"));
        let only = only.replace("--module_id_file_name \"/tmp/x.module_id\" ", "");
        let [reading] = &readings(&only)[..] else {
            panic!("one source")
        };
        assert_eq!(reading.words, ["-std=gnu++17"]);
        assert!(reading.device.is_some());
    }
}
