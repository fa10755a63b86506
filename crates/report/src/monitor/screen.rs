//! The live view as a screen of any size: figures and meters, what runs, what waits, the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::{Colors, MonitorState, View, harmless, short_memory, short_time};
use crate::record::Wait;

/// Columns before the name of a task.
const HEADING: &str = " TOOL      ARCH         ELAPSED     LEFT  MEMORY  TASK";
/// The lines above the tasks.
const ABOVE: u16 = 5;

/// Draws one screen. Nothing is drawn outside of `area`, however small that is.
pub fn draw(now: &MonitorState, view: &View, area: Rect, buffer: &mut Buffer) {
    let mut page = Page {
        colors: view.colors,
        area,
        buffer,
    };
    page.line(0, title(now, view, &page));
    page.line(1, slots(now, &page));
    page.line(2, memory(now, &page));
    page.line(3, counts(now, &page));
    page.line(4, Line::from(Span::styled(HEADING, page.heading())));
    let last = area.height.saturating_sub(1);
    tasks(now, view, last, &mut page);
    if area.height > ABOVE {
        page.line(last, keys(view, &page));
    }
}

struct Page<'a> {
    colors: Colors,
    area: Rect,
    buffer: &'a mut Buffer,
}

impl Page<'_> {
    fn line(&mut self, row: u16, line: Line<'_>) {
        if row < self.area.height {
            let (x, y) = (self.area.x, self.area.y + row);
            self.buffer.set_line(x, y, &line, self.area.width);
        }
    }

    fn color(&self, color: Color) -> Style {
        match self.colors {
            Colors::Some => Style::new().fg(color),
            Colors::None => Style::new(),
        }
    }

    fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Without colours a heading is underlined.
    fn heading(&self) -> Style {
        match self.colors {
            Colors::Some => Style::new().fg(Color::Black).bg(Color::Gray),
            Colors::None => Style::new().add_modifier(Modifier::UNDERLINED),
        }
    }

    fn tool(&self, tool: &str) -> Style {
        self.color(match tool {
            "cudafe++" => Color::Magenta,
            "cicc" => Color::Blue,
            "ptxas" => Color::Cyan,
            "fatbinary" => Color::Yellow,
            "nvlink" => Color::Red,
            "host" => Color::Gray,
            _ => Color::Green,
        })
    }

    /// `[#######   ]`, as wide as the screen has room for.
    fn meter(&self, part: f64, color: Color) -> Vec<Span<'static>> {
        let width = usize::from(self.area.width / 3).clamp(6, 40);
        let full = (part.clamp(0.0, 1.0) * width as f64).round() as usize;
        let color = if part > 0.95 && color == Color::Green {
            Color::Yellow
        } else {
            color
        };
        vec![
            Span::raw("["),
            Span::styled("|".repeat(full), self.color(color)),
            Span::raw(" ".repeat(width - full)),
            Span::raw("] "),
        ]
    }
}

fn title<'a>(now: &MonitorState, view: &View, page: &Page<'_>) -> Line<'a> {
    let mut spans = vec![
        Span::styled("warpcc monitor", page.bold()),
        Span::raw("  "),
        Span::raw(harmless(&now.host)),
    ];
    if view.paused {
        spans.push(Span::styled(
            "  paused",
            page.color(Color::Yellow).add_modifier(Modifier::BOLD),
        ));
    }
    if now.running.is_empty() && now.waiting_count == 0 {
        spans.push(Span::styled("  nothing is compiled now", page.dim()));
    }
    Line::from(spans)
}

fn slots<'a>(now: &MonitorState, page: &Page<'_>) -> Line<'a> {
    let busy = now.running.len();
    let mut spans = vec![Span::raw("Slots  ")];
    let share = busy as f64 / f64::from(now.slots.max(1));
    spans.extend(page.meter(if now.slots == 0 { 0.0 } else { share }, Color::Green));
    let of = if now.slots == 0 {
        String::new()
    } else {
        format!("/{}", now.slots)
    };
    spans.push(Span::styled(format!("{busy}{of}"), page.bold()));
    spans.push(Span::raw(format!("  waiting {}", now.waiting_count)));
    let reason = |wanted: Wait| {
        now.waiting
            .iter()
            .filter(|task| task.reason == Some(wanted))
            .count()
    };
    for (wait, name) in [(Wait::Memory, "memory"), (Wait::Token, "tokens")] {
        if reason(wait) > 0 {
            spans.push(Span::raw(format!(", {} for {name}", reason(wait))));
        }
    }
    Line::from(spans)
}

