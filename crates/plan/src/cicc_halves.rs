//! Splits cicc into its two halves, so that a device compile ends early where only host code was changed
//! (docs/design/early-cutoff.md).
//!
//! cicc is a front end, which makes NVVM bitcode of the source, and libNVVM, which makes PTX of the bitcode. As two commands
//! they write the same files. The second one reads nothing but the bitcode, so its key holds all that its PTX depends on.

use crate::graph::TaskGraph;
use crate::step::{Arg, FRONT_END, FileId, Part, Step, Tool};

/// The word by which cicc is libNVVM alone.
const LIBNVVM: &str = "-libnvvm";

/// The toolkits whose halves were compared with the whole: `cargo xtask audit-ptx`.
const COMPARED: [(&str, &str); 2] = [("13", "0"), ("13", "5")];

/// Words that the front end takes as they are.
const FOR_FRONT_END: [&str; 10] = [
    "--static-host-stub",
    "--device-hidden-visibility",
    "--display_error_number",
    "--allow_managed",
    "--extended-lambda",
    "--relaxed_constexpr",
    "--no-version-ident",
    "-tused",
    "--simt-only",
    "--gen_div_approx_ftz",
];

/// The same, with a value.
const FOR_FRONT_END_WITH_VALUE: [&str; 7] = [
    "--orig_src_file_name",
    "--orig_src_path_name",
    "--include_file_name",
    "--module_id_file_name",
    "--gen_c_file_name",
    "--stub_file_name",
    "--gen_device_file_name",
];

/// The arguments of both halves.
struct Halves {
    front: Vec<Arg>,
    back: Vec<Arg>,
    /// What the back half writes.
    ptx: FileId,
}

/// Splits every cicc that can be split. Gives the number of splits.
pub fn split_cicc(graph: &mut TaskGraph) -> usize {
    if graph.private.is_empty() || !is_compared(graph) {
        return 0;
    }
    let mut splits = 0;
    // From the back, so that the indices before stay right.
    for at in (0..graph.steps.len()).rev() {
        if graph.steps[at].tool == Tool::Cicc && split(graph, at).is_some() {
            splits += 1;
        }
    }
    splits
}

/// Whether this is a toolkit whose halves are known. nvcc tells the preprocessor its version.
fn is_compared(graph: &TaskGraph) -> bool {
    let value = |name: &str| {
        let words = graph.steps.iter().flat_map(|step| &step.args);
        words
            .filter_map(Arg::as_text)
            .find_map(|word| word.strip_prefix(name))
    };
    let version = (
        value("-D__CUDACC_VER_MAJOR__=").unwrap_or_default(),
        value("-D__CUDACC_VER_MINOR__=").unwrap_or_default(),
    );
    COMPARED.contains(&version)
}

fn split(graph: &mut TaskGraph, at: usize) -> Option<()> {
    let original = graph.steps[at].clone();
    let ptx = value_of(&original, "-o")?;
    let path = format!("{}{}.bc", graph.private, graph.file(ptx).name());
    let bitcode = FileId(u32::try_from(graph.files.len()).ok()?);
    let halves = halves(&original, bitcode)?;
    graph.add_temporary(path, Some(at));
    let mut front = original.clone();
    front.args = halves.front;
    for id in &mut front.writes {
        if *id == halves.ptx {
            *id = bitcode;
        }
    }
    let back = Step {
        tool: Tool::Nvvm,
        program: original.program,
        args: halves.back,
        reads: vec![bitcode],
        writes: vec![halves.ptx],
        removes: Vec::new(),
        arch: original.arch,
        raw: format!("{} {LIBNVVM}", original.raw),
    };
    front.raw = format!("{} {FRONT_END}", original.raw);
    graph.steps[at] = front;
    graph.insert_step(at + 1, back);
    Some(())
}

/// The file behind an option.
fn value_of(step: &Step, option: &str) -> Option<FileId> {
    let at = step.args.iter().position(|a| a.as_text() == Some(option))?;
    match step.args.get(at + 1)?.0.as_slice() {
        [Part::File(id)] => Some(*id),
        _ => None,
    }
}

/// The words of cicc's command, by the half that gets them.
struct Words {
    source: Arg,
    ptx: FileId,
    front: Vec<Arg>,
    back: Vec<Arg>,
}

