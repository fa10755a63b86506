//! Numbers that look random, the same each time.

/// Numbers without a pattern that a person would see: xorshift.
pub(crate) struct Random(pub(super) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    /// Mostly near 1, sometimes several times that.
    pub(super) fn spread(&mut self) -> f64 {
        let sum: u64 = (0..3).map(|_| self.below(1000)).sum();
        let base = 0.4 + sum as f64 / 2500.0;
        if self.below(12) == 0 {
            base * 3.2
        } else {
            base
        }
    }
}
