//! NVIDIA's programs that walk over all variables, and which of them they look for.
//!
//! A program that walks may look at anything, so every variable counts for it. But then no two jobs of a CI share a result of
//! CUDA 13.2: its ptxas walks. What such a program compares was read in its code, once for each file, and only a file with
//! that very content is known by it.

/// A program's content as BLAKE3, and the names that it looks for.
type Walker = (&'static str, &'static [&'static str]);

/// ptxas compares each variable with `NVIDIA_KEY=` and a length of 75 bytes, in the only function that reads `environ`
/// (`objdump -d`). Of NVIDIA's programs of 13.0 to 13.5, no other imports `environ`.
const WALKERS: [Walker; 3] = [
    // 13.2.51, x86-64, from PyPI.
    (
        "eac53d9e6ecb0060888672db422dc6c2ea9e581b41b3fc9137d9b31eceda8416",
        &["NVIDIA_KEY"],
    ),
    // 13.2.78
    (
        "746c22c60bdf9075abba0884c2e1d410721fbba4895cc95ad6da823f0b23d853",
        &["NVIDIA_KEY"],
    ),
    // 13.2.86
    (
        "482865c27aabdac0c742334bb551847dcbe1c56224b2a02460617bbddec33bde",
        &["NVIDIA_KEY"],
    ),
];

/// The variables that a program with this content looks for when it walks over all; `None` if it is not known.
pub fn looks_for(content: [u8; 32]) -> Option<&'static [&'static str]> {
    let content = blake3::Hash::from(content).to_hex();
    let mut known = WALKERS.iter();
    known
        .find(|(walker, _)| *walker == content.as_str())
        .map(|(_, names)| *names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_program_may_look_for_anything() {
        let known = blake3::Hash::from_hex(WALKERS[0].0).expect("a hash");
        assert_eq!(looks_for(known.into()), Some(&["NVIDIA_KEY"][..]));
        let mut changed: [u8; 32] = known.into();
        changed[0] ^= 1;
        assert_eq!(looks_for(changed), None);
    }
}