fn memory<'a>(now: &MonitorState, page: &Page<'_>) -> Line<'a> {
    let memory = now.memory;
    let (part, of) = if memory.budget_kib > 0 {
        (memory.granted_kib, memory.budget_kib)
    } else {
        (memory.used_kib, memory.total_kib)
    };
    let mut spans = vec![Span::raw("Memory ")];
    let share = if of == 0 {
        0.0
    } else {
        part as f64 / of as f64
    };
    spans.extend(page.meter(share, Color::Green));
    spans.push(Span::styled(
        format!("{}/{}", short_memory(part), short_memory(of)),
        page.bold(),
    ));
    if memory.budget_kib > 0 && memory.total_kib > 0 {
        let used = short_memory(memory.used_kib);
        spans.push(Span::styled(
            format!("  machine {used}/{}", short_memory(memory.total_kib)),
            page.dim(),
        ));
    }
    Line::from(spans)
}

fn counts<'a>(now: &MonitorState, page: &Page<'_>) -> Line<'a> {
    let looked = now.hits + now.misses;
    let rate = now.hits.saturating_mul(100).checked_div(looked);
    let rate = rate.map_or_else(String::new, |rate| format!(" ({rate}%)"));
    let mut spans = vec![Span::raw(format!(
        "Done   {}  hits {}{rate}  misses {}",
        now.finished, now.hits, now.misses
    ))];
    if now.failed > 0 {
        let failed = format!("  failed {}", now.failed);
        spans.push(Span::styled(
            failed,
            page.color(Color::Red).add_modifier(Modifier::BOLD),
        ));
    }
    if let Some(left) = now.time_left() {
        spans.push(Span::raw("  left about "));
        spans.push(Span::styled(short_time(left), page.bold()));
    }
    Line::from(spans)
}

/// The tasks that run, and below them, where there is room, those that wait.
fn tasks(now: &MonitorState, view: &View, last: u16, page: &mut Page<'_>) {
    let room = usize::from(last.saturating_sub(ABOVE));
    let running = view.running(now);
    // A screen that was scrolled beyond its end shows the end.
    let scroll = view.scroll.min(running.len().saturating_sub(room.max(1)));
    let mut row = ABOVE;
    for task in running.iter().skip(scroll).take(room) {
        let left = task.left().map_or_else(|| "?".to_owned(), short_time);
        let late = task
            .expected
            .is_some_and(|expected| task.elapsed > expected);
        let left = if late { "late".to_owned() } else { left };
        let spans = vec![
            Span::styled(
                format!(" {:<9} ", fit(&task.tool, 9)),
                page.tool(&task.tool),
            ),
            Span::raw(format!(
                "{:<11} ",
                fit(task.architecture.as_deref().unwrap_or(""), 11)
            )),
            Span::raw(format!("{:>8} ", short_time(task.elapsed))),
            Span::raw(format!("{left:>8} ")),
            Span::raw(format!("{:>7}  ", short_memory(task.memory_kib))),
            Span::raw(harmless(&task.label)),
        ];
        page.line(row, Line::from(spans));
        row += 1;
    }
    let wanted = now
        .waiting
        .iter()
        .filter(|task| view.wants(&task.label, &task.tool, task.architecture.as_deref()));
    let waiting: Vec<_> = wanted.collect();
    if waiting.is_empty() || row + 2 >= last {
        return;
    }
    let heading = format!(" WAITING, {} in all", now.waiting_count.max(waiting.len()));
    page.line(row, Line::from(Span::styled(heading, page.bold())));
    row += 1;
    for task in waiting.iter().take(usize::from(last - row)) {
        let reason = match task.reason {
            Some(Wait::Cpu) => "slot",
            Some(Wait::Memory) => "memory",
            Some(Wait::Token) => "token",
            None => "",
        };
        let expected = task.expected.map_or_else(|| "?".to_owned(), short_time);
        let text = format!(
            " {:<9} {:<11} {:>8} {expected:>8} {reason:>7}  {}",
            fit(&task.tool, 9),
            fit(task.architecture.as_deref().unwrap_or(""), 11),
            short_time(task.waited),
            harmless(&task.label)
        );
        page.line(row, Line::from(Span::styled(text, page.dim())));
        row += 1;
    }
}

fn keys<'a>(view: &View, page: &Page<'_>) -> Line<'a> {
    if view.typing {
        let filter = harmless(&view.filter);
        return Line::from(vec![
            Span::styled("filter: ", page.bold()),
            Span::raw(filter),
            Span::styled("_", page.bold()),
            Span::styled("   Enter keeps it, Esc clears it", page.dim()),
        ]);
    }
    let pause = if view.paused { "go on" } else { "pause" };
    let mut text = format!(
        "q quit  p {pause}  / filter  s sort: {}  up/down scroll",
        view.sort.name()
    );
    if !view.filter.is_empty() {
        text = format!("filter: {}  (Esc clears)  {text}", harmless(&view.filter));
    }
    Line::from(Span::styled(text, page.dim()))
}

/// At most this many characters of a text.
fn fit(text: &str, most: usize) -> String {
    harmless(text).chars().take(most).collect()
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
