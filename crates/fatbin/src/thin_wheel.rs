//! Rewriting a wheel: the files in it that have fat binaries, and the hashes of these in its record.
//!
//! Every other member is copied as it is compressed, with its date and permissions, and the order stays. What is
//! written depends on nothing but the wheel and the request. One member at a time is in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use zip::ZipWriter;
use zip::result::ZipError;

use crate::compress::CompressMode;
use crate::error::ReadLimits;
use crate::host::Format;
use crate::record::{RecordLine, disagrees, rewrite};
use crate::selection::Keep;
use crate::source::{OpenFailure, Wheel, head, map, unpack_member, wheel as open_wheel};
use crate::thin::{Refusal, Thinned, thin_bytes};

/// Files with signatures over the record, which would be wrong afterwards.
const SIGNATURES: [&str; 2] = ["RECORD.jws", "RECORD.p7s"];
/// Above this a member's header has sizes of eight bytes.
const LARGE: u64 = u32::MAX as u64;

/// Why a wheel is not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum NotThinned {
    /// It cannot be read, or the new one not be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The zip file is damaged.
    #[error("corrupt wheel: {0}")]
    Zip(#[from] ZipError),
    /// A member is above the limit.
    #[error("refused: member {name} of more than {limit} bytes")]
    TooLarge {
        /// The member.
        name: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// It is damaged.
    #[error(transparent)]
    Open(#[from] OpenFailure),
    /// There is no record to correct.
    #[error("not a wheel: it has no NAME.dist-info/RECORD")]
    NoRecord,
    /// The record is signed.
    #[error(
        "the wheel is signed ({0}), and the signature would be wrong; remove it, or thin before signing"
    )]
    Signed(String),
    /// A rewritten member that is not in the record.
    #[error("its RECORD has no line for {0}")]
    NotRecorded(String),
    /// A member that is not what the record says. With a new line it would look as if it were.
    #[error("{0} is not what its RECORD says: the wheel is damaged, and an installer refuses it")]
    NotAsRecorded(String),
    /// Nothing was rewritten.
    #[error("{0}")]
    Nothing(String),
}

/// A file in a wheel that was rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinnedMember {
    /// Its name.
    pub name: String,
    /// Its size before and after, in bytes, as it is installed.
    pub bytes: (u64, u64),
}

/// The result of thinning a wheel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThinnedWheel {
    /// The sums over its files; no bytes.
    pub sums: Thinned,
    /// The files that were rewritten.
    pub members: Vec<ThinnedMember>,
}

/// Writes the wheel at `path` without the images that `keep` does not want.
///
/// A member that cannot be rewritten stays as it is, with a note.
///
/// # Errors
/// No member can be rewritten, or the wheel is damaged or signed.
pub fn thin_wheel<W: Write + Seek>(
    path: &Path,
    out: W,
    keep: &Keep,
    compress: Option<CompressMode>,
    limits: &ReadLimits,
) -> Result<ThinnedWheel, NotThinned> {
    let mut wheel = open_wheel(&File::open(path)?)?;
    let record = record_of(&wheel)?;
    let text = read_whole(&mut wheel, record, limits)?;
    let mut done = ThinnedWheel::default();
    let mut changed: HashMap<usize, File> = HashMap::new();
    let mut entries: HashMap<String, RecordLine> = HashMap::new();
    let mut first_refusal = None;
    for index in 0..wheel.len() {
        let thinned = match member(&mut wheel, (index, &text), keep, compress, limits)? {
            MemberOutcome::Nothing => continue,
            MemberOutcome::Thinned(name, before, thinned) => (name, before, thinned),
            MemberOutcome::Refused(name, refusal) => {
                done.sums
                    .notes
                    .push(format!("{name} stays as it is: {refusal}"));
                first_refusal.get_or_insert((name, refusal));
                continue;
            }
        };
        let (name, before, thinned) = thinned;
        entries.insert(name.clone(), RecordLine::from_content(&thinned.bytes));
        let mut file = tempfile::tempfile()?;
        file.write_all(&thinned.bytes)?;
        file.rewind()?;
        changed.insert(index, file);
        add(&mut done, name, before, thinned);
    }
    if changed.is_empty() {
        return Err(NotThinned::Nothing(match first_refusal {
            Some((name, refusal)) => format!("{name}: {refusal}"),
            None => "there is nothing to rewrite in it".to_owned(),
        }));
    }
    let text = rewrite(&text, &entries).map_err(NotThinned::NotRecorded)?;
    write(&mut wheel, out, &mut changed, (record, &text))?;
    Ok(done)
}

