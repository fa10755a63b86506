//! A cluster of the tests: a casd behind the dispatcher, which counts and can leave actions unanswered.

use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant};

use warpcc_testkit::casd::Casd;
use warpcc_testkit::dispatcher::Dispatcher;

/// All of it ends with this value.
pub struct Cluster {
    dispatcher: Dispatcher,
    port: u16,
    _runtime: tokio::runtime::Runtime,
    _casd: Casd,
}

impl Cluster {
    /// One casd does all. None where casd is not there.
    pub fn of_one() -> Option<Self> {
        let casd = Casd::start()?;
        let address = casd.address();
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let guard = runtime.enter();
        let workers = std::slice::from_ref(&address);
        let started = Dispatcher::start(0, &address, workers, Duration::ZERO);
        let (dispatcher, port) = started.expect("a port");
        drop(guard);
        Some(Self {
            dispatcher,
            port,
            _runtime: runtime,
            _casd: casd,
        })
    }

    /// As `WARPCC_EXECUTOR` names it.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }

    /// Waits until `count` actions are under way.
    pub fn wait_for(&self, count: usize) {
        let patience = Instant::now();
        while self.flying() != count {
            assert!(
                patience.elapsed() < Duration::from_secs(120),
                "{} actions are under way, not {count}",
                self.flying()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Deref for Cluster {
    type Target = Dispatcher;

    fn deref(&self) -> &Dispatcher {
        &self.dispatcher
    }
}
