//! Tests one job after another: requests are few, and what was made is found.

use crate::Repository;

#[test]
fn a_thousand_results_take_a_handful_of_requests() {
    let repository = Repository::new();
    let first = repository.job("first");
    assert!(!first.finds(0));
    assert_eq!(first.count("remote.errors"), 0, "{:?}", first.warnings);
    repository.build(&first, 0..1000);
    let report = first.upload();
    assert_eq!((report.uploaded, report.waiting), (1000, 0), "{report:?}");
    let counts = repository.service.counts();
    let uploads = ["create", "put", "finalize"].map(|kind| counts[kind]);
    assert_eq!(uploads, [1, 1, 1], "{counts:?}");
    // The first look-up and the uploader ask what there is.
    assert_eq!((counts["find"], counts["get"]), (2, 0), "{counts:?}");

    let second = repository.job("second");
    assert_eq!(second.found(0..1000).len(), 1000, "{:?}", second.warnings);
    assert_eq!(second.count("remote.errors"), 0);
    let counts = repository.service.counts();
    // The newest bundle, and two behind it, once for all processes.
    assert_eq!(counts["find"], 5, "{counts:?}");
    let length = std::fs::metadata(&repository.service.blobs()[0])
        .expect("a bundle")
        .len();
    // The beginning, and each part once.
    assert_eq!(counts["get"], 1 + length.div_ceil(4 << 20), "{counts:?}");
    // It has nothing new to give.
    assert_eq!(second.upload().uploaded, 0);
    assert_eq!(repository.service.counts()["create"], 1);
}

#[test]
fn one_result_needs_only_its_part_of_a_bundle() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..1000);
    first.upload();
    let length = std::fs::metadata(&repository.service.blobs()[0])
        .expect("a bundle")
        .len();
    assert!(length > 6 * (4 << 20), "{length}");
    let second = repository.job("second");
    assert!(second.finds(7));
    // The beginning, the index at the end, which may lie in two parts, and the part with record and blob.
    let counts = repository.service.counts();
    assert!(counts["get"] <= 4, "{counts:?}");
}

#[test]
fn each_job_uploads_only_what_is_new() {
    let repository = Repository::new();
    for job in 0..4 {
        let runner = repository.job(&format!("job-{job}"));
        let before = job * 10;
        assert_eq!(
            runner.found(0..before + 10).len(),
            usize::try_from(before).expect("small")
        );
        repository.build(&runner, before..before + 10);
        assert_eq!(runner.upload().uploaded, 10);
    }
    let sizes = repository.service.blobs().into_iter().map(|blob| {
        let file = std::fs::metadata(blob).expect("a bundle");
        file.len()
    });
    let sizes: Vec<u64> = sizes.collect();
    assert_eq!(sizes.len(), 4);
    assert!(sizes[3] < sizes[0] + sizes[0] / 2, "{sizes:?}");
    assert_eq!(repository.job("last").found(0..40).len(), 40);
}

#[test]
fn what_is_used_stays_and_the_rest_goes() {
    let repository = Repository::new();
    for job in 0..40 {
        let runner = repository.job(&format!("job-{job}"));
        // Each job uses the first two results, and nobody the third one.
        let known = runner.found(0..2).len();
        assert_eq!(known, if job == 0 { 0 } else { 2 }, "{job}");
        match job {
            0 => repository.build(&runner, 0..3),
            _ => repository.build(&runner, 3 * job..3 * job + 1),
        }
        assert_eq!(runner.upload().waiting, 0);
    }
    let last = repository.job("last");
    assert_eq!(last.found(0..3), [0, 1]);
    // However many bundles there are, one index has them.
    let counts = repository.service.counts();
    assert!(last.finds(3 * 39) && !last.finds(7000));
    let more = repository.service.counts()["find"] - counts["find"];
    assert!(more <= 1, "{more}");
}

#[test]
fn a_pull_request_reads_and_writes_nothing() {
    let repository = Repository::new();
    let first = repository.job("first");
    repository.build(&first, 0..3);
    first.upload();
    let pull = repository.job_with("pull", "|read-only");
    assert_eq!(pull.found(0..3).len(), 3);
    repository.build(&pull, 3..5);
    let reports = warpcc_remote::upload::drain(
        std::slice::from_ref(&pull.layer),
        &pull.store,
        std::time::Duration::from_secs(60),
        warpcc_remote::upload::UploadMode::Asked,
    );
    assert_eq!(reports.expect("a runtime"), []);
    assert_eq!(repository.service.counts()["create"], 1);
    // A job that sets nothing has a token without the right to write.
    repository
        .service
        .set(&serde_json::json!({ "read_only": true }));
    let fork = repository.job("fork");
    repository.build(&fork, 3..5);
    let report = fork.upload();
    assert_eq!((report.uploaded, report.waiting), (0, 2));
    assert!(
        report.why.as_deref().is_some_and(|why| why.contains("403")),
        "{report:?}"
    );
}

#[test]
fn an_uploader_beside_the_build_leaves_it_to_the_last_step() {
    let repository = Repository::new();
    let job = repository.job("job");
    repository.build(&job, 0..3);
    let reports = warpcc_remote::upload::drain(
        std::slice::from_ref(&job.layer),
        &job.store,
        std::time::Duration::from_secs(60),
        warpcc_remote::upload::UploadMode::Background,
    );
    assert_eq!(reports.expect("a runtime")[0].waiting, 3);
    assert_eq!(repository.service.counts()["create"], 0);
}
