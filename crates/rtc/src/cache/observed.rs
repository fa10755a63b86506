//! Times each request of a cache, for the program's observer and for the trace.

use std::time::{Instant, SystemTime};

use warpcc_cache::Key;

use crate::error::Error;
use crate::event::CacheEvent;
use crate::found::Found;

use super::{Image, KernelCache};

/// When a request began, by both clocks; `None` if nobody wants to know.
pub(super) struct Begun(Option<(SystemTime, Instant)>);

impl KernelCache {
    /// Does `work`, which sets the key as soon as it knows it, and tells what came of it.
    pub(super) fn observed(
        &self,
        name: &str,
        work: impl FnOnce(&mut Option<Key>) -> Result<Image, Error>,
    ) -> Result<Image, Error> {
        let begun = self.begin();
        let mut key = None;
        let result = work(&mut key);
        let key = result.as_ref().map_or(key, |image| image.key);
        self.report(&begun, name, key, result.as_ref().map(|image| image.found));
        result
    }

    pub(super) fn begin(&self) -> Begun {
        let is_observed = self.settings.observer.is_some() || self.tracer.is_some();
        Begun(is_observed.then(|| (SystemTime::now(), Instant::now())))
    }

    /// Tells what came of a request.
    pub(super) fn report(
        &self,
        begun: &Begun,
        name: &str,
        key: Option<Key>,
        outcome: Result<Found, &Error>,
    ) {
        let Begun(Some((started, start))) = *begun else {
            return;
        };
        let event = CacheEvent {
            name,
            key,
            outcome,
            started,
            took: start.elapsed(),
        };
        if let Some(tracer) = &self.tracer
            && let Err(why) = tracer.add(&event)
        {
            self.tiers.remark(why);
        }
        if let Some(observer) = &self.settings.observer {
            observer.call(&event);
        }
    }
}
