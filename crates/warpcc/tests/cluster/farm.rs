//! A cluster whose scheduler is not ours: BuildGrid hands out the actions and holds blobs and results; workers of the tests
//! take them, each with a casd.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use bazel_remote_apis::google::longrunning::ListOperationsRequest;
use bazel_remote_apis::google::longrunning::operations_client::OperationsClient;

use crate::bot::{self, Done};
use warpcc_testkit::buildgrid::BuildGrid;
use warpcc_testkit::casd::Casd;

/// All of it ends with this value: first the bots, then what they ask.
pub struct Farm {
    runtime: tokio::runtime::Runtime,
    bots: Vec<Arc<Done>>,
    _casds: Vec<Casd>,
    grid: BuildGrid,
}

impl Farm {
    /// `workers` of one action at a time, whose machines have `properties`. None where BuildGrid or casd is not there.
    pub fn start(workers: usize, properties: &[(&str, &str)]) -> Option<Self> {
        let grid = BuildGrid::start_scheduler()?;
        let at = grid.address();
        let casds = (0..workers).map(|_| Casd::start_worker(&at));
        let casds = casds.collect::<Option<Vec<Casd>>>()?;
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let guard = runtime.enter();
        let bots = casds.iter().enumerate().map(|(number, casd)| {
            let name = format!("worker-{number}");
            bot::start(&name, &at, &casd.address(), properties)
        });
        let bots = bots.collect();
        drop(guard);
        Some(Self {
            runtime,
            bots,
            _casds: casds,
            grid,
        })
    }

    /// As `WARPCC_EXECUTOR` names it.
    pub fn address(&self) -> String {
        self.grid.address()
    }

    /// How many actions each worker brought to an end.
    pub fn taken(&self) -> Vec<u64> {
        let taken = self.bots.iter().map(|bot| {
            assert_eq!(bot.ended.get(), None);
            bot.completed.load(Ordering::Relaxed)
        });
        taken.collect()
    }

    /// From now on each worker does nothing about the next action that it is given.
    pub fn idle(&self) {
        for bot in &self.bots {
            bot.idle.store(1, Ordering::Relaxed);
        }
    }

    /// Waits until the scheduler has taken an action back from a worker, and has nothing more to do.
    pub fn wait_for_a_cancelled_one(&self) {
        let cancelled = |bot: &Arc<Done>| bot.cancelled.load(Ordering::Relaxed) > 0;
        let patience = Instant::now();
        while !self.bots.iter().any(cancelled) || self.operations("stage!=completed") > 0 {
            assert!(
                patience.elapsed() < Duration::from_secs(120),
                "nothing was cancelled"
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// How many operations the scheduler knows that are over, in whatever way.
    pub fn over(&self) -> usize {
        self.operations("stage=completed")
    }

    fn operations(&self, filter: &str) -> usize {
        let question = ListOperationsRequest {
            filter: filter.to_owned(),
            page_size: 1000,
            ..ListOperationsRequest::default()
        };
        let uri = self.address().replace("grpc://", "http://");
        let answer = self.runtime.block_on(async {
            let mut client = OperationsClient::connect(uri).await.expect("BuildGrid");
            client.list_operations(question).await
        });
        answer.expect("operations").into_inner().operations.len()
    }
}
