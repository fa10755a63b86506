//! Tests jobs that end at the same time: each one's work is found.

use std::thread;

use crate::Repository;

#[test]
fn jobs_of_a_matrix_that_end_together_lose_nothing() {
    let repository = Repository::new();
    let before = repository.job("before");
    repository.build(&before, 0..10);
    before.upload();
    let jobs: Vec<_> = (1..7)
        .map(|number| {
            let job = repository.job(&format!("matrix-{number}"));
            assert!(job.finds(0));
            repository.build(&job, number * 100..number * 100 + 10);
            job
        })
        .collect();
    thread::scope(|scope| {
        for job in &jobs {
            scope.spawn(|| assert_eq!(job.upload().waiting, 0));
        }
    });
    let after = repository.job("after");
    assert_eq!(after.found(0..10).len(), 10);
    for number in 1..7 {
        let all = number * 100..number * 100 + 10;
        assert_eq!(after.found(all).len(), 10, "of job {number}");
    }
}

#[test]
fn a_name_that_a_cancelled_job_took_is_passed_over() {
    let repository = Repository::new();
    repository
        .service
        .set(&serde_json::json!({ "blobs_fail": true }));
    let cancelled = repository.job("cancelled");
    repository.build(&cancelled, 0..3);
    assert_eq!(cancelled.upload().waiting, 3);
    repository
        .service
        .set(&serde_json::json!({ "blobs_fail": false }));
    let next = repository.job("next");
    repository.build(&next, 3..6);
    assert_eq!(next.upload().uploaded, 3);
    // What was not taken waits, and goes with the next upload.
    assert_eq!(cancelled.upload().uploaded, 3);
    assert_eq!(repository.job("last").found(0..6).len(), 6);
}
