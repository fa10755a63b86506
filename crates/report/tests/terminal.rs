//! The live view in a real terminal, tmux's: it answers to keys, follows the window's size, and
//! leaves the terminal as it was, whether it is ended by a key, by a signal or by a panic.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use warpcc_report::monitor::{
    self, MemoryNow, MonitorEnded, MonitorSettings, MonitorSource, MonitorState, RunningTask,
};

const PANIC: &str = "WARPCC_REPORT_TEST_PANIC";
const PATIENCE: Duration = Duration::from_secs(60);

/// Two tasks that go on for ever, or until it panics.
struct Made {
    at: u32,
    panics: bool,
}

impl MonitorSource for Made {
    fn snapshot(&mut self) -> MonitorState {
        self.at += 1;
        assert!(!(self.panics && self.at > 5), "the source broke");
        let task = |tool: &str, label: &str| RunningTask {
            tool: tool.into(),
            label: label.into(),
            elapsed: Duration::from_millis(100) * self.at,
            expected: Some(Duration::from_secs(60)),
            memory_kib: 1 << 20,
            architecture: None,
        };
        MonitorState {
            host: "made-up".into(),
            slots: 4,
            memory: MemoryNow {
                budget_kib: 8 << 20,
                granted_kib: 2 << 20,
                ..MemoryNow::default()
            },
            running: vec![task("cicc", "first.cu"), task("ptxas", "second.cu")],
            finished: u64::from(self.at),
            ..MonitorState::default()
        }
    }
}

#[test]
#[ignore = "the program that the other tests run in a terminal"]
fn program() {
    let mut source = Made {
        at: 0,
        panics: std::env::var_os(PANIC).is_some(),
    };
    let settings = MonitorSettings {
        every: Duration::from_millis(50),
        ..MonitorSettings::default()
    };
    let ended = monitor::run(&mut source, &settings, std::io::stdout).expect("a terminal");
    match ended {
        MonitorEnded::Quit => println!("ended by a key"),
        MonitorEnded::Signal(signal) => println!("ended by signal {signal}"),
    }
}

/// A terminal with a shell in it.
struct Terminal {
    socket: PathBuf,
    folder: tempfile::TempDir,
    /// How often it has been looked at: what an earlier look typed may still be on the screen.
    looks: Cell<u32>,
}

impl Terminal {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let terminal = Self {
            socket: folder.path().join("socket"),
            folder,
            looks: Cell::new(0),
        };
        terminal.tmux(&[
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "env -i PATH=$PATH TERM=screen-256color PS1='$ ' sh",
        ]);
        terminal.until("\n$");
        terminal.line("echo was here before");
        terminal.until("\nwas here before");
        terminal.line(&format!("stty -g > {}", terminal.file("before").display()));
        terminal
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(args)
            .output()
            .expect("the terminal tests need tmux: `cargo xtask test` installs it, or as root: apt-get install tmux");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {args:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn line(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn until(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if format!("\n{screen}").contains(text) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "{text:?} never came:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// An empty screen but for the mark. It is waited for: the terminal shows what is typed at once, and what is
    /// typed before the shell has answered would stand in the mark's line and break it.
    fn clear(&self) {
        let look = self.looks.get() + 1;
        self.looks.set(look);
        self.line(&format!(
            "clear; echo was here before; echo 'clear' {look} done"
        ));
        self.until(&format!("\nclear {look} done\n$"));
    }

    /// Starts the program.
    fn program(&self, before: &str) {
        let own = std::env::current_exe().expect("own path");
        let own = own.display();
        let pid = self.file("pid");
        // `exec` keeps the number that the inner shell has written down.
        self.line(&format!(
            "{before} sh -c 'echo $$ > {}; exec {own} --exact program --ignored --nocapture'",
            pid.display(),
        ));
    }

    fn signal(&self, name: &str) {
        let pid = std::fs::read_to_string(self.file("pid")).expect("its number");
        let status = Command::new("kill")
            .args([&format!("-{name}"), pid.trim()])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// The program is gone, and the terminal is what it was.
    fn is_as_before(&self, last_words: &str) {
        self.until(last_words);
        let look = self.looks.get() + 1;
        self.looks.set(look);
        let after = self.file(&format!("after-{look}"));
        self.line(&format!(
            "stty -g > {}; echo 'look' {look} done",
            after.display()
        ));
        let screen = self.until(&format!("\nlook {look} done"));
        assert!(screen.contains("was here before"), "{screen}");
        assert!(!screen.contains("warpcc monitor"), "{screen}");
        let read = |path: &Path| std::fs::read_to_string(path).expect("stty wrote");
        assert_eq!(read(&self.file("before")), read(&after));
        assert_eq!(
            self.tmux(&["display-message", "-p", "#{alternate_on}#{cursor_flag}"])
                .trim(),
            "01"
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let kill = [
            "-S".as_ref(),
            self.socket.as_os_str(),
            "kill-server".as_ref(),
        ];
        drop(Command::new("tmux").args(kill).output());
    }
}

#[test]
fn keys_size_and_quit() {
    let terminal = Terminal::start();
    terminal.program("");
    let screen = terminal.until("second.cu");
    assert!(screen.starts_with("warpcc monitor  made-up"), "{screen}");
    assert_eq!(
        screen.lines().nth(23).map(|line| &line[..6]),
        Some("q quit"),
        "{screen}"
    );
    terminal.keys(&["p"]);
    terminal.until("paused");
    terminal.keys(&["p", "/"]);
    terminal.until("filter: _");
    terminal.tmux(&["send-keys", "-l", "ptxas"]);
    let screen = terminal.until("filter: ptxas_");
    assert!(
        !screen.contains("first.cu") && screen.contains("second.cu"),
        "{screen}"
    );
    terminal.keys(&["Escape"]);
    terminal.until("first.cu");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    let start = Instant::now();
    while !terminal
        .screen()
        .lines()
        .nth(39)
        .is_some_and(|line| line.starts_with("q quit"))
    {
        assert!(start.elapsed() < PATIENCE, "{}", terminal.screen());
    }
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.keys(&["q"]);
    terminal.is_as_before("ended by a key");
}

#[test]
fn signals_and_a_stop() {
    let terminal = Terminal::start();
    terminal.program("");
    terminal.until("second.cu");
    terminal.signal("TERM");
    terminal.is_as_before("ended by signal 15");
    terminal.clear();
    terminal.program("");
    terminal.until("second.cu");
    // Stopped by a signal and by its key, and continued, it is there again.
    terminal.signal("TSTP");
    terminal.is_as_before("Stopped");
    terminal.clear();
    terminal.line("fg");
    terminal.until("second.cu");
    terminal.keys(&["C-z"]);
    terminal.is_as_before("Stopped");
    terminal.line("fg");
    terminal.until("second.cu");
    terminal.keys(&["C-c"]);
    terminal.is_as_before("ended by a key");
}

#[test]
fn a_panic_leaves_its_message() {
    let terminal = Terminal::start();
    terminal.program(&format!("{PANIC}=1"));
    terminal.is_as_before("the source broke");
}
