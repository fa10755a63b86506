//! Screens as they look, at the sizes people have.

use std::time::Duration;

use super::*;
use crate::monitor::{MemoryNow, RunningTask, Sort, WaitingTask, lines};

fn busy() -> MonitorState {
    let running = |tool: &str, arch: Option<&str>, at: u64| RunningTask {
        label: format!("attention/fwd_hdim{}_bf16.cu", 64 * at),
        tool: tool.into(),
        architecture: arch.map(Into::into),
        elapsed: Duration::from_millis(1700 * at),
        expected: (at != 3).then(|| Duration::from_secs(4 * at.min(4))),
        memory_kib: 700_000 * at,
    };
    let waiting = |at: u64| WaitingTask {
        label: format!("moe/topk_{at}.cu"),
        tool: "cicc".into(),
        architecture: Some("compute_90a".into()),
        waited: Duration::from_secs(at),
        reason: Some(if at.is_multiple_of(2) {
            Wait::Memory
        } else {
            Wait::Cpu
        }),
        expected: Some(Duration::from_secs(3)),
    };
    MonitorState {
        host: "build-7".into(),
        slots: 8,
        memory: MemoryNow {
            total_kib: 64 << 20,
            used_kib: 30 << 20,
            budget_kib: 40 << 20,
            granted_kib: 25 << 20,
        },
        running: vec![
            running("cicc", Some("compute_90a"), 1),
            running("ptxas", Some("sm_90a"), 2),
            running("host", None, 3),
            running("cudafe++", None, 4),
            running("ptxas", Some("sm_100a"), 12),
        ],
        waiting: (1..20).map(waiting).collect(),
        waiting_count: 213,
        finished: 1234,
        failed: 1,
        hits: 456,
        misses: 779,
        left: None,
    }
}

fn screen(now: &MonitorState, view: &View, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(now, view, area, &mut buffer);
    let row = |y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_usual_terminal() {
    insta::assert_snapshot!(screen(&busy(), &View::default(), 80, 24));
}

#[test]
fn a_large_one_that_is_filtered_and_paused() {
    let view = View {
        filter: "ptxas".into(),
        paused: true,
        sort: Sort::Memory,
        ..View::default()
    };
    insta::assert_snapshot!(screen(&busy(), &view, 120, 16));
}

#[test]
fn nothing_to_show() {
    insta::assert_snapshot!(screen(&MonitorState::default(), &View::default(), 80, 8));
}

#[test]
fn lines_for_pipes() {
    insta::assert_snapshot!(lines(&busy()));
}

#[test]
fn no_size_is_too_small_and_no_name_too_odd() {
    let mut now = busy();
    now.running[0].label = "日本語\x1b[31m\u{202e}\r\n".repeat(50);
    now.running[0].tool = "a very long tool's name".into();
    let view = View {
        scroll: usize::MAX,
        typing: true,
        ..View::default()
    };
    for width in [0, 1, 2, 7, 40, 80, 300] {
        for height in [0, 1, 4, 5, 6, 7, 24, 100] {
            let text = screen(&now, &view, width, height);
            assert!(!text.contains('\x1b'));
        }
    }
    assert!(!lines(&now).contains(['\x1b', '\r', '\u{202e}']));
}

#[test]
fn without_colours_there_are_none() {
    let area = Rect::new(0, 0, 80, 24);
    for (colors, any) in [(Colors::Some, true), (Colors::None, false)] {
        let mut buffer = Buffer::empty(area);
        let view = View {
            colors,
            ..View::default()
        };
        draw(&busy(), &view, area, &mut buffer);
        let colored =
            |cell: &ratatui::buffer::Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
        assert_eq!(buffer.content.iter().any(colored), any);
    }
}
