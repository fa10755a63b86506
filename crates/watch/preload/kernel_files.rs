//! Reads the kernel's own files, those of procfs and sysfs, when a program opens one: they have no time or size that tells
//! whether their text is still the same, so the text itself is logged.

use core::ffi::{CStr, c_int};

use crate::identity::Identity;
use crate::state::{self, LONGEST};
use crate::sys;

/// The longest text that is logged. It must fit into a record together with a path.
const LONGEST_TEXT: usize = 3000;

const PROCFS: i64 = 0x9fa0;
const SYSFS: i64 = 0x6265_6572;
/// What files of sysfs say of their size. Those of procfs say that they are empty.
const SAID_SIZES: [u64; 2] = [0, 4096];
const FOR_ALL_TO_READ: u32 = 0o444;

/// Logs the text of an open file of the kernel's at this moment, and says whether it did. It does not for any other file, nor
/// for a text that is too long or may be another one for another process: the file is below the folder of one.
pub(crate) fn log(file: c_int, identity: &Identity, name: &[u8]) -> bool {
    // These file systems are on no device, so most files need no system call. A file that not all may read may do something
    // when it is read.
    identity.is_file()
        && identity.device >> 8 & 0xfff == 0
        && SAID_SIZES.contains(&identity.size)
        && identity.mode & FOR_ALL_TO_READ == FOR_ALL_TO_READ
        && log_text(file, name)
}

/// The same for a file that may be one. The program may have a small stack, so only this function has the buffer on it.
#[inline(never)]
fn log_text(file: c_int, name: &[u8]) -> bool {
    let may_be = match sys::file_system(file) {
        SYSFS => true,
        PROCFS => !is_of_process(file),
        _ => false,
    };
    let mut link = [0_u8; 32];
    let Ok(link) = CStr::from_bytes_until_nul(sys::link_of_open(file, &mut link)) else {
        return false;
    };
    // A second open file, because the program's own has a position.
    let Some(again) = may_be.then(|| sys::open_to_read(link)).flatten() else {
        return false;
    };
    let mut text = [0_u8; LONGEST_TEXT];
    let length = sys::read_whole(again, &mut text);
    sys::close(again);
    let text = length.map(|length| &text[..length]);
    let text = text.filter(|text| !text.contains(&0) && name.len() + text.len() + 2 <= LONGEST);
    if let Some(text) = text {
        state::leads(b'k', name, text);
    }
    text.is_some()
}

/// Whether the real name has a number for a folder or a file, as those of processes are.
#[inline(never)]
fn is_of_process(file: c_int) -> bool {
    let mut name = [0_u8; LONGEST];
    let name = sys::name_of_open(file, &mut name);
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    name.is_empty() || name.split(|byte| *byte == b'/').any(is_number)
}
