//! The live view as a program: takes over the terminal, reacts to keys, and restores the terminal
//! however it ends.
//!
//! It ends by a key, a signal, a panic, or if the terminal is gone. Signals set a flag that is
//! checked ten times a second, so that the terminal is restored before anything else happens.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use signal_hook::consts::{SIGHUP, SIGINT, SIGSTOP, SIGTERM, SIGTSTP};
use signal_hook::{SigId, low_level};

use super::view::KeyRequest;
use super::{Colors, MonitorSource, View, draw};

/// How often keys and signals are looked at.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// How the program looks and how often it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorSettings {
    /// The time between two snapshots.
    pub every: Duration,
    /// Whether there are colours.
    pub colors: Colors,
}

impl Default for MonitorSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_millis(500),
            colors: Colors::Some,
        }
    }
}

/// Why the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorEnded {
    /// The user pressed the key for it.
    Quit,
    /// This signal arrived. A program that ends because of it exits with 128 plus its number.
    Signal(i32),
}

/// Shows the source's figures until a key or a signal ends it. `out` gives the terminal's
/// writing end, such as [`std::io::stdout`].
///
/// # Errors
/// There is no terminal, or it is gone.
pub fn run<W: Write + 'static>(
    source: &mut dyn MonitorSource,
    settings: &MonitorSettings,
    out: fn() -> W,
) -> io::Result<MonitorEnded> {
    let signals = Signals::watch()?;
    let _message = PanicMessage::after_the_screen(out);
    let taken = TerminalGuard::take(out)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(out()))?;
    let mut view = View {
        colors: settings.colors,
        ..View::default()
    };
    let mut now = source.snapshot();
    let mut asked_at = Instant::now();
    loop {
        terminal.draw(|frame| draw(&now, &view, frame.area(), frame.buffer_mut()))?;
        let mut asked = KeyRequest::Nothing;
        // All keys that are there, before drawing again.
        let mut wait = REDRAW_AFTER;
        while asked == KeyRequest::Nothing && event::poll(wait)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => asked = view.key(key),
                // The content of the screen after a change of size is not known.
                Event::Resize(..) => terminal.clear()?,
                _ => {}
            }
            wait = Duration::ZERO;
        }
        if let Some(signal) = signals.ending() {
            return Ok(MonitorEnded::Signal(signal));
        }
        if asked == KeyRequest::Quit {
            return Ok(MonitorEnded::Quit);
        }
        if asked == KeyRequest::Suspend || signals.stopping() {
            taken.suspend()?;
            terminal.clear()?;
        }
        if !view.paused && asked_at.elapsed() >= settings.every {
            now = source.snapshot();
            asked_at = Instant::now();
        }
    }
}

/// The terminal while it is ours.
struct TerminalGuard<W: Write> {
    out: fn() -> W,
}

impl<W: Write> TerminalGuard<W> {
    fn take(out: fn() -> W) -> io::Result<Self> {
        let taken = Self { out };
        taken.enter()?;
        Ok(taken)
    }

    fn enter(&self) -> io::Result<()> {
        enable_raw_mode()?;
        // From here on dropping it restores the terminal, even if the next step fails.
        OURS.store(true, Ordering::SeqCst);
        execute!((self.out)(), EnterAlternateScreen, Hide)
    }

    /// Stops this process as the terminal's own key would, with the terminal as it was.
    fn suspend(&self) -> io::Result<()> {
        give_back(self.out);
        // To this thread: sent to the process, it might stop only after the next lines.
        low_level::raise(SIGSTOP)?;
        self.enter()
    }
}

impl<W: Write> Drop for TerminalGuard<W> {
    fn drop(&mut self) {
        give_back(self.out);
    }
}

/// Whether the terminal is ours. There is one terminal to a process.
static OURS: AtomicBool = AtomicBool::new(false);

/// Errors are ignored, because a terminal that is gone needs nothing. It runs only once: a second
/// time would put the cursor back over text that was written since.
fn give_back<W: Write>(out: fn() -> W) {
    if !OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    drop(execute!(out(), LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
}

/// Signals that end or stop the program, as flags.
struct Signals {
    last: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        let mut signals = Self {
            last: Arc::new(AtomicUsize::new(0)),
            stop: Arc::new(AtomicBool::new(false)),
            registered: Vec::new(),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let value = usize::try_from(signal).unwrap_or(0);
            let last = Arc::clone(&signals.last);
            let id = signal_hook::flag::register_usize(signal, last, value)?;
            signals.registered.push(id);
        }
        let id = signal_hook::flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
        signals.registered.push(id);
        Ok(signals)
    }

    fn ending(&self) -> Option<i32> {
        let last = self.last.load(Ordering::Relaxed);
        i32::try_from(last).ok().filter(|signal| *signal != 0)
    }

    fn stopping(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// Restores the terminal before a panic's message is written: on the monitor's own screen the message would be lost.
struct PanicMessage {
    before: Arc<Hook>,
}

impl PanicMessage {
    fn after_the_screen<W: Write + 'static>(out: fn() -> W) -> Self {
        let before: Arc<Hook> = Arc::from(std::panic::take_hook());
        let message = Arc::clone(&before);
        std::panic::set_hook(Box::new(move |info| {
            give_back(out);
            message(info);
        }));
        Self { before }
    }
}

impl Drop for PanicMessage {
    fn drop(&mut self) {
        // During a panic the hook cannot be changed, and need not be.
        if !std::thread::panicking() {
            let before = Arc::clone(&self.before);
            std::panic::set_hook(Box::new(move |info| before(info)));
        }
    }
}
