//! The parts of a command line that the result depends on.

use crate::options::Effect;

use super::{Invocation, Item, PATH_OPTIONS};

impl Invocation {
    /// Whether the result does not depend on the path to which it is written, so that `-o` and `-MF` stay out of the key.
    pub fn output_is_free(&self) -> bool {
        let dependency_is_free = self
            .depend
            .as_ref()
            .is_none_or(|d| d.output.is_some() && d.target.is_some());
        // `-dc x.ptx` names the module after the folder of the object (seen on 13.0 and 13.5).
        let module_is_named = self.inputs.iter().any(|i| i.ends_with(".ptx"));
        // nvcc passes its commands to a shell, which changes a name with such a character.
        let shell_changes = |name: &String| name.contains(['$', '`', '\\', '"']);
        let dependencies = self.depend.as_ref().and_then(|d| d.output.as_ref());
        let mut names = self.output.iter().chain(dependencies);
        let is_changed = names.any(shell_changes);
        self.compiles_only
            && !self.is_of_clang
            && self.output.is_some()
            && !self.debug
            && !self.keeps
            && !module_is_named
            && !is_changed
            && dependency_is_free
    }

    /// The parts of the command line that the result depends on, by name, in order.
    pub fn key_parts(&self) -> Vec<(&'static str, String)> {
        self.named_key_parts(&|path| path.to_owned())
    }

    /// The same, with paths in the values of options replaced by what `name` returns for them.
    pub fn named_key_parts(&self, name: &dyn Fn(&str) -> String) -> Vec<(&'static str, String)> {
        let free = self.output_is_free();
        let list = |value: &str| value.split(',').map(name).collect::<Vec<_>>().join(",");
        // Options of the host compiler whose value is only a place to search, such as `-I/path`.
        let host = |value: &str| {
            let one = |word: &str| {
                let flag = ["-I", "-isystem", "-iquote", "-idirafter"];
                let path = flag.iter().find_map(|f| Some((f, word.strip_prefix(f)?)));
                let map = ["file", "macro", "debug"].iter().find_map(|of| {
                    let flag = format!("-f{of}-prefix-map=");
                    let (old, new) = word.strip_prefix(&flag)?.split_once('=')?;
                    Some(format!("{flag}{}={new}", name(old)))
                });
                match (path, map) {
                    (Some((flag, path)), _) => format!("{flag}{}", name(path)),
                    (None, Some(map)) => map,
                    (None, None) => word.to_owned(),
                }
            };
            value.split(',').map(one).collect::<Vec<_>>().join(",")
        };
        let mut parts = Vec::with_capacity(self.items.len());
        for (at, item) in self.items.iter().enumerate() {
            if self.gets_another_value(at) {
                parts.push(("option", "with another value than before".to_owned()));
            }
            match item {
                Item::Input(path) => parts.push(("input", name(path))),
                Item::Forwarded(word) => parts.push(("host option", host(word))),
                Item::Option {
                    effect: Effect::Unkeyed | Effect::Threads,
                    ..
                } => {}
                Item::Option {
                    effect: Effect::Output | Effect::DependOutput,
                    long,
                    ..
                } if free => {
                    parts.push(("option", format!("--{long}")));
                }
                Item::Option {
                    long,
                    value: Some(value),
                    effect,
                } => {
                    let value = match effect {
                        Effect::Output | Effect::DependOutput | Effect::DependTarget => name(value),
                        Effect::HostOptions => host(value),
                        _ if PATH_OPTIONS.contains(long) => list(value),
                        _ => value.clone(),
                    };
                    parts.push(("option", format!("--{long} {value}")));
                }
                Item::Option {
                    long, value: None, ..
                } => parts.push(("option", format!("--{long}"))),
            }
        }
        parts
    }

    /// Whether an option that takes one value had another value before: nvcc then warns, even if no value has an effect.
    fn gets_another_value(&self, at: usize) -> bool {
        let (before, from) = self.items.split_at(at);
        let Some(Item::Option {
            long,
            effect: Effect::Output | Effect::DependOutput | Effect::Threads | Effect::Unkeyed,
            value,
        }) = from.first()
        else {
            return false;
        };
        before.iter().rev().any(|item| {
            matches!(item, Item::Option { long: name, value: other, .. } if name == long && other != value)
        })
    }
}
