//! A cluster of the tests: casd servers behind the dispatcher, which counts and can leave actions unanswered.

use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant};

use crate::casd::Casd;
use crate::dispatcher::Dispatcher;

/// All of it ends with this value, the workers before the one they ask.
pub struct Cluster {
    dispatcher: Dispatcher,
    port: u16,
    _runtime: tokio::runtime::Runtime,
    _workers: Vec<Casd>,
    front: Casd,
}

impl Cluster {
    /// One casd holds blobs and results, `workers` others run one action each at a time. None where casd is not there.
    pub fn of(workers: usize) -> Option<Self> {
        let front = Casd::start()?;
        let workers: Option<Vec<Casd>> = (0..workers).map(|_| Casd::start_worker(&front)).collect();
        let workers = workers?;
        let addresses: Vec<String> = workers.iter().map(Casd::address).collect();
        Some(Self::behind(front, workers, &addresses))
    }

    /// One casd does all.
    pub fn of_one() -> Option<Self> {
        let front = Casd::start()?;
        let address = front.address();
        Some(Self::behind(front, Vec::new(), &[address]))
    }

    fn behind(front: Casd, workers: Vec<Casd>, addresses: &[String]) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let guard = runtime.enter();
        let started = Dispatcher::start(0, &front.address(), addresses, Duration::ZERO);
        let (dispatcher, port) = started.expect("a port");
        drop(guard);
        Self {
            dispatcher,
            port,
            _runtime: runtime,
            _workers: workers,
            front,
        }
    }

    /// As `WARPCC_EXECUTOR` names it.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }

    /// The server that holds blobs and results.
    pub fn front(&self) -> &Casd {
        &self.front
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
