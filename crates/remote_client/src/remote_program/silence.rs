//! The time since the last message of `warpcc-remote`.

use std::time::Duration;

/// If there is no message for this long, the program is stopped or hangs: it sends one each second.
const SILENT: Duration = Duration::from_secs(20);

/// The time since the last message, as time waited: a clock would count the hours in which both were stopped.
#[derive(Default)]
pub(super) struct Silence {
    messages: u64,
    waited: Duration,
}

impl Silence {
    /// Another `tick` was waited, and so many messages have come by now. Returns true if there was no message for too
    /// long.
    pub(super) fn lasts(&mut self, messages: u64, tick: Duration) -> bool {
        if messages != self.messages {
            self.messages = messages;
            self.waited = Duration::ZERO;
        }
        self.waited += tick;
        self.waited > SILENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_is_not_silent() {
        let mut silence = Silence::default();
        let half = SILENT / 2 + Duration::from_millis(1);
        for messages in [0, 1, 2, 3] {
            assert!(!silence.lasts(messages, half), "{messages}");
        }
        assert!(silence.lasts(3, half));
    }
}
