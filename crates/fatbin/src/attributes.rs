//! The attribute stream of `.nv.info` and `.nv.compat`: format, code, value.

use crate::bytes::u16_at;

/// The format whose value has a length of its own; all others have two bytes.
const SIZED: u8 = 4;

/// One attribute.
#[derive(Debug, Clone, Copy)]
pub struct Attribute<'d> {
    /// Its number.
    pub code: u8,
    /// Its value.
    pub value: &'d [u8],
}

/// The attributes of a section, up to its end or to the first invalid one.
pub fn each(section: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let mut rest = section;
    std::iter::from_fn(move || {
        let [format, code] = *rest.first_chunk()?;
        let (value, length) = if format == SIZED {
            let size = usize::from(u16_at(rest, 2)?);
            (rest.get(4..4 + size)?, 4 + size)
        } else {
            (rest.get(2..4)?, 4)
        };
        rest = &rest[length..];
        Some(Attribute { code, value })
    })
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn both_forms_are_read_and_the_end_is_safe() {
        let bytes = [
            4, 0x2f, 8, 0, 1, 0, 0, 0, 26, 0, 0, 0, 3, 9, 1, 0, 4, 1, 200, 0, 1,
        ];
        let all: Vec<_> = each(&bytes).map(|a| (a.code, a.value.len())).collect();
        assert_eq!(all, [(0x2f, 8), (9, 2)]);
    }
}
