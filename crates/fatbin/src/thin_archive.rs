//! Puts smaller containers back into a static library, and corrects its members and the places in its table of symbols.
//!
//! The table of symbols itself stays as it is: no symbol of a member goes away. Headers keep their dates, owners and
//! modes, so that the same library gives the same bytes.

use std::collections::HashMap;

use crate::ar::{self, Member, Use};
use crate::bytes::u32_at;
use crate::container::Section;
use crate::rewritten::Rewritten;
use crate::thin_elf::{self, Placed};

/// The bytes before the first member.
const MAGIC: usize = 8;

/// Puts the containers into `file`. They are in the order of the file.
pub(crate) fn place(file: &[u8], containers: Vec<Rewritten>) -> Result<Placed, String> {
    let members: Vec<Member<'_>> = ar::members(file)?.collect::<Result<_, _>>()?;
    let mut containers = containers.into_iter().peekable();
    let mut placed = Placed {
        bytes: file[..MAGIC].to_vec(),
        zeroed: 0,
        notes: Vec::new(),
    };
    let mut moved: HashMap<usize, usize> = HashMap::new();
    let mut tables: Vec<(Use, usize, usize)> = Vec::new();
    for member in &members {
        moved.insert(member.header, placed.bytes.len());
        let end = (member.data_at + member.data.len()) as u64;
        let mut mine = Vec::new();
        while let Some(mut container) = containers.next_if(|c| c.offset < end) {
            // The bytes before the member were copied already.
            container.offset -= member.data_at as u64;
            mine.push(container);
        }
        let content = match mine.is_empty() {
            true => member.data.to_vec(),
            false => content(member, mine, &mut placed)?,
        };
        match member.used {
            Use::BsdSymbols => {
                return Err(
                    "its table of symbols is in the form of BSD; run ranlib of GNU".to_owned(),
                );
            }
            Use::Symbols | Use::WideSymbols => {
                let at = placed.bytes.len() + (member.data_at - member.header);
                tables.push((member.used, at, content.len()));
            }
            Use::File | Use::Names => {}
        }
        write(file, member, &content, &mut placed.bytes)?;
    }
    for (used, at, length) in tables {
        let table = placed.bytes.get_mut(at..at + length);
        let table = table.ok_or("its table of symbols is cut off")?;
        match used {
            Use::WideSymbols => correct::<8>(table, &moved)?,
            _ => correct::<4>(table, &moved)?,
        }
    }
    Ok(placed)
}

fn content(
    member: &Member<'_>,
    containers: Vec<Rewritten>,
    placed: &mut Placed,
) -> Result<Vec<u8>, String> {
    if containers.iter().all(|c| c.section == Section::WholeFile) {
        return Ok(containers.into_iter().flat_map(|c| c.bytes).collect());
    }
    let new = thin_elf::place(member.data, &containers)
        .map_err(|why| format!("member {}: {why}", member.name))?;
    placed.zeroed += new.zeroed;
    let notes = new.notes.into_iter();
    placed
        .notes
        .extend(notes.map(|note| format!("{}: {note}", member.name)));
    Ok(new.bytes)
}

/// Header, name behind it, content, and the byte that keeps the next header at an even place.
fn write(
    file: &[u8],
    member: &Member<'_>,
    content: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let from = out.len();
    let before = file.get(member.header..member.data_at);
    out.extend_from_slice(before.ok_or("a member's header is cut off")?);
    let name = member.stated - member.data.len();
    let size = format!("{:<10}", content.len() + name);
    let place = out.get_mut(from + ar::SIZE.start..from + ar::SIZE.end);
    let place = place.ok_or("a member's header is cut off")?;
    if size.len() != place.len() {
        return Err(format!("member {} is too large for a header", member.name));
    }
    place.copy_from_slice(size.as_bytes());
    out.extend_from_slice(content);
    if !out.len().is_multiple_of(2) {
        out.push(b'\n');
    }
    Ok(())
}

/// Corrects a table: a number of places, and the places of headers, big-endian in words of `N` bytes. Names follow.
fn correct<const N: usize>(table: &mut [u8], moved: &HashMap<usize, usize>) -> Result<(), String> {
    let damaged = || "its table of symbols is damaged; run ranlib on the library".to_owned();
    let count = word::<N>(table, 0).ok_or_else(damaged)?;
    // If the count is too large for the table, the loop ends at the table's end.
    for index in 1..=count {
        let at = index.checked_mul(N).ok_or_else(damaged)?;
        let old = word::<N>(table, at).ok_or_else(damaged)?;
        let new = *moved.get(&old).ok_or_else(damaged)?;
        let bytes = (new as u64).to_be_bytes();
        let place = table.get_mut(at..at + N).ok_or_else(damaged)?;
        if bytes[..8 - N].iter().any(|byte| *byte != 0) {
            return Err(damaged());
        }
        place.copy_from_slice(&bytes[8 - N..]);
    }
    Ok(())
}

fn word<const N: usize>(table: &[u8], at: usize) -> Option<usize> {
    match N {
        4 => usize::try_from(u32_at(table, at)?.swap_bytes()).ok(),
        _ => usize::try_from(crate::bytes::u64_at(table, at)?.swap_bytes()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::correct;

    #[test]
    fn places_follow_their_members() {
        let moved = [(100, 80), (300, 200)].into();
        let mut table = [0, 0, 0, 2, 0, 0, 0, 100, 0, 0, 1, 44, b'f', 0].to_vec();
        correct::<4>(&mut table, &moved).expect("a table");
        assert_eq!(table, [0, 0, 0, 2, 0, 0, 0, 80, 0, 0, 0, 200, b'f', 0]);
        let mut wide = [2_u64, 100, 300].map(u64::to_be_bytes).concat();
        correct::<8>(&mut wide, &moved).expect("a table");
        assert_eq!(wide, [2_u64, 80, 200].map(u64::to_be_bytes).concat());
        // A place where no member begins, and one that is not there.
        for mut wrong in [
            vec![0, 0, 0, 1, 0, 0, 0, 9],
            vec![0, 0, 0, 1],
            vec![0xff; 4],
        ] {
            assert!(correct::<4>(&mut wrong, &moved).is_err());
        }
    }
}