enum MemberOutcome {
    /// It has no fat binaries, or loses nothing.
    Nothing,
    Thinned(String, u64, Thinned),
    Refused(String, Refusal),
}

fn member(
    wheel: &mut Wheel,
    (index, record): (usize, &[u8]),
    keep: &Keep,
    compress: Option<CompressMode>,
    limits: &ReadLimits,
) -> Result<MemberOutcome, NotThinned> {
    let mut packed = wheel.by_index(index)?;
    if !packed.is_file() {
        return Ok(MemberOutcome::Nothing);
    }
    let format = Format::detect(&head(&mut packed)?);
    let wanted = [Format::Elf, Format::Archive, Format::Fatbin, Format::Pe];
    let Some(format) = format.filter(|format| wanted.contains(format)) else {
        return Ok(MemberOutcome::Nothing);
    };
    drop(packed);
    let mut packed = wheel.by_index(index)?;
    let name = packed.name()?.into_owned();
    let Some(file) = unpack_member(&mut packed, limits.member)? else {
        let limit = limits.member;
        return Err(NotThinned::TooLarge { name, limit });
    };
    let bytes = map(&file)?;
    Ok(match thin_bytes(&bytes, format, keep, compress, limits) {
        Ok(thinned) if thinned.bytes[..] == bytes[..] => MemberOutcome::Nothing,
        Ok(_) if disagrees(record, &name, &bytes) => return Err(NotThinned::NotAsRecorded(name)),
        Ok(thinned) => MemberOutcome::Thinned(name, bytes.len() as u64, thinned),
        Err(Refusal::NoContainers) => MemberOutcome::Nothing,
        Err(refusal) => MemberOutcome::Refused(name, refusal),
    })
}

fn add(done: &mut ThinnedWheel, name: String, before: u64, thinned: Thinned) {
    let sums = &mut done.sums;
    sums.images.0 += thinned.images.0;
    sums.images.1 += thinned.images.1;
    sums.recompressed += thinned.recompressed;
    sums.image_bytes.0 += thinned.image_bytes.0;
    sums.image_bytes.1 += thinned.image_bytes.1;
    sums.zeroed += thinned.zeroed;
    sums.left_whole += thinned.left_whole;
    let notes = thinned.notes.iter().map(|note| format!("{name}: {note}"));
    sums.notes.extend(notes);
    done.members.push(ThinnedMember {
        name,
        bytes: (before, thinned.bytes.len() as u64),
    });
}

/// The member with the hashes of all others.
fn record_of(wheel: &Wheel) -> Result<usize, NotThinned> {
    let mut found = None;
    for index in 0..wheel.len() {
        let Some(name) = wheel.name_for_index(index) else {
            continue;
        };
        let name = name?;
        let Some((folder, file)) = name.split_once('/') else {
            continue;
        };
        if !folder.ends_with(".dist-info") {
            continue;
        }
        if SIGNATURES.contains(&file) {
            return Err(NotThinned::Signed(name.into_owned()));
        }
        if file == "RECORD" {
            found = Some(index);
        }
    }
    found.ok_or(NotThinned::NoRecord)
}

fn read_whole(wheel: &mut Wheel, index: usize, limits: &ReadLimits) -> Result<Vec<u8>, NotThinned> {
    let packed = wheel.by_index(index)?;
    let mut text = Vec::new();
    packed.take(limits.image + 1).read_to_end(&mut text)?;
    if text.len() as u64 > limits.image {
        let limit = limits.image;
        return Err(NotThinned::TooLarge {
            name: "RECORD".to_owned(),
            limit,
        });
    }
    Ok(text)
}

/// Writes all members in their order.
fn write<W: Write + Seek>(
    wheel: &mut Wheel,
    out: W,
    changed: &mut HashMap<usize, File>,
    (record, text): (usize, &[u8]),
) -> Result<(), NotThinned> {
    let mut new = ZipWriter::new(out);
    new.set_raw_comment(wheel.comment().into())?;
    for index in 0..wheel.len() {
        if index != record && !changed.contains_key(&index) {
            new.raw_copy_file(wheel.by_index_raw(index)?)?;
            continue;
        }
        let old = wheel.by_index_raw(index)?;
        let (name, options) = (old.name()?.into_owned(), old.options());
        drop(old);
        match changed.get_mut(&index) {
            Some(file) => {
                let large = file.metadata()?.len() >= LARGE;
                new.start_file(name, options.large_file(large))?;
                io::copy(file, &mut new)?;
            }
            None => {
                new.start_file(name, options.large_file(false))?;
                new.write_all(text)?;
            }
        }
    }
    new.finish()?.flush()?;
    Ok(())
}
