//! Lets one thread of a process make a result that many threads request at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::call_limits::CallLimits;
use crate::error::Error;

/// Which thread did the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// The requesting thread.
    Us,
    /// A thread that requested it before.
    Another,
}

/// Results that are being made, by key.
#[derive(Debug)]
pub(crate) struct Flights<K, V>(Mutex<HashMap<K, Arc<Flight<V>>>>);

#[derive(Debug)]
struct Flight<V> {
    landed: Mutex<Option<Landed<V>>>,
    changed: Condvar,
}

#[derive(Debug, Clone)]
enum Landed<V> {
    Made(Result<V, Error>),
    /// The thread that was making it gave up for its own reasons, or died.
    GivenUp,
}

impl<K: Eq + Hash + Clone, V: Clone> Flights<K, V> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// The result of `make`, or of a thread that requested the same before and has not finished yet. An error about the text
    /// is shared too; another thread's timeout is not.
    ///
    /// # Errors
    /// The error of `make`, or a limit that was reached.
    pub(crate) fn one_of_many(
        &self,
        key: &K,
        limits: &CallLimits,
        what: &str,
        make: impl Fn() -> Result<V, Error>,
    ) -> Result<(V, Maker), Error> {
        loop {
            let (flight, ours) = {
                let mut flights = lock(&self.0);
                match flights.get(key) {
                    Some(flight) => (flight.clone(), false),
                    None => {
                        let flight = Arc::new(Flight {
                            landed: Mutex::new(None),
                            changed: Condvar::new(),
                        });
                        flights.insert(key.clone(), flight.clone());
                        (flight, true)
                    }
                }
            };
            if ours {
                let landing = Landing {
                    flights: self,
                    key,
                    flight: &flight,
                    landed: None,
                };
                return landing.make(make).map(|value| (value, Maker::Us));
            }
            if let Landed::Made(result) = flight.wait(limits, what)? {
                return result.map(|value| (value, Maker::Another));
            }
        }
    }
}

impl<V: Clone> Flight<V> {
    fn wait(&self, limits: &CallLimits, what: &str) -> Result<Landed<V>, Error> {
        /// How late a cancellation is noticed.
        const PAUSE: Duration = Duration::from_millis(20);
        let mut landed = lock(&self.landed);
        loop {
            if let Some(landed) = &*landed {
                return Ok(landed.clone());
            }
            limits.check(what)?;
            landed = match self.changed.wait_timeout(landed, PAUSE) {
                Ok((landed, _)) => landed,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

/// Passes the result to the waiting threads, also if making it panics.
struct Landing<'f, K: Eq + Hash, V> {
    flights: &'f Flights<K, V>,
    key: &'f K,
    flight: &'f Flight<V>,
    landed: Option<Landed<V>>,
}

impl<K: Eq + Hash, V: Clone> Landing<'_, K, V> {
    fn make(mut self, make: impl Fn() -> Result<V, Error>) -> Result<V, Error> {
        let result = make();
        self.landed = match &result {
            Err(Error::Cancelled { .. } | Error::Deadline { .. }) => None,
            other => Some(Landed::Made(other.clone())),
        };
        result
    }
}

impl<K: Eq + Hash, V> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        lock(&self.flights.0).remove(self.key);
        *lock(&self.flight.landed) = Some(self.landed.take().unwrap_or(Landed::GivenUp));
        self.flight.changed.notify_all();
    }
}

/// Data that a panic left behind is consistent: nothing here is changed in more than one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::call_limits::Cancel;

    #[test]
    fn many_threads_make_it_once() {
        let flights = Flights::new();
        let (made, barrier) = (AtomicUsize::new(0), Barrier::new(16));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    barrier.wait();
                    let value = flights.one_of_many(&1, &CallLimits::default(), "it", || {
                        std::thread::sleep(Duration::from_millis(300));
                        Ok(made.fetch_add(1, Ordering::Relaxed))
                    });
                    assert_eq!(value.expect("made").0, 0);
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn one_that_gives_up_leaves_it_to_the_next() {
        let flights = Flights::new();
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                flights.one_of_many(&1, &CallLimits::default(), "it", || {
                    barrier.wait();
                    std::thread::sleep(Duration::from_millis(100));
                    Err::<u8, _>(Error::Cancelled {
                        what: "it".to_owned(),
                    })
                })
            });
            barrier.wait();
            let second = flights.one_of_many(&1, &CallLimits::default(), "it", || Ok(2));
            assert_eq!(second.expect("made"), (2, Maker::Us));
            assert!(first.join().expect("no panic").is_err());
        });
    }

    #[test]
    fn a_waiter_may_give_up() {
        let flights = Flights::new();
        let barrier = Barrier::new(2);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let made = flights.one_of_many(&1, &CallLimits::default(), "it", || {
                    barrier.wait();
                    std::thread::sleep(Duration::from_millis(300));
                    Ok(1)
                });
                assert_eq!(made.expect("made").0, 1);
            });
            barrier.wait();
            cancel.cancel();
            let limits = CallLimits {
                cancel: Some(cancel.clone()),
                ..CallLimits::default()
            };
            let second = flights.one_of_many(&1, &limits, "it", || Ok(2));
            assert!(matches!(second, Err(Error::Cancelled { .. })));
        });
    }

    #[test]
    fn a_panic_leaves_it_to_the_next() {
        let flights: Flights<u8, u8> = Flights::new();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            flights.one_of_many(&1, &CallLimits::default(), "it", || panic!("on purpose"))
        }));
        assert!(panicked.is_err());
        let second = flights.one_of_many(&1, &CallLimits::default(), "it", || Ok(2));
        assert_eq!(second.expect("made"), (2, Maker::Us));
    }
}
