//! The framing of messages: a length of four bytes, least first, and that many bytes. It does not know the messages.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message: an outcome holds a compiler's messages, and no more of them are accepted from anybody.
const LONGEST: usize = 256 << 20;

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side ended between two messages.
    #[error("the other side has closed the connection")]
    Ended,
    /// Reading or writing failed, or ended within a message.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes are no message, or one that is too long.
    #[error("it sent an invalid message")]
    Malformed,
}

/// Sends a message, in one write where the system takes it.
///
/// # Errors The other side has ended, or does not read.
pub fn write_frame(to: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    let mut bytes = postcard::to_extend(message, vec![0; 4]).map_err(|_| FrameError::Malformed)?;
    let length = bytes.len() - 4;
    if length > LONGEST {
        return Err(FrameError::Malformed);
    }
    let length = u32::try_from(length).map_err(|_| FrameError::Malformed)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes)?;
    Ok(())
}

/// The next message, of at most `most` bytes where that is less than any may have.
///
/// # Errors
/// There is none.
pub fn read_frame<T: DeserializeOwned>(
    from: &mut impl Read,
    most: Option<usize>,
) -> Result<T, FrameError> {
    let mut length = [0; 4];
    let mut read = 0;
    while read < length.len() {
        match from.read(&mut length[read..]) {
            Ok(0) if read == 0 => return Err(FrameError::Ended),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(some) => read += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > most.unwrap_or(LONGEST).min(LONGEST) {
        return Err(FrameError::Malformed);
    }
    // Memory is allocated as bytes arrive, not for the announced length.
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() != length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    postcard::from_bytes(&bytes).map_err(|_| FrameError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_they_went_and_end_with_the_stream() {
        let mut stream = Vec::new();
        for text in ["", "one", "another"] {
            write_frame(&mut stream, &text).expect("written");
        }
        let mut rest = &stream[..];
        for text in ["", "one", "another"] {
            let read: String = read_frame(&mut rest, Some(20)).expect("a message");
            assert_eq!(read, text);
        }
        let end = read_frame::<String>(&mut rest, None);
        assert!(matches!(end, Err(FrameError::Ended)), "{end:?}");
    }

    #[test]
    fn an_invalid_message_is_refused() {
        let mut whole = Vec::new();
        write_frame(&mut whole, &"a text").expect("written");
        for cut in 1..whole.len() {
            let read = read_frame::<String>(&mut &whole[..cut], None);
            assert!(matches!(read, Err(FrameError::Io(_))), "{cut}: {read:?}");
        }
        for (bytes, most) in [
            (&b"\xff\xff\xff\xff"[..], None),
            (&whole[..], Some(3)),
            (b"\x02\0\0\0\x01\xff", None),
            (b"Usage: warpcc", Some(256)),
        ] {
            let read = read_frame::<String>(&mut &bytes[..], most);
            assert!(matches!(read, Err(FrameError::Malformed)), "{read:?}");
        }
    }
}
