//! An HTTP cache written to fail: keeps uploads in memory, and answers according to its mode.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The size that [`Mode::Stall`] claims, in bytes: more than a call of the attacks may allocate. A result of more than half of
/// the free disk is refused without a request, so it is not larger than it must be.
pub const STALLED_SIZE: u64 = 1700 << 20;

/// The way in which the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Correct answers.
    Good,
    /// Takes the request and does not answer.
    BlackHole,
    /// One byte of the answer a second.
    Trickle,
    /// Every request with this status.
    Status(&'static str),
    /// This status for `PUT`, and correct answers otherwise.
    Full(&'static str),
    /// Blobs with their last byte changed.
    WrongBytes,
    /// Blobs that end early, with the right length in the header.
    CutShort,
    /// The blob of another digest.
    Exchanged,
    /// Bytes that are no result.
    Garbage,
    /// The request's result, for another key.
    WrongKey,
    /// Blobs of 3 GiB by their headers, of which no byte comes.
    Stall,
    /// Results that do not end.
    Endless,
    /// Results of 1 TiB by their headers.
    Huge,
    /// Closes the connection at the second request and every one after it.
    Dies,
}

struct State {
    mode: Mutex<Mode>,
    objects: Mutex<HashMap<String, Vec<u8>>>,
    /// A header line that every request must have, in lower case.
    header: Mutex<Option<&'static str>>,
    requests: AtomicUsize,
    over: AtomicBool,
}

/// The server.
pub struct Faulty {
    state: Arc<State>,
    /// The port on which it listens, on 127.0.0.1.
    pub port: u16,
}

impl Faulty {
    /// Starts a server that answers correctly.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(State {
            mode: Mutex::new(Mode::Good),
            objects: Mutex::default(),
            header: Mutex::new(None),
            requests: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if shared.over.load(Ordering::Relaxed) {
                    break;
                }
                let state = Arc::clone(&shared);
                thread::spawn(move || drop(serve(connection, &state)));
            }
        });
        Self { state, port }
    }

    /// Sets the mode, and resets the count of requests.
    pub fn set(&self, mode: Mode) {
        *self
            .state
            .mode
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = mode;
        self.state.requests.store(0, Ordering::Relaxed);
    }

    /// From now on, requests without this header are not authorized.
    pub fn demand_header(&self, header: &'static str) {
        *self
            .state
            .header
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(header);
    }

    /// The number of requests since the mode was set.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// Stores bytes at a path.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let objects = self.state.objects.lock();
        let mut objects = objects.unwrap_or_else(PoisonError::into_inner);
        objects.insert(path.to_owned(), bytes);
    }

    /// The number of objects.
    pub fn count(&self) -> usize {
        let objects = self.state.objects.lock();
        objects.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Removes the objects whose path begins with `prefix`.
    pub fn forget(&self, prefix: &str) {
        let mut objects = self
            .state
            .objects
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        objects.retain(|path, _| !path.starts_with(prefix));
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn serve(connection: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut out = connection;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        let wanted = *state.header.lock().unwrap_or_else(PoisonError::into_inner);
        let mut authorized = wanted.is_none();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            authorized |= wanted == Some(line.as_str());
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut words = first.split_whitespace();
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let number = state.requests.fetch_add(1, Ordering::Relaxed);
        let mut mode = *state.mode.lock().unwrap_or_else(PoisonError::into_inner);
        if !authorized {
            mode = Mode::Status("401 Unauthorized");
        }
        match mode {
            Mode::BlackHole => {
                while !state.over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(100));
                }
                return Ok(());
            }
            Mode::Dies if number >= 1 => return Ok(()),
            Mode::Stall if path.starts_with("/cas/") => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {STALLED_SIZE}\r\n\r\n");
                out.write_all(head.as_bytes())?;
                while !state.over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(100));
                }
                return Ok(());
            }
            Mode::Endless if path.starts_with("/ac/") => {
                out.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let piece = [&b"10000\r\n"[..], &[0x12, 0].repeat(1 << 15), b"\r\n"].concat();
                // Until the client has enough.
                loop {
                    out.write_all(&piece)?;
                }
            }
            Mode::Huge if path.starts_with("/ac/") => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n")?;
                while !state.over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(100));
                }
                return Ok(());
            }
            _ => {}
        }
        let answer = answer(mode, method, path, body, state);
        if mode == Mode::Trickle {
            for byte in answer {
                if state.over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                out.write_all(&[byte])?;
                thread::sleep(Duration::from_secs(1));
            }
        } else {
            out.write_all(&answer)?;
            if mode == Mode::CutShort {
                return Ok(());
            }
        }
    }
}

fn answer(mode: Mode, method: &str, path: &str, body: Vec<u8>, state: &State) -> Vec<u8> {
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n").into_bytes()
    };
    let mut objects = state.objects.lock().unwrap_or_else(PoisonError::into_inner);
    match (mode, method) {
        (Mode::Status(status), _) | (Mode::Full(status), "PUT") => head(status, 0),
        (_, "PUT") => {
            objects.insert(path.to_owned(), body);
            head("201 Created", 0)
        }
        (_, "DELETE") => {
            objects.remove(path);
            head("204 No Content", 0)
        }
        _ => {
            let is_blob = path.starts_with("/cas/");
            let Some(object) = objects.get(path) else {
                return head("404 Not Found", 0);
            };
            let length = object.len();
            let mut content = object.clone();
            match mode {
                Mode::WrongBytes if is_blob => {
                    if let Some(last) = content.last_mut() {
                        *last ^= 1;
                    }
                }
                Mode::CutShort if is_blob => content.truncate(length / 2),
                Mode::Exchanged if is_blob => {
                    let mut others = objects.iter().filter(|(at, _)| at.starts_with("/cas/"));
                    let other = others.find(|(at, _)| *at != path);
                    content = other.map(|(_, other)| other.clone()).unwrap_or_default();
                }
                Mode::Garbage if !is_blob => content = b"<html>please log in</html>".to_vec(),
                Mode::WrongKey if !is_blob => {
                    let mut others = objects.iter().filter(|(at, _)| at.starts_with("/ac/"));
                    let other = others.find(|(at, _)| *at != path);
                    content = other.map(|(_, other)| other.clone()).unwrap_or_default();
                }
                _ => {}
            }
            let told = if mode == Mode::CutShort {
                length
            } else {
                content.len()
            };
            let mut all = head("200 OK", told);
            if method == "GET" {
                all.extend(content);
            }
            all
        }
    }
}
