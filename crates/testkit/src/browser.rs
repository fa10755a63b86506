//! A headless chromium, driven over a pipe by its DevTools protocol: JSON, each message ended by
//! a zero byte. Real key presses and mouse moves, and no library for it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A slow machine that does other things takes this long to start a browser.
const PATIENCE: Duration = Duration::from_secs(90);

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// Errors that the page reported so far.
    pub complaints: Vec<String>,
    folder: TempDir,
}

impl Browser {
    /// Starts one, `width` by `height`.
    pub fn start(width: u32, height: u32) -> Self {
        let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
        let chromium = chromium.into_iter().find(|path| Path::new(path).exists());
        let chromium = chromium.expect(
            "the browser tests need chromium: `cargo xtask test` installs it, or as root: \
             apt-get install chromium",
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [to, from] = ["to", "from"].map(|name| folder.path().join(name));
        for path in [&to, &from] {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        }
        // The browser talks on descriptors 3 and 4; a shell can open them, and Rust only unsafely.
        let child = Command::new("sh")
            .args(["-c", r#"exec 3<"$1" 4>"$2"; shift 2; exec "$@""#, "sh"])
            .args([&to, &from])
            .arg(chromium)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let to = OpenOptions::new()
            .write(true)
            .open(&to)
            .expect("pipe to chromium");
        let from = BufReader::new(File::open(&from).expect("pipe from chromium"));
        let (send, receive) = channel();
        std::thread::spawn(move || {
            for message in from.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON from chromium");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from: receive,
            session: None,
            last: 0,
            complaints: Vec::new(),
            folder,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in [
            "Page.enable",
            "Runtime.enable",
            "Log.enable",
            "Network.enable",
        ] {
            browser.call(domain, json!({}));
        }
        browser.resize(width, height);
        browser
    }

    /// Does one thing of the protocol, and answers with its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("chromium listens");
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = self.from.recv_timeout(left);
            let mut answer = answer.unwrap_or_else(|_| panic!("chromium does not answer {method}"));
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.note(&answer);
        }
    }

    /// Keeps what went wrong in the page, and what it tried to load.
    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.complaints.push(params.to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] != "log" => {
                self.complaints.push(params.to_string());
            }
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with("file://") {
                    self.complaints.push(format!("the page loads {url}"));
                }
            }
            _ => {}
        }
    }

    /// Shows a page, and waits until it has drawn itself.
    pub fn open(&mut self, html: &[u8]) {
        self.last += 1;
        let name = format!("page-{}.html", self.last);
        let path = self.folder.path().join(&name);
        std::fs::write(&path, html).expect("page is written");
        let url = format!("file://{}", path.display());
        self.call("Page.navigate", json!({ "url": url }));
        self.until(&format!(
            "location.href.endsWith({name:?}) && (document.documentElement.dataset.ready === 'true' \
             || !document.getElementById('trouble').hidden)"
        ));
        self.frames(3);
    }

    /// The value of an expression in the page; promises are waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut result = self.call("Runtime.evaluate", params);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].take()
    }

    /// The text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.evaluate(&format!(
            "document.querySelector({selector:?})?.innerText ?? ''"
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let start = Instant::now();
        // A page that is not there yet has nothing to ask.
        let asked = format!(
            "(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"
        );
        while self.evaluate(&asked) != true {
            assert!(start.elapsed() < PATIENCE, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this many frames were drawn.
    pub fn frames(&mut self, count: u32) {
        for _ in 0..count {
            self.evaluate("new Promise(done => requestAnimationFrame(() => done(1)))");
        }
    }

    /// Moves the mouse, or presses its button.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let pressed = u8::from(kind != "mouseMoved");
        let button = if pressed == 1 { "left" } else { "none" };
        self.call(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": pressed }),
        );
    }

    /// Presses a key that writes something.
    pub fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key.chars().count() == 1 && kind == "keyDown" {
                key
            } else {
                ""
            };
            let params = json!({ "type": kind, "key": key, "text": text });
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Shows the page in another size.
    pub fn resize(&mut self, width: u32, height: u32) {
        let params = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// Sets the preferred colour scheme, `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        );
        self.frames(2);
    }

    /// Keeps a picture of what is seen, or of the whole page.
    pub fn picture(&mut self, path: &Path, whole: bool) {
        let params = json!({ "format": "png", "captureBeyondViewport": whole });
        let params = if whole {
            let size = self.evaluate(
                "({width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight})",
            );
            let mut params = params;
            params["clip"] = json!({
                "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1,
            });
            params
        } else {
            params
        };
        let picture = self.call("Page.captureScreenshot", params);
        let bytes = picture["data"].as_str().expect("a picture");
        let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, bytes);
        std::fs::write(path, bytes.expect("base64")).expect("picture is written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to, it also ends its helpers; a browser that is gone already needs no asking.
        let close = b"{\"id\":0,\"method\":\"Browser.close\"}\0";
        drop(self.to.write_all(close));
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
