//! How long something took, for people.

use std::time::Duration;

/// `0.004 s`, `1.24 s`, `12.3 s`, `75 s`: three figures are enough for a reader.
pub fn format_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time.is_zero() {
        "0 s".to_owned()
    } else if seconds < 0.1 {
        format!("{seconds:.3} s")
    } else if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 99.95 {
        format!("{seconds:.1} s")
    } else {
        format!("{seconds:.0} s")
    }
}

/// How long ago, in large units.
pub fn format_ago(since: Duration) -> String {
    match since.as_secs() {
        s if s < 120 => format!("{s} s ago"),
        s if s < 7200 => format!("{} m ago", s / 60),
        s if s < 172_800 => format!("{} h ago", s / 3600),
        s => format!("{} d ago", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_three_figures() {
        for (ms, expected) in [
            (0, "0 s"),
            (4, "0.004 s"),
            (1240, "1.24 s"),
            (9_999, "10.0 s"),
            (75_000, "75.0 s"),
            (750_000, "750 s"),
        ] {
            assert_eq!(format_seconds(Duration::from_millis(ms)), expected);
        }
    }
}
