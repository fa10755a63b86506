//! Tests jobs that end at the same time, or number their bundles alike: each one's work is found.

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

#[test]
fn a_branch_and_the_main_branch_number_their_bundles_alike() {
    let repository = Repository::new();
    let push = |job: crate::Job, results: std::ops::Range<u32>| {
        assert!(!job.finds(7000));
        repository.build(&job, results);
        assert_eq!(job.upload().waiting, 0);
    };
    push(repository.job("main-1"), 0..3);
    push(repository.job_of_branch("branch-2"), 10..13);
    push(repository.job("main-2"), 20..23);
    push(repository.job("main-3"), 30..33);
    // The main branch's third index names its second bundle, which the branch's own one hides.
    let branch = repository.job_of_branch("branch-3");
    assert_eq!(branch.found(0..40), [0, 1, 2, 10, 11, 12, 30, 31, 32]);
    assert_eq!(branch.count("remote.errors"), 0, "{:?}", branch.warnings);
    push(branch, 20..23);
    let next = repository.job_of_branch("branch-4");
    assert_eq!(next.found(0..40).len(), 12);
    assert_eq!(next.count("remote.errors"), 0, "{:?}", next.warnings);
    // The main branch sees nothing of it.
    let main = repository.job("main-4");
    assert_eq!(main.found(0..40), [0, 1, 2, 20, 21, 22, 30, 31, 32]);
}
