//! Containers and images written byte by byte, as a compiler would never write them.

/// An image with an uncompressed payload.
pub fn image(kind: u16, arch: u32, payload: &[u8]) -> Vec<u8> {
    packed(kind, arch, 0x11, 0, 0, payload)
}

/// An image: header of 64 bytes and payload.
pub fn packed(
    kind: u16,
    arch: u32,
    flags: u64,
    compressed: u32,
    uncompressed: u64,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let padded = payload.len().next_multiple_of(8);
    bytes[0..2].copy_from_slice(&kind.to_le_bytes());
    bytes[2..4].copy_from_slice(&0x101_u16.to_le_bytes());
    bytes[4..8].copy_from_slice(&64_u32.to_le_bytes());
    bytes[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    bytes[16..20].copy_from_slice(&compressed.to_le_bytes());
    bytes[0x1a..0x1c].copy_from_slice(&9_u16.to_le_bytes());
    bytes[0x1c..0x20].copy_from_slice(&arch.to_le_bytes());
    bytes[0x28..0x30].copy_from_slice(&flags.to_le_bytes());
    bytes[0x38..0x40].copy_from_slice(&uncompressed.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(64 + padded, 0);
    bytes
}

/// A container of these images.
pub fn container(images: &[Vec<u8>]) -> Vec<u8> {
    let size: usize = images.iter().map(Vec::len).sum();
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend(1_u16.to_le_bytes());
    bytes.extend(16_u16.to_le_bytes());
    bytes.extend((size as u64).to_le_bytes());
    bytes.extend(images.concat());
    bytes
}
