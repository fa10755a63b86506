//! The files that a call writes, under the names that nvcc gives them. They follow from the command line alone, before
//! anything is planned, fetched or written.
//!
//! Seen on 13.0 and 13.5 with `--dryrun`: a source that is compiled separately names its output, below `-odir`; a program is
//! `a.out`, an archive `a.a`, linked device code `a_dlink.*`; a dependency file is named after `-o`, or else after each
//! source. If nvcc uses another name, the only effect is that the call as a whole does not hit.

use crate::Invocation;

/// The kind of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// The result that was asked for: an object, device code, a text.
    Result,
    /// The output of a linker: it may be executable.
    Linked,
    /// A make rule.
    Dependencies,
}

/// A file that a call writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its path, as nvcc writes it in its plan.
    pub path: String,
    /// Its kind.
    pub kind: OutputKind,
}

/// The last of nvcc's phases; if several are requested, the first in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// One file for each source, with this ending.
    Each(&'static str),
    /// One file for all, of this name.
    One(&'static str, OutputKind),
}

/// Endings of sources that are compiled for the device.
const CUDA: &[&str] = &["cu", "cup"];
/// Endings of sources that are compiled for the host only.
const HOST: &[&str] = &["c", "cc", "cpp", "cxx", "i", "ii", "s", "S"];

impl Invocation {
    /// Every file that the call writes if it succeeds, except the intermediate files of `-keep`
    /// ([`Invocation::keep_dir`]).
    pub fn outputs(&self) -> Vec<Output> {
        let mut outputs = Vec::new();
        let last = self.last_phase();
        let folder = self.output_directory.as_deref();
        match (last, &self.output) {
            // nvcc does not write several files under one name.
            (Last::Each(_), Some(named)) if self.made(last).next().is_some() => {
                add(&mut outputs, named.clone(), OutputKind::Result);
            }
            (Last::Each(ending), _) => {
                for input in self.made(last) {
                    let name = format!("{}.{ending}", stem(input));
                    add(&mut outputs, within(folder, &name), OutputKind::Result);
                }
            }
            (Last::One(_, kind), Some(named)) => add(&mut outputs, named.clone(), kind),
            // Linked device code goes to nvcc's working directory, whatever -odir says.
            (Last::One(name @ ("a_dlink.cubin" | "a_dlink.fatbin"), kind), None) => {
                add(&mut outputs, name.to_owned(), kind);
            }
            (Last::One(name, kind), None) => add(&mut outputs, within(folder, name), kind),
        }
        let Some(depend) = &self.depend else {
            return outputs;
        };
        for input in self.inputs.iter().filter(|i| self.is_compiled(i)) {
            let rule = match (&depend.output, &self.output) {
                (Some(rule), _) => rule.clone(),
                (None, Some(output)) => format!("{}.d", without_ending(output)),
                (None, None) => within(folder, &format!("{}.d", stem(input))),
            };
            add(&mut outputs, rule, OutputKind::Dependencies);
        }
        outputs
    }

    /// nvcc's ending for the result of each source: `"o"`, `"ptx"`, `"cubin"`, `"fatbin"` and so on. `None` if all sources
    /// together make one file.
    pub fn made_of_each(&self) -> Option<&'static str> {
        match self.last_phase() {
            Last::Each(ending) => Some(ending),
            Last::One(..) => None,
        }
    }

    /// The names that the file of `-fdevice-time-trace` may have; none without it. 13.0 adds an ending to every name, 13.5 to
    /// a name without it.
    pub fn time_trace_names(&self) -> Vec<String> {
        match (self.value_of("fdevice-time-trace"), &self.output) {
            (None, _) => Vec::new(),
            (Some("-"), Some(output)) => vec![format!("{output}.json")],
            (Some("-"), None) => vec!["trace.json".to_owned()],
            (Some(name), _) if name.ends_with(".json") => {
                vec![name.to_owned(), format!("{name}.json")]
            }
            (Some(name), _) => vec![format!("{name}.json")],
        }
    }

    /// The folder in which `-keep` leaves intermediate files, whose names are in the plan; `None` without it.
    pub fn keep_dir(&self) -> Option<&str> {
        let named = self.value_of("keep-dir").unwrap_or("");
        self.keeps.then(|| named.trim_end_matches('/'))
    }

    fn last_phase(&self) -> Last {
        let asks = |long: &str| self.asks_for(long);
        let device = [
            ("ptx", "ptx"),
            ("cubin", "cubin"),
            ("fatbin", "fatbin"),
            ("optix-ir", "optixir"),
            ("ltoir", "ltoir"),
            ("cuda", "cu.cpp.ii"),
        ];
        let links = asks("device-link");
        let found = device.iter().find(|(long, _)| asks(long));
        match found {
            Some(("cubin", _)) if links => Last::One("a_dlink.cubin", OutputKind::Result),
            Some(("fatbin", _)) if links => Last::One("a_dlink.fatbin", OutputKind::Result),
            Some((_, ending)) => Last::Each(ending),
            None if self.compiles_only => Last::Each("o"),
            None if links => Last::One("a_dlink.o", OutputKind::Result),
            None if self.library => Last::One("a.a", OutputKind::Result),
            None => Last::One("a.out", OutputKind::Linked),
        }
    }

    /// The inputs that each get a file of their own.
    fn made(&self, last: Last) -> impl Iterator<Item = &String> {
        let more: &[&str] = match last {
            Last::Each("cubin") => &["ptx"],
            Last::Each("fatbin") => &["ptx", "cubin"],
            // -dc makes objects of device code too.
            Last::Each("o") => &["ptx", "cubin"],
            Last::Each(_) | Last::One(..) => &[],
        };
        let of_host = last == Last::Each("o");
        self.inputs.iter().filter(move |input| {
            let is_made = match self.value_of("x") {
                Some(language) => of_host || language == "cu",
                None => is_one_of(input, CUDA) || of_host && is_one_of(input, HOST),
            };
            is_made || is_one_of(input, more)
        })
    }

    /// Whether the input is preprocessed, so that it has dependencies.
    fn is_compiled(&self, input: &str) -> bool {
        self.asks_for("x") || is_one_of(input, CUDA) || is_one_of(input, HOST)
    }
}

