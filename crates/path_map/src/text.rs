//! Finds names of folders in text, and replaces them.

/// Whether a component of a path may end before `next`.
pub(crate) fn ends_component(next: Option<&u8>) -> bool {
    !next.is_some_and(|b| b.is_ascii_alphanumeric() || b"_-.+~%@".contains(b))
}

/// Whether a path may begin behind `before`: `/x/home/a` is not `/home/a`, but `-I/home/a` is.
fn begins_path(before: &[u8]) -> bool {
    let word = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_-.+~%@/".contains(b));
    !word.into_iter().any(|b| b"/~".contains(b)) && before.last() != Some(&b'.')
}

/// Replaces the longest of `swaps` at every place where one stands as a whole path or the beginning of one.
pub(crate) fn replace_all(text: &[u8], mut swaps: Vec<(&str, &str)>) -> Vec<u8> {
    swaps.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    let mut hits: Vec<(usize, usize)> = Vec::new();
    for (which, (from, _)) in swaps.iter().enumerate() {
        let from = from.as_bytes();
        hits.extend(
            memchr::memmem::find_iter(text, from)
                .filter(|at| ends_component(text.get(at + from.len())) && begins_path(&text[..*at]))
                .map(|at| (at, which)),
        );
    }
    // At one place the longest counts, which comes first.
    hits.sort_unstable();
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for (at, which) in hits {
        if at < done {
            continue;
        }
        let (from, to) = swaps[which];
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(to.as_bytes());
        done = at + from.len();
    }
    out.extend_from_slice(&text[done..]);
    out
}
