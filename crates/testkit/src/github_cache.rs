//! Starts and stops a stand-in for GitHub's cache service, which enforces the limits of the real one: `github_cache.py`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::casd::free_port;

/// A server that ends with this value.
pub struct GithubCache {
    server: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl GithubCache {
    /// With nothing in it.
    ///
    /// # Panics
    /// There is no Python.
    pub fn start() -> Self {
        let port = free_port();
        let folder = tempfile::tempdir().expect("a folder");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/github_cache.py");
        let server = Command::new("python3")
            .arg(program)
            .arg(port.to_string())
            .arg(folder.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("python3");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        Self {
            server,
            port,
            folder,
        }
    }

    /// The variables that a runner gives to its actions.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [
            (
                "ACTIONS_RESULTS_URL",
                format!("http://127.0.0.1:{}/", self.port),
            ),
            ("ACTIONS_RUNTIME_TOKEN", "a-token".to_owned()),
        ]
    }

    /// Changes limits and faults: JSON of what the stand-in calls its state.
    ///
    /// # Panics
    /// It does not answer.
    pub fn set(&self, state: &serde_json::Value) {
        self.request("POST", &state.to_string());
    }

    /// Adds a finished entry to the main branch, as anybody can who may write there.
    ///
    /// # Panics
    /// It does not answer.
    pub fn plant(&self, name: &str, version: &str, bytes: &[u8]) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.set(&serde_json::json!({ "plant": name, "version": version, "hex": hex }));
    }

    /// Requests so far, by kind: `find`, `create`, `finalize`, `put`, `get`, and `limited` for those refused with 429.
    ///
    /// # Panics
    /// It does not answer.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let answer = self.request("GET", "");
        let (_, json) = answer.split_once("\r\n\r\n").expect("an answer");
        serde_json::from_str(json).expect("JSON")
    }

    /// The blobs, oldest first.
    pub fn blobs(&self) -> Vec<PathBuf> {
        let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let listing = std::fs::read_dir(self.folder.path()).into_iter().flatten();
        let mut blobs: Vec<PathBuf> = listing.flatten().map(|file| file.path()).collect();
        blobs.sort_by_key(number);
        blobs
    }

    fn request(&self, method: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the stand-in");
        let length = body.len();
        write!(
            stream,
            "{method} /control HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }
}

impl Drop for GithubCache {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}