fn add(outputs: &mut Vec<Output>, path: String, kind: OutputKind) {
    if outputs.iter().all(|output| output.path != path) {
        outputs.push(Output { path, kind });
    }
}

fn is_one_of(input: &str, endings: &[&str]) -> bool {
    let ending = input.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| endings.contains(&ending))
}

fn within(folder: Option<&str>, name: &str) -> String {
    match folder {
        Some(folder) => format!("{}/{name}", folder.strip_suffix('/').unwrap_or(folder)),
        None => name.to_owned(),
    }
}

/// The name without folder and ending; `.cu` has an empty stem.
fn stem(path: &str) -> &str {
    without_ending(path.rsplit_once('/').map_or(path, |(_, name)| name))
}

fn without_ending(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name..].rfind('.') {
        Some(dot) => &path[..name + dot],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> String {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let invocation = Invocation::parse(&args, "", "", &|_| None).expect("parses");
        let paths: Vec<String> = invocation.outputs().into_iter().map(|o| o.path).collect();
        paths.join(" ")
    }

    #[test]
    fn names_of_each_mode() {
        // The names are those of `nvcc --dryrun` of 13.5 and 13.0.
        for (line, expected) in [
            ("-c sub/b.cu", "b.o"),
            ("-c a.cu sub/b.cu -odir out/", "out/a.o out/b.o"),
            ("-c a.cu -odir out -o x.o", "x.o"),
            ("-c a.b.cu", "a.b.o"),
            ("-c .cu", ".o"),
            ("-x cu -c x.y/noext", "noext.o"),
            ("-c a.cu o.o l.a s.so", "a.o"),
            ("-dc a.cu p.ptx q.cubin", "a.o p.o q.o"),
            ("-ptx a.cu c.cpp o.o", "a.ptx"),
            ("-ptx c.cpp", ""),
            ("-x cu -ptx c.cpp", "c.ptx"),
            ("-cubin p.ptx", "p.cubin"),
            (
                "-fatbin a.cu p.ptx q.cubin o.o",
                "a.fatbin p.fatbin q.fatbin",
            ),
            ("-fatbin -dlink o.o -odir out", "a_dlink.fatbin"),
            ("-cubin -dlink a.cu", "a_dlink.cubin"),
            ("-cuda sub/b.cu", "b.cu.cpp.ii"),
            ("-optix-ir a.cu", "a.optixir"),
            ("-ltoir -dlto a.cu", "a.ltoir"),
            ("-dlink o.o", "a_dlink.o"),
            ("-lib o.o -odir out", "out/a.a"),
            ("-lib -c a.cu", "a.o"),
            ("-shared -lib a.cu", "a.a"),
            ("a.cu m.cu", "a.out"),
            ("-shared a.cu -o b.so", "b.so"),
            ("-c o.o", ""),
        ] {
            assert_eq!(names(line), expected, "{line}");
        }
    }

    #[test]
    fn names_of_dependency_files() {
        for (line, expected) in [
            ("-MD -c sub/b.cu", "b.o b.d"),
            ("-MD -c sub/b.cu -o x.y/app", "x.y/app x.y/app.d"),
            ("-MD -c a.cu -o a.tar.gz", "a.tar.gz a.tar.d"),
            ("-MD -c a.cu -o .hid", ".hid .d"),
            ("-MD -MF f.d -c a.cu m.cu", "a.o m.o f.d"),
            ("-MD a.cu m.cu -odir out", "out/a.out out/a.d out/m.d"),
            ("-MD a.cu m.cu -o app", "app app.d"),
            ("-MD -MF f.d o.o", "a.out"),
            ("-MD -ptx c.cpp", "c.d"),
            ("-MMD -c a.cu c.cpp n.s o.o", "a.o c.o n.o a.d c.d n.d"),
        ] {
            assert_eq!(names(line), expected, "{line}");
        }
    }

    #[test]
    fn names_of_time_traces() {
        // As 13.5 and 13.0 name them.
        for (line, expected) in [
            ("-c a.cu -o a.o", ""),
            ("-fdevice-time-trace - -c a.cu -o a.o", "a.o.json"),
            ("-fdevice-time-trace=- -c a.cu", "trace.json"),
            ("--fdevice-time-trace t -c a.cu", "t.json"),
            ("-fdevice-time-trace t.json -c a.cu", "t.json t.json.json"),
        ] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let invocation = Invocation::parse(&args, "", "", &|_| None).expect("parses");
            assert_eq!(invocation.time_trace_names().join(" "), expected, "{line}");
        }
    }

    #[test]
    fn only_linkers_make_programs() {
        for (line, kind) in [
            ("a.cu", OutputKind::Linked),
            ("-shared a.cu", OutputKind::Linked),
            ("-dlink a.cu", OutputKind::Result),
            ("-lib a.cu", OutputKind::Result),
            ("-c a.cu", OutputKind::Result),
        ] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let invocation = Invocation::parse(&args, "", "", &|_| None).expect("parses");
            assert_eq!(invocation.outputs()[0].kind, kind, "{line}");
        }
    }
}
