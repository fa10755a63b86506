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

/// Takes stored values off the front of some bytes; `None` where they end too early or make no sense.
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

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Some(u64::from(*byte))
            }
            longer => self.longer_varint(longer),
        }
    }

    fn longer_varint(&mut self, bytes: &'a [u8]) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        let mut rest = bytes.iter();
        loop {
            let byte = *rest.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // The tenth byte has room for one bit only.
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

    /// A count of things of at least `smallest` bytes each, refused when they cannot all be there. Bounds what a reader allocates.
    pub(crate) fn count(&mut self, smallest: usize) -> Option<usize> {
        let count = self.length()?;
        (count.checked_mul(smallest)? <= self.rest.len()).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_go_round() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint(), Some(value));
            assert!(reader.rest().is_empty());
            // Cut short, it is nothing.
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
