//! The user's choices in the live view: order, filter, pause. Keys in, state out.

use std::cmp::Reverse;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{MonitorState, RunningTask};

/// The order of the tasks that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// The one that runs longest first.
    #[default]
    Elapsed,
    /// The one that has most left first.
    Left,
    /// The one with most memory first.
    Memory,
    /// By tool.
    Tool,
    /// By name.
    Name,
}

/// Whether there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colors {
    /// Tools and meters have colours.
    #[default]
    Some,
    /// No colours (`NO_COLOR`).
    None,
}

/// The state of the view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The order.
    pub sort: Sort,
    /// Text that a task's name, tool or architecture has to contain.
    pub filter: String,
    /// Whether keys go into the filter.
    pub typing: bool,
    /// Whether the view is paused.
    pub paused: bool,
    /// Tasks above the first that is shown.
    pub scroll: usize,
    /// Whether there are colours.
    pub colors: Colors,
}

/// The request of a key to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyRequest {
    Nothing,
    Quit,
    Suspend,
}

impl Sort {
    const ALL: [(Self, char, &'static str); 5] = [
        (Self::Elapsed, 'e', "elapsed"),
        (Self::Left, 'l', "left"),
        (Self::Memory, 'm', "memory"),
        (Self::Tool, 't', "tool"),
        (Self::Name, 'n', "name"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|one| one.0 == self);
        known.map_or("", |one| one.2)
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|one| one.0 == self);
        Self::ALL[at.map_or(0, |at| (at + 1) % Self::ALL.len())].0
    }
}

impl View {
    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> KeyRequest {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // A terminal in raw mode sends these as keys.
            KeyCode::Char('c' | 'd') if control => return KeyRequest::Quit,
            KeyCode::Char('z') if control => return KeyRequest::Suspend,
            KeyCode::Char('u') if control => self.filter.clear(),
            KeyCode::Enter | KeyCode::Esc if self.typing => {
                self.typing = false;
                if key.code == KeyCode::Esc {
                    self.filter.clear();
                }
            }
            KeyCode::Backspace if self.typing => drop(self.filter.pop()),
            KeyCode::Char(letter) if self.typing && !control => self.filter.push(letter),
            KeyCode::Char('q') => return KeyRequest::Quit,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char(letter) => {
                if let Some(known) = Sort::ALL.iter().find(|one| one.1 == letter) {
                    self.sort = known.0;
                }
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
        KeyRequest::Nothing
    }

    /// Whether the filter shows a task: the task contains every word of the filter.
    pub(super) fn wants(&self, label: &str, tool: &str, architecture: Option<&str>) -> bool {
        let whole = format!("{label} {tool} {}", architecture.unwrap_or_default()).to_lowercase();
        let filter = self.filter.to_lowercase();
        filter.split_whitespace().all(|word| whole.contains(word))
    }

    /// The running tasks that the filter shows, in order.
    pub(super) fn running<'a>(&self, now: &'a MonitorState) -> Vec<&'a RunningTask> {
        let wanted =
            |task: &&RunningTask| self.wants(&task.label, &task.tool, task.architecture.as_deref());
        let mut tasks: Vec<_> = now.running.iter().filter(wanted).collect();
        match self.sort {
            Sort::Elapsed => tasks.sort_by_key(|task| Reverse(task.elapsed)),
            Sort::Left => tasks.sort_by_key(|task| Reverse(task.left())),
            Sort::Memory => tasks.sort_by_key(|task| Reverse(task.memory_kib)),
            Sort::Tool => tasks.sort_by(|a, b| (&a.tool, &a.label).cmp(&(&b.tool, &b.label))),
            Sort::Name => tasks.sort_by(|a, b| (&a.label, &a.tool).cmp(&(&b.label, &b.tool))),
        }
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &str) -> KeyRequest {
        let mut asked = KeyRequest::Nothing;
        for letter in keys.chars() {
            let code = match letter {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                letter => KeyCode::Char(letter),
            };
            asked = view.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        asked
    }

    #[test]
    fn keys_do_what_the_last_line_says() {
        let mut view = View::default();
        assert_eq!(press(&mut view, "q"), KeyRequest::Quit);
        press(&mut view, "p");
        assert!(view.paused);
        press(&mut view, "ms");
        assert_eq!(view.sort, Sort::Tool);
        assert_eq!(press(&mut view, "/quit\x08\x08"), KeyRequest::Nothing);
        assert_eq!((view.filter.as_str(), view.typing), ("qu", true));
        press(&mut view, "\n");
        assert_eq!((view.filter.as_str(), view.typing), ("qu", false));
        press(&mut view, "\x1b");
        assert_eq!(view.filter, "");
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.key(control), KeyRequest::Quit);
    }

    #[test]
    fn a_filter_is_words_in_any_order() {
        let view = View {
            filter: "PTXAS fwd".into(),
            ..View::default()
        };
        assert!(view.wants("attention/fwd.cu", "ptxas", Some("sm_90a")));
        assert!(!view.wants("attention/fwd.cu", "cicc", None));
    }
}