/// Divides the words of cicc's command; `None` with a word that is not known.
fn divide_words(step: &Step) -> Option<Words> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    let (mut source, mut ptx) = (None, None);
    let mut args = step.args.iter();
    while let Some(arg) = args.next() {
        let Some(word) = arg.as_text() else {
            // The only file without an option is the source.
            source = source.is_none().then(|| Some(arg.clone()))?;
            continue;
        };
        match word {
            "-o" => match args.next()?.0.as_slice() {
                [Part::File(id)] => ptx = Some(*id),
                _ => return None,
            },
            "-arch" => drop(args.next()?),
            "-m64" => front.push(Arg::text("--m64")),
            "--device-c" => {
                front.push(arg.clone());
                back.push(arg.clone());
            }
            "-ftz=0" | "-ftz=1" | "-fast-math" => back.push(arg.clone()),
            "-prec_div=0" | "-prec_div=1" | "-prec_sqrt=0" | "-prec_sqrt=1" => {
                back.push(Arg::text(word.replace('_', "-")));
            }
            "-fmad=0" | "-fmad=1" => back.push(Arg::text(word.replace("fmad", "fma"))),
            "-maxreg" => {
                let count = args.next()?.as_text()?;
                back.push(Arg::text(format!("-maxreg={count}")));
            }
            _ if FOR_FRONT_END_WITH_VALUE.contains(&word) => {
                front.extend([arg.clone(), args.next()?.clone()]);
            }
            _ if FOR_FRONT_END.contains(&word)
                || word.starts_with("--c++")
                || word.starts_with("--gnu_version=") =>
            {
                front.push(arg.clone());
            }
            _ => return None,
        }
    }
    Some(Words {
        source: source?,
        ptx: ptx?,
        front,
        back,
    })
}

/// Both commands, as 13.0's cicc makes them; `None` with a word that is not known.
fn halves(step: &Step, bitcode: FileId) -> Option<Halves> {
    let arch = step.arch.as_deref()?;
    let number = arch.strip_prefix("compute_")?;
    let number: u32 = number
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .parse()
        .ok()?;
    let is_old = number < 100;
    let version = match is_old {
        true => "-nvvm-version=nvvm70",
        false => "-nvvm-version=nvvm-latest",
    };
    let mut words = divide_words(step)?;
    let mut first = vec![
        Arg::text(FRONT_END),
        words.source,
        Arg::text("-o"),
        Arg::file(bitcode),
        Arg::text("--emit-llvm-bc"),
    ];
    first.append(&mut words.front);
    if is_old {
        first.push(Arg::text("--no-device-float128"));
    }
    first.extend([Arg::text("--nv_arch"), Arg::text(arch), Arg::text(version)]);
    let mut second = vec![
        Arg::text(LIBNVVM),
        Arg::file(bitcode),
        Arg::text("-o"),
        Arg::file(words.ptx),
        Arg::text(version),
    ];
    second.append(&mut words.back);
    second.push(Arg::text(format!("-arch={arch}")));
    Some(Halves {
        front: first,
        back: second,
        ptx: words.ptx,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Transcript;

    fn graph(minor: u32, options: &str) -> TaskGraph {
        let text = format!(
            "#$ gcc -D__CUDA_ARCH__=900 -E -x c++ -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__={minor} \"a.cu\" -o \"/k/a.ii\"\n\
             #$ /nvvm/cicc --c++17 -arch compute_90 -m64 -ftz=0 -prec_div=1 -fmad=1 {options} --gen_c_file_name \"/k/a.c\" \
             --stub_file_name \"/k/a.stub.c\" --gen_device_file_name \"/k/a.gpu\" \"/k/a.ii\" -o \"/k/a.ptx\"\n\
             #$ ptxas -arch=sm_90 \"/k/a.ptx\" -o \"/k/a.cubin\"\n"
        );
        let transcript = Transcript::parse(&text).expect("understood");
        TaskGraph::build(&transcript, "/k/").expect("a graph")
    }

    fn words(graph: &TaskGraph, at: usize) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::File(id) => graph.file(*id).path.clone(),
        };
        let args = graph.steps[at].args.iter().flat_map(|arg| &arg.0);
        args.map(part).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn cicc_becomes_two_commands() {
        let mut graph = graph(5, "--device-c -maxreg 32");
        assert_eq!(split_cicc(&mut graph), 1);
        let tools: Vec<Tool> = graph.steps.iter().map(|step| step.tool).collect();
        assert_eq!(
            tools,
            [Tool::Preprocess, Tool::Cicc, Tool::Nvvm, Tool::Ptxas]
        );
        assert_eq!(
            words(&graph, 1),
            "-lgenfe /k/a.ii -o /k/a.ptx.bc --emit-llvm-bc --c++17 --m64 --device-c --gen_c_file_name /k/a.c \
             --stub_file_name /k/a.stub.c --gen_device_file_name /k/a.gpu --no-device-float128 --nv_arch compute_90 \
             -nvvm-version=nvvm70"
        );
        assert_eq!(
            words(&graph, 2),
            "-libnvvm /k/a.ptx.bc -o /k/a.ptx -nvvm-version=nvvm70 -ftz=0 -prec-div=1 -fma=1 --device-c -maxreg=32 \
             -arch=compute_90"
        );
        assert_eq!(graph.needs(2), [1]);
        assert_eq!(graph.needs(3), [2]);
    }

    #[test]
    fn what_is_not_known_stays_whole() {
        for options in [
            "-generate-line-info",
            "-g",
            "-O1",
            "--new-option",
            "-olto \"/k/a.ltoir\"",
        ] {
            let mut whole = graph(5, options);
            assert_eq!(split_cicc(&mut whole), 0, "{options}");
            assert_eq!(whole, graph(5, options));
        }
        assert_eq!(split_cicc(&mut graph(9, "")), 0);
    }
}
