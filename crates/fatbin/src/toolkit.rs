//! Which toolkit made an image, from as few of its bytes as will do: a list of a library of
//! gigabytes must not decompress all of it.

use std::io::Read;

use crate::bytes::{slice, u32_at};
use crate::cubin::{self, Cubin};
use crate::error::ReadLimits;
use crate::image::{Image, ImageKind, Method};
use crate::ptx;

/// How many bytes are decompressed before they are searched.
const STEP: usize = 64 << 10;
/// The note is behind the symbols; in NCCL's largest image that is within this.
const FAR_ENOUGH: usize = 4 << 20;
/// `e_ident`'s ABI version and `e_version`.
const ABI_VERSION_AT: usize = 8;
const VERSION_AT: usize = 20;

impl Image<'_> {
    /// The toolkit that made the image, as far as the image says: `13.5.37`, `12.4`.
    pub fn toolkit(&self, limits: &ReadLimits) -> Option<String> {
        if !matches!(self.kind, ImageKind::Ptx | ImageKind::Cubin) {
            return None;
        }
        let stored = self.stored.get();
        match self.method() {
            Method::Zstd if self.place.part.is_none() => {
                let compressed = slice(stored, 0, self.compressed_size.into())?;
                let stream = zstd::stream::read::Decoder::with_buffer(compressed).ok()?;
                self.toolkit_in_stream(stream)
            }
            Method::Lz4 if self.place.part.is_none() => {
                let compressed = slice(stored, 0, self.compressed_size.into())?;
                let mut start = [0; 2048];
                // Fails when the whole is longer than this, and has written the start by then.
                _ = lz4_flex::block::decompress_into(compressed, &mut start);
                self.toolkit_at_start(&start)
                    .or_else(|| self.toolkit_in_whole(limits))
            }
            _ => self.toolkit_in_whole(limits),
        }
    }

    fn toolkit_in_whole(&self, limits: &ReadLimits) -> Option<String> {
        let payload = self.payload(limits).ok()?;
        match self.kind {
            ImageKind::Ptx => ptx::toolkit(&payload),
            _ => Cubin::parse(&payload).ok()?.toolkit(),
        }
    }

    fn toolkit_in_stream(&self, mut stream: impl Read) -> Option<String> {
        let mut seen = Vec::new();
        while seen.len() < FAR_ENOUGH {
            let before = seen.len();
            stream
                .by_ref()
                .take(STEP as u64)
                .read_to_end(&mut seen)
                .ok()?;
            if before == 0
                && let Some(toolkit) = self.toolkit_at_start(&seen)
            {
                return Some(toolkit);
            }
            // The text may lie across two steps.
            if let Some(release) = cubin::release(&seen[before.saturating_sub(100)..]) {
                return Some(release);
            }
            if seen.len() == before || self.kind == ImageKind::Ptx {
                return None;
            }
        }
        None
    }

    /// PTX has it in a comment at the top, older cubins in the ELF header.
    fn toolkit_at_start(&self, start: &[u8]) -> Option<String> {
        if self.kind == ImageKind::Ptx {
            return ptx::toolkit(start);
        }
        let older = *start.get(ABI_VERSION_AT)? < cubin::NEWER;
        let tens = u32_at(start, VERSION_AT).filter(|tens| older && *tens > 1)?;
        Some(format!("{}.{}", tens / 10, tens % 10))
    }
}
