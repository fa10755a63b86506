//! Shared caches that are marked untrusted: their results are used, and go nowhere else.

use std::fs;

use crate::{ONE, Project};

#[test]
fn results_of_an_untrusted_cache_go_nowhere_else() {
    let mut project = Project::new("untrusted");
    let (pulls, main) = (project.space.beside("pulls"), project.space.beside("main"));
    let (pulls_url, main_url) = (
        format!("file:{}", pulls.display()),
        format!("file:{}", main.display()),
    );
    project.through(&pulls_url);
    project.on("pull-request");
    let build = project.first(ONE);
    // A reader of both, who may write to both.
    let untrusted = format!("{pulls_url}|untrusted");
    project.through(&format!("{untrusted} {main_url}"));
    project.on("reader");
    project.like(ONE, &build).demand_no_compiler();
    assert!(project.space.beside("reader").join("untrusted").exists());
    project.space.agree(&format!("{ONE} -DMINE"));
    project.upload();
    assert!(!main.join("ac").exists(), "something got there");
    // But back to where it came from.
    let count = fs::read_dir(pulls.join("ac")).expect("results").count();
    let first = project.space.beside("pull-request").join("direct-v4");
    let mine = fs::read_dir(first).expect("records").count();
    assert!(count > mine, "{count} results");
    // Another folder has seen none of it.
    project.through(&main_url);
    project.on("other");
    project.first(ONE);
    assert!(main.join("ac").exists());
}
