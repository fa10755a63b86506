//! Compresses in independent pieces, so that several threads can decompress an object of many megabytes.
//!
//! The output is a sequence of zstd frames, which any zstd decoder reads as one text (RFC 8878, section 3: frames are
//! concatenated). A blob written as a single frame is a sequence of one.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use zstd::bulk::Decompressor;
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

/// Higher levels of zstd gain little for device code and cost much.
const LEVEL: i32 = 1;
/// The bytes of one frame before compression. zstd's window at this level is 2 MiB, so little is lost.
pub(super) const FRAME: usize = 1 << 20;
/// Fewer bytes are not worth compressing: decompressing a small object was a tenth of a hit's instructions, and a disk
/// stores whole blocks of 4 KiB.
pub(super) const SMALL: usize = 16 << 10;
/// The most threads for one hit: it should be quick, and leave the machine to others.
const MOST_THREADS: usize = 4;

/// Compresses one frame after the other, in memory that is allocated once.
pub(super) struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
}

impl Packer {
    /// # Errors
    /// There is no memory for it.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            packed: Vec::new(),
        })
    }

    /// Returns a piece as a frame.
    ///
    /// # Errors
    /// It cannot be compressed.
    pub(super) fn frame(&mut self, piece: &[u8]) -> io::Result<&[u8]> {
        self.packed.clear();
        let most = zstd::zstd_safe::compress_bound(piece.len());
        self.packed.reserve(most);
        self.compressor
            .compress_to_buffer(piece, &mut self.packed)?;
        Ok(&self.packed)
    }
}

/// Compresses; `None` if that fails or gains little.
pub(super) fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() <= SMALL {
        return None;
    }
    let mut packer = Packer::new().ok()?;
    let mut packed = Vec::with_capacity(bytes.len() / 4);
    for piece in bytes.chunks(FRAME) {
        packed.extend_from_slice(packer.frame(piece).ok()?);
        if packed.len() >= bytes.len() {
            return None;
        }
    }
    (!packed.is_empty()).then_some(packed)
}

/// The place of one frame, and the place for its content.
struct FramePlace<'a> {
    frame: &'a [u8],
    into: &'a mut [u8],
}

/// Decompresses to exactly `size` bytes; `None` if `packed` is anything else.
pub(super) fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // A damaged length must not end the process.
    bytes.try_reserve_exact(size).ok()?;
    bytes.resize(size, 0);
    let mut places = Vec::new();
    let (mut rest, mut room) = (packed, bytes.as_mut_slice());
    while !rest.is_empty() {
        let length = find_frame_compressed_size(rest).ok()?;
        let (frame, after) = rest.split_at_checked(length)?;
        let content = usize::try_from(get_frame_content_size(frame).ok()??).ok()?;
        let (into, left) = room.split_at_mut_checked(content)?;
        places.push(FramePlace { frame, into });
        (rest, room) = (after, left);
    }
    if !room.is_empty() || !unpack_all(places) {
        return None;
    }
    Some(bytes)
}

fn unpack_all(places: Vec<FramePlace<'_>>) -> bool {
    let threads = match places.len() {
        0 | 1 => 1,
        frames => std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_THREADS)
            .min(frames),
    };
    let good = AtomicUsize::new(0);
    let frames = places.len();
    let queue = std::sync::Mutex::new(places);
    let work = || {
        let Ok(mut decompressor) = Decompressor::new() else {
            return;
        };
        loop {
            // No code panics while it holds the lock.
            let next = queue.lock().ok().and_then(|mut queue| queue.pop());
            let Some(FramePlace { frame, into }) = next else {
                return;
            };
            let unpacked = decompressor.decompress_to_buffer(frame, into);
            if unpacked.is_ok_and(|n| n == into.len()) {
                good.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, fewer share the work.
            drop(std::thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    good.into_inner() == frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length)
            .map(|i| u8::try_from(i / 7 % 251).unwrap_or(0))
            .collect()
    }

    #[test]
    fn every_length_comes_back() {
        for length in [SMALL + 1, FRAME - 1, FRAME, FRAME + 1, 5 * FRAME + 17] {
            let bytes = text(length);
            let packed = pack(&bytes).expect("packs");
            assert_eq!(unpack(&packed, length).as_deref(), Some(&bytes[..]));
            assert_eq!(unpack(&packed, length - 1), None);
            assert_eq!(unpack(&packed, length + 1), None);
            assert_eq!(unpack(&packed[..packed.len() - 1], length), None);
        }
        assert_eq!(pack(b""), None);
        assert_eq!(pack(&text(SMALL)), None);
    }

    #[test]
    fn one_frame_and_a_plain_decoder_agree_with_it() {
        let bytes = text(3 * FRAME);
        let single = zstd::bulk::compress(&bytes, LEVEL).expect("packs");
        assert_eq!(unpack(&single, bytes.len()).as_deref(), Some(&bytes[..]));
        let many = pack(&bytes).expect("packs");
        assert_eq!(zstd::stream::decode_all(&many[..]).expect("reads"), bytes);
    }

    #[test]
    fn incompressible_bytes_stay_plain() {
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..4000)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        assert_eq!(pack(&noise), None);
    }
}
