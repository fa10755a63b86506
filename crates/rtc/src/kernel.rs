//! Kernels by their texts, and loaded functions.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::compiler::Compiled;
use crate::device::Function;
use crate::memory_key::whole;
use crate::request::is_same;

/// A kernel's texts, read and hashed once, for repeated requests.
///
/// It belongs to no cache and no device. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub(crate) parameters: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<str>,
    pub(crate) hash: u64,
    /// Decides nothing but what messages name.
    pub(crate) file: Option<Arc<str>>,
}

impl Kernel {
    /// The kernel `name` of `source`, with `parameters` as text before it, as [`KernelCache::get_image`](crate::KernelCache::get_image) has them.
    pub fn new(
        parameters: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        source: impl Into<Arc<str>>,
    ) -> Self {
        let (parameters, name, source) = (parameters.into(), name.into(), source.into());
        let hash = hash_of(&parameters, &name, &source);
        Self {
            parameters,
            name,
            source,
            hash,
            file: None,
        }
    }

    /// The same, from this file: errors name it in place of the kernel's name, and so does debug information (`-G`,
    /// `-lineinfo`). It decides nothing else.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<Arc<str>>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Its name in C++.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text before its own.
    pub fn parameters(&self) -> &str {
        &self.parameters
    }

    /// Its text.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && is_same(&self.source, &other.source)
            && is_same(&self.name, &other.name)
            && is_same(&self.parameters, &other.parameters)
    }
}

impl Eq for Kernel {}

/// A loaded function with its request, which is compared as a whole.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub kernel: Kernel,
    pub device: usize,
    /// The image that the function is from: there is a new one after a header was edited.
    pub image: Arc<Compiled>,
    pub function: Arc<Function>,
}

/// The texts as one number.
pub(crate) fn hash_of(parameters: &str, name: &str, source: &str) -> u64 {
    let mut hasher = Xxh3::new();
    for text in [parameters, name, source] {
        whole(&mut hasher, text.as_bytes());
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_between_texts_count() {
        let kernels = [
            ("a", "bc", ""),
            ("ab", "c", ""),
            ("", "abc", ""),
            ("a", "b", "c"),
        ];
        let kernels = kernels.map(|(before, name, source)| Kernel::new(before, name, source));
        for (index, one) in kernels.iter().enumerate() {
            for (other, two) in kernels.iter().enumerate() {
                assert_eq!(one == two, index == other, "{one:?} {two:?}");
            }
            assert_eq!(
                *one,
                Kernel::new(&*one.parameters, &*one.name, &*one.source)
            );
        }
    }
}
