//! The keys under which the result of one call or step may be stored, in the order in which they are looked up.
//!
//! Looking up, storing, asking shared caches and explaining a miss all walk this one list.

use crate::key::Key;
use crate::record::Outcome;

/// The keys of one call or step. A result may be reusable in every folder or only where it was made, and may look the same
/// everywhere or only on one kind of terminal: that makes up to four keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyVariants {
    base: Key,
    variants: Vec<KeyVariant>,
}

/// One of these keys, and the kind of results under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyVariant {
    /// The key.
    pub key: Key,
    /// Whether results under it are reusable only in these folders.
    pub is_path_specific: bool,
    /// Whether results under it were made from a text that may have had other line numbers.
    pub is_of_any_lines: bool,
    shown: DiagnosticsFor,
}

/// Which diagnostics the results under a key may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiagnosticsFor {
    /// Any: they are not formatted for a terminal, because there is none.
    Any,
    /// None: a result without messages is the same for every terminal.
    Nothing,
    /// Diagnostics formatted for this terminal.
    OnTerminal,
}

impl KeyVariants {
    /// The variants of `key`. `path_specific` is the key of a result that contains a folder's name; `on_terminal` makes the
    /// key of a result with diagnostics for the present terminal.
    pub fn new(
        key: Key,
        path_specific: Option<Key>,
        on_terminal: Option<&dyn Fn(&Key) -> Key>,
    ) -> Self {
        let path_specific = path_specific.map(|key| (key, true));
        let mut variants = Vec::with_capacity(4);
        for (key, is_path_specific) in std::iter::once((key, false)).chain(path_specific) {
            let variant = |key, shown| KeyVariant {
                key,
                is_path_specific,
                is_of_any_lines: false,
                shown,
            };
            match on_terminal {
                None => variants.push(variant(key, DiagnosticsFor::Any)),
                Some(on_terminal) => variants.extend([
                    variant(key, DiagnosticsFor::Nothing),
                    variant(on_terminal(&key), DiagnosticsFor::OnTerminal),
                ]),
            }
        }
        Self {
            base: key,
            variants,
        }
    }

    /// The same variants, and last the key of the text without its line numbers, for results without messages.
    pub fn or_of_any_lines(mut self, key: Key) -> Self {
        self.variants.push(KeyVariant {
            key,
            is_path_specific: false,
            is_of_any_lines: true,
            shown: DiagnosticsFor::Nothing,
        });
        self
    }

    /// The key of the text without its line numbers, if there is one.
    pub fn of_any_lines(&self) -> Option<Key> {
        let mut variants = self.variants.iter();
        let found = variants.find(|variant| variant.is_of_any_lines);
        found.map(|variant| variant.key)
    }

    /// The key from which the others are made.
    pub fn base(&self) -> Key {
        self.base
    }

    /// The variants in the order in which they are looked up.
    pub fn iter(&self) -> impl Iterator<Item = &KeyVariant> {
        self.variants.iter()
    }

    /// All keys, for a shared cache, which is asked for all of them at once.
    pub fn keys(&self) -> Vec<Key> {
        self.variants.iter().map(|variant| variant.key).collect()
    }

    /// The key under which a new result is stored; `None` if the result is path-specific and there are no mapped folders.
    pub fn for_result(&self, is_path_specific: bool, outcome: &Outcome) -> Option<Key> {
        let fits = |variant: &&KeyVariant| {
            variant.is_path_specific == is_path_specific
                && !variant.is_of_any_lines
                && variant.suits(outcome)
        };
        self.variants.iter().find(fits).map(|variant| variant.key)
    }
}

impl KeyVariant {
    /// Whether this look-up may use a result under this key.
    pub fn suits(&self, outcome: &Outcome) -> bool {
        let is_silent = outcome.stderr.is_empty();
        (self.shown != DiagnosticsFor::Nothing || is_silent)
            && (!self.is_of_any_lines || is_silent && outcome.stdout.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saying(stderr: &str) -> Outcome {
        Outcome {
            stderr: stderr.as_bytes().to_vec(),
            ..Outcome::default()
        }
    }

    fn on_terminal(key: &Key) -> Key {
        Key(key.0.map(|byte| byte + 100))
    }

    const ANYWHERE: Key = Key([1; 32]);
    const HERE: Key = Key([2; 32]);

    #[test]
    fn a_result_is_found_under_the_key_it_is_kept_under() {
        for path_specific in [None, Some(HERE)] {
            for terminal in [None, Some(&on_terminal as &dyn Fn(&Key) -> Key)] {
                let variants = KeyVariants::new(ANYWHERE, path_specific, terminal);
                for is_path_specific in [false, path_specific.is_some()] {
                    for outcome in [saying(""), saying("a warning")] {
                        let key = variants.for_result(is_path_specific, &outcome);
                        let mut found = variants.iter().filter(|v| Some(v.key) == key);
                        assert!(found.any(|variant| variant.suits(&outcome)));
                        assert!(variants.keys().contains(&key.expect("a key")));
                    }
                }
            }
        }
    }

    #[test]
    fn results_without_messages_are_shared_by_terminals_and_pipes() {
        let pipe = KeyVariants::new(ANYWHERE, None, None);
        let terminal = KeyVariants::new(ANYWHERE, None, Some(&on_terminal));
        assert_eq!(
            pipe.for_result(false, &saying("")),
            terminal.for_result(false, &saying(""))
        );
        let loud = saying("a warning");
        assert_ne!(
            pipe.for_result(false, &loud),
            terminal.for_result(false, &loud)
        );
        assert!(
            terminal
                .iter()
                .all(|v| v.key != ANYWHERE || !v.suits(&loud))
        );
    }

    #[test]
    fn a_path_specific_result_needs_a_path_specific_key() {
        let variants = KeyVariants::new(ANYWHERE, None, None);
        assert_eq!(variants.for_result(true, &saying("")), None);
    }
}
