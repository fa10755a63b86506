//! The stub: what a launch really calls, and the constructor that registers the kernels.

use warpcc_fatbin::demangle;

use super::excerpt::{arguments, cut, first, statements};
use crate::block::{Block, Line, NamedValue};

/// Lines of a stub that are shown.
const SHOWN: usize = 24;

/// The macros that register, the function of the runtime behind each, and which arguments are the
/// host's thing and the device's name.
const CALLS: [(&str, &str, usize, Option<usize>); 5] = [
    ("__cudaRegisterEntry", "__cudaRegisterFunction", 1, Some(2)),
    ("__cudaRegisterVariable", "__cudaRegisterVar", 1, None),
    (
        "__cudaRegisterManagedVariable",
        "__cudaRegisterManagedVar",
        1,
        None,
    ),
    (
        "__cudaRegisterGlobalTexture",
        "__cudaRegisterTexture",
        1,
        None,
    ),
    (
        "__cudaRegisterGlobalSurface",
        "__cudaRegisterSurface",
        1,
        None,
    ),
];

/// Summarises a stub.
pub fn blocks(text: &str) -> Vec<Block> {
    let define = |name: &str| super::facts::defined(text, name).map(str::to_owned);
    let included: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'))
        .collect();
    let registered = registrations(text);
    let mut facts = Vec::new();
    if let Some(id) = define("__NV_MODULE_ID") {
        facts.push(NamedValue::new("module id", id));
    }
    facts.push(NamedValue::new("includes", included.join(", ")));
    facts.push(NamedValue::new("registered", registered.len().to_string()));
    let mut blocks = vec![
        Block::text(
            "Included by the host's C++. For each kernel it has a function that packs the arguments, \
             takes the pushed configuration back and asks the runtime to launch; and one constructor, \
             which runs before main and tells the runtime which host function stands for which kernel.",
        ),
        Block::facts("", facts),
    ];
    if !registered.is_empty() {
        blocks.push(Block::first_rows(
            "What is registered",
            &[
                "macro",
                "function of the runtime",
                "on the host",
                "in the fat binary",
                "as written",
            ],
            registered.into_iter(),
        ));
    }
    if let Some(lines) = host_function(text) {
        blocks.push(Block::lines(
            "A kernel's host function, which the call after the push reaches",
            lines,
        ));
    }
    if let Some(lines) = first_stub(text) {
        blocks.push(Block::lines(
            "A kernel's stub: the arguments' addresses, and the launch",
            lines,
        ));
    }
    let constructor: Vec<Line> = text
        .lines()
        .filter(|line| line.contains("____cudaRegisterAll(void)") && line.contains('{'))
        .flat_map(statements)
        .map(|text| Line {
            number: None,
            marked: text.contains("__cudaRegister") && !text.contains("____cudaRegisterAll"),
            text,
        })
        .collect();
    if !constructor.is_empty() {
        blocks.push(Block::lines(
            "The constructor: it hands over the fat binary and a callback that registers what the \
             table lists",
            constructor,
        ));
    }
    blocks
}

fn registrations(text: &str) -> Vec<Vec<String>> {
    let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
    for (name, function, host, device) in CALLS {
        for (at, _) in text.match_indices(name) {
            let is_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = &text[at + name.len()..];
            let Some((words, _)) = arguments(rest).filter(|_| is_word && rest.starts_with('('))
            else {
                continue;
            };
            let Some(on_host) = words.get(host) else {
                continue;
            };
            let named = match device {
                Some(index) => words.get(index).map_or("", |word| word.trim()).to_owned(),
                // Variables are known by the name that the host's shadow has.
                None => variable(on_host),
            };
            let on_host = match device {
                Some(_) => demangle(&named),
                None => cut(on_host),
            };
            rows.push((
                at,
                vec![
                    name.to_owned(),
                    function.to_owned(),
                    on_host,
                    named,
                    cut(&format!("{name}({})", words.join(", "))),
                ],
            ));
        }
    }
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// `counter` of `__shadow_var(counter,::counter)`.
fn variable(shadow: &str) -> String {
    let inner = shadow
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or(shadow);
    inner.split(',').next().unwrap_or(inner).trim().to_owned()
}

/// The shortest function that calls a stub, with its head.
fn host_function(text: &str) -> Option<Vec<Line>> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("# "))
        .collect();
    let calls = |line: &&str| line.starts_with("{__device_stub__");
    let shortest = lines
        .iter()
        .copied()
        .filter(calls)
        .min_by_key(|line| line.len())?;
    let at = lines.iter().position(|line| *line == shortest)?;
    let from = at.checked_sub(1)?;
    let whole = lines.get(from..lines.len().min(at + 2))?.join(" ");
    let lines = statements(&whole).into_iter().map(|text| Line {
        number: None,
        marked: text.contains("__device_stub__"),
        text,
    });
    Some(first(lines.collect(), SHOWN))
}

/// The shortest definition of a stub.
fn first_stub(text: &str) -> Option<Vec<Line>> {
    let definition = text
        .lines()
        .filter(|line| line.contains("__device_stub__") && line.contains("__cudaLaunchPrologue"))
        .min_by_key(|line| line.len())?;
    let lines = statements(definition).into_iter().map(|text| Line {
        number: None,
        marked: text.contains("__cudaLaunch("),
        text,
    });
    Some(first(lines.collect(), SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#define __NV_MODULE_ID _0_a\n#include \"crt/host_runtime.h\"\n#include \"a.fatbin.c\"\n\
        static void __sti____cudaRegisterAll(void) __attribute__((__constructor__));\n\
        void __device_stub__Z1kPf(float *__par0){__cudaLaunchPrologue(1);__cudaSetupArgSimple(__par0, 0UL);__cudaLaunch(((char *)((void ( *)(float *))k)));}\n\
        static void __nv_cudaEntityRegisterCallback( void **__T0) {  __nv_dummy_param_ref(__T0); __cudaRegisterEntry(__T0, ((void ( *)(float *))k), _Z1kPf, (-1)); __cudaRegisterVariable(__T0, __shadow_var(counter,::counter), 0, 4UL, 0, 0); }\n\
        static void __sti____cudaRegisterAll(void) {  __cudaRegisterBinary(__nv_cudaEntityRegisterCallback);  }\n";

    #[test]
    fn registrations_are_read() {
        let rows = registrations(TEXT);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0][1..4],
            ["__cudaRegisterFunction", "k(float*)", "_Z1kPf"]
        );
        assert_eq!(rows[1][1], "__cudaRegisterVar");
        assert_eq!(rows[1][3], "counter");
        let blocks = blocks(TEXT);
        let marked: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Excerpt { lines, .. } => lines.iter().find(|line| line.marked),
                _ => None,
            })
            .map(|line| line.text.trim())
            .collect();
        assert_eq!(
            marked,
            [
                "__cudaLaunch(((char *)((void ( *)(float *))k)));",
                "__cudaRegisterBinary(__nv_cudaEntityRegisterCallback);"
            ]
        );
    }
}
