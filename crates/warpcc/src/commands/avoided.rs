//! The one figure that `stats` and `report` begin with: how much compiler time the cache avoided.

use std::time::Duration;

use crate::seconds::format_seconds;

/// The share of compiler time that was avoided, with both times: `saved` is what results from the cache took when they
/// were made, `spent` what the other steps took. A bypassed call avoids nothing and its time is not known, so with
/// bypassed calls the share is an upper limit. `None` where nothing was measured.
pub fn sentence(saved: Duration, spent: Duration, bypassed: u64) -> Option<String> {
    let whole = saved.checked_add(spent)?;
    if whole.is_zero() {
        return None;
    }
    let share = saved.as_micros().saturating_mul(100) / whole.as_micros().max(1);
    let (saved, whole) = (format_seconds(saved), format_seconds(whole));
    let (limit, unknown) = match bypassed {
        0 => ("", String::new()),
        1 => ("At most ", " and what 1 bypassed call took".to_owned()),
        calls => ("At most ", format!(" and what {calls} bypassed calls took")),
    };
    Some(format!(
        "{limit}{share}% of compiler time avoided: {saved} of {whole}{unknown}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bypassed_call_makes_the_share_a_limit() {
        let [three, one] = [3, 1].map(Duration::from_secs);
        let said = |bypassed| sentence(three, three, bypassed).expect("a figure");
        assert_eq!(said(0), "50% of compiler time avoided: 3.00 s of 6.00 s");
        assert_eq!(
            said(2),
            "At most 50% of compiler time avoided: 3.00 s of 6.00 s and what 2 bypassed calls took"
        );
        let none = sentence(Duration::ZERO, one, 0).expect("a figure");
        assert_eq!(none, "0% of compiler time avoided: 0 s of 1.00 s");
        assert_eq!(sentence(Duration::ZERO, Duration::ZERO, 1), None);
    }
}
