//! Integers and byte strings as stored: varints, zigzag, length prefixes. Reading never panics and never trusts a length.

/// Appends an unsigned integer, seven bits per byte, least first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer so that small magnitudes are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes stored values off the front of some bytes; `None` if they end too early or are not valid.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Most are one byte long; a manifest has thousands of them.
    #[expect(
        clippy::inline_always,
        reason = "left to the compiler, this call was a twentieth of a hit"
    )]
    #[inline(always)]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Some(u64::from(*byte))
            }
            longer => self.longer_varint(longer),
        }
    }

    /// Eight bytes at a time while there are eight.
    fn longer_varint(&mut self, bytes: &'a [u8]) -> Option<u64> {
        let Some((first, rest)) = bytes.split_first_chunk::<8>() else {
            return self.rest_of_varint(bytes, 0, 0);
        };
        let word = u64::from_le_bytes(*first);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return self.rest_of_varint(rest, together(word), 56);
        }
        let length = ends.trailing_zeros() as usize / 8 + 1;
        self.rest = bytes.get(length..)?;
        // The bytes up to the first end, without what follows.
        Some(together(word & (ends ^ (ends - 1))))
    }

    /// The same byte by byte; `value` has the first `shift` bits.
    fn rest_of_varint(&mut self, bytes: &'a [u8], mut value: u64, mut shift: u32) -> Option<u64> {
        let mut rest = bytes.iter();
        loop {
            let byte = *rest.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // The tenth byte may have one bit only.
                if shift == 63 && byte > 1 {
                    return None;
                }
                self.rest = rest.as_slice();
                return Some(value);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// A count of items of at least `smallest` bytes each, refused if the bytes cannot hold that many. This limits what a
    /// reader allocates.
    pub(crate) fn count(&mut self, smallest: usize) -> Option<usize> {
        let count = self.length()?;
        (count.checked_mul(smallest)? <= self.rest.len()).then_some(count)
    }
}

/// The low seven bits of each byte, side by side.
fn together(word: u64) -> u64 {
    let bytes = word & 0x7f7f_7f7f_7f7f_7f7f;
    let pairs = bytes & 0x007f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_go_round() {
        let powers = (0..64).map(|power| 1u64 << power);
        let around = powers.flat_map(|power| [power - 1, power, power + 1]);
        for value in around.chain([u64::MAX]) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            // With nothing, little and much behind it.
            for behind in [0, 3, 20] {
                let followed = [out.as_slice(), &[0xa5; 20][..behind]].concat();
                let mut reader = Reader::new(&followed);
                assert_eq!(reader.varint(), Some(value));
                assert_eq!(reader.rest().len(), behind);
            }
            // A number that is cut short is not read.
            assert_eq!(Reader::new(&out[..out.len() - 1]).varint(), None);
        }
        for value in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            assert_eq!(Reader::new(&out).signed(), Some(value));
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        assert_eq!(Reader::new(&out).bytes(), None);
        assert_eq!(Reader::new(&out).count(1), None);
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
    }
}
