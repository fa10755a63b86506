//! Gives tools a terminal like the user's. gcc and NVIDIA's front ends colour their messages, add links and fit source lines
//! to the width if standard error is a terminal. warpcc reads the messages itself, so it gives each tool a terminal of its
//! own.
//!
//! A result without messages is the same for a terminal and for a pipe. A result with messages counts only for a terminal
//! that looks the same: see [`Terminal::key`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr,
    tcsetwinsize,
};
use warpcc_cache::{Hashing, Key, KeySink};

use crate::file_input::open_marked;

/// The variables that decide, besides the width, how gcc (`gcc/diagnostic-color.cc`) and EDG's front end write to a
/// terminal.
const VARIABLES: &[&str] = &[
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "GCC_COLORS",
    "GCC_URLS",
    "TERM_URLS",
    "EDG_COLORS",
    "DEFAULT_EDG_COLORS",
    "NO_COLOR",
];

/// A terminal that a person reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    size: Winsize,
    /// Whether standard input is a terminal too: gcc asks standard input for its width (`get_terminal_width` in
    /// `gcc/diagnostic.cc`).
    input: bool,
    /// Whether standard output is a terminal too: clang 22 asks it for the width (`TIOCGWINSZ` on descriptor 1).
    output: bool,
    variables: Vec<(&'static str, OsString)>,
}

impl Terminal {
    /// The terminal behind `errors`, if there is one; `variable` reads the environment.
    pub fn behind<'a>(
        errors: impl AsFd,
        input: impl AsFd,
        output: impl AsFd,
        variable: impl Fn(&str) -> Option<&'a OsStr>,
    ) -> Option<Self> {
        let (errors, input) = (errors.as_fd(), input.as_fd());
        if !isatty(errors) {
            return None;
        }
        Some(Self {
            size: tcgetwinsize(if isatty(input) { input } else { errors }).ok()?,
            input: isatty(input),
            output: isatty(output),
            variables: VARIABLES
                .iter()
                .filter_map(|name| Some((*name, variable(name)?.to_owned())))
                .collect(),
        })
    }

    /// Whether standard output is a terminal too.
    pub fn is_for_output(&self) -> bool {
        self.output
    }

    /// The key of a result whose messages are formatted for this terminal, from its key for a pipe.
    pub fn key(&self, key: &Key) -> Key {
        let mut sink = Hashing::new("warpcc terminal 1");
        sink.part("key", &key.0);
        sink.part("columns", &self.size.ws_col.to_le_bytes());
        sink.part("input", &[u8::from(self.input)]);
        for (name, value) in &self.variables {
            sink.part(name, value.as_encoded_bytes());
        }
        sink.finish()
    }

    /// A new terminal of the same size.
    ///
    /// # Errors
    /// The system has no more terminals; the caller uses a pipe instead.
    pub fn open(&self) -> io::Result<Screen> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(&name, flags, Mode::empty())?;
        // The user's own terminal adds carriage returns to line feeds. This one must not add them too.
        let mut attributes = tcgetattr(&theirs)?;
        attributes.output_modes.remove(OutputModes::OPOST);
        attributes
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(&theirs, OptionalActions::Now, &attributes)?;
        tcsetwinsize(&theirs, self.size)?;
        let mut ours = File::from(ours);
        let input = if self.input {
            // A program that reads from this terminal finds the end of the input.
            ours.write_all(&[END_OF_FILE])?;
            let name = Path::new(OsStr::from_bytes(name.to_bytes()));
            Some(open_marked(name)?.into())
        } else {
            None
        };
        Ok(Screen {
            ours,
            errors: theirs,
            input,
        })
    }
}

/// Ctrl-D, which ends a terminal's input.
const END_OF_FILE: u8 = 4;

/// A terminal for one tool.
#[derive(Debug)]
pub struct Screen {
    /// Our end, from which the tool's output is read.
    pub ours: File,
    /// The standard error of the tool.
    pub errors: OwnedFd,
    /// The standard input of the tool, if the user's is a terminal.
    pub input: Option<OwnedFd>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Command;

    fn of_width(columns: u16) -> Terminal {
        Terminal {
            size: Winsize {
                ws_row: 24,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
            input: true,
            output: false,
            variables: Vec::new(),
        }
    }

    #[test]
    fn a_tool_sees_a_terminal_of_that_size_and_its_bytes_stay_as_they_are() -> io::Result<()> {
        let mut screen = of_width(71).open()?;
        let mut child = Command::new("sh")
            .args(["-c", "test -t 2 && stty size >&2 && cat >&2"])
            .stdin(screen.input.ok_or(io::ErrorKind::NotFound)?)
            .stderr(screen.errors)
            .spawn()?;
        let mut text = Vec::new();
        // A terminal ends with an error, not with an empty read.
        drop(screen.ours.read_to_end(&mut text));
        assert!(child.wait()?.success());
        assert_eq!(text, b"24 71\n");
        let screen = of_width(71).open()?;
        let (theirs, nothing) = (screen.errors, File::open("/dev/null")?);
        let variable = |name: &str| (name == "TERM").then_some(OsStr::new("vt100"));
        let found = Terminal::behind(&theirs, &nothing, &nothing, variable);
        assert_eq!(
            found.map(|t| (t.size.ws_col, t.variables.len())),
            Some((71, 1))
        );
        assert_eq!(Terminal::behind(&nothing, &theirs, &theirs, variable), None);
        Ok(())
    }

    #[test]
    fn another_width_is_another_key() {
        let key = Hashing::new("test").finish();
        assert_eq!(of_width(80).key(&key), of_width(80).key(&key));
        assert_ne!(of_width(80).key(&key), of_width(81).key(&key));
        assert_ne!(of_width(80).key(&key), key);
    }
}
