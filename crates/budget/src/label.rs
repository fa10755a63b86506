//! A claim's label on the board: a text of limited length.

/// Bytes of a label.
const LABEL: usize = 96;

/// A short text: the source file and the architecture, say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label {
    length: u8,
    bytes: [u8; LABEL],
}

impl Default for Label {
    fn default() -> Self {
        Self {
            length: 0,
            bytes: [0; LABEL],
        }
    }
}

impl Label {
    /// `text`, or its end where it is too long: file names differ there.
    pub fn new(text: &str) -> Self {
        let mut from = text.len().saturating_sub(LABEL);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let kept = &text.as_bytes()[from..];
        let mut label = Self {
            length: kept.len() as u8,
            ..Self::default()
        };
        label.bytes[..kept.len()].copy_from_slice(kept);
        label
    }

    /// Its length and its bytes.
    pub(crate) fn encode(&self) -> [u8; LABEL + 1] {
        let mut bytes = [0; LABEL + 1];
        bytes[0] = self.length;
        bytes[1..].copy_from_slice(&self.bytes);
        bytes
    }

    /// Reads the output of [`Label::encode`].
    pub(crate) fn decode(bytes: &[u8; LABEL + 1]) -> Self {
        let mut label = Self {
            length: bytes[0],
            ..Self::default()
        };
        label.bytes.copy_from_slice(&bytes[1..]);
        label
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let length = usize::from(self.length).min(LABEL);
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_keep_their_end() {
        let long = format!("{}é/kernel.cu sm_90", "é".repeat(60));
        let label = Label::new(&long);
        assert!(label.as_str().ends_with("/kernel.cu sm_90"));
        assert!(label.as_str().len() <= LABEL);
        assert_eq!(Label::new("").as_str(), "");
    }
}
