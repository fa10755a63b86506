//! Durations as records and reports hold them: microseconds when stored, seconds in JSON.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if to.is_human_readable() {
        // From whole microseconds, so that what was stored and what was not print the same.
        (micros as f64 / 1e6).serialize(to)
    } else {
        micros.serialize(to)
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    if from.is_human_readable() {
        let seconds = f64::deserialize(from)?;
        // Values that no clock can measure become 0.
        let micros = (seconds * 1e6).round();
        Ok(Duration::from_micros(micros as u64))
    } else {
        u64::deserialize(from).map(Duration::from_micros)
    }
}
