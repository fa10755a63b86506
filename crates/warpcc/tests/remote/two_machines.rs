//! Tests that a machine gets the results that another one built: whole calls or single steps, through every kind of server.

use crate::keys::{Keys, as_ci, as_reader, path};
use crate::servers::{self, Certificate};
use crate::{ONE, Project, TWO};
use warpcc_testkit::github_cache::GithubCache;
use warpcc_testkit::{buildgrid, casd};

/// The second machine runs no compiler: not for the same call, and not for a part of it.
#[track_caller]
fn two_machines(project: &mut Project, url: &str) {
    project.through("none");
    let one_arch = project.space.agree(ONE);
    project.through(url);
    project.on("first");
    let build = project.first(TWO);
    project.on("second");
    let whole = project.like(TWO, &build);
    whole.demand_no_compiler();
    assert_eq!(whole.stats.count("direct_hits"), 1, "{:?}", whole.stats);
    // Here the call is a local hit, and no server is asked.
    project.like(TWO, &build).demand_no_compiler();
    // A call for one architecture was never built, but its steps were.
    project.on("third");
    let part = project.like(ONE, &one_arch);
    assert_eq!(
        part.stats.missed("cicc") + part.stats.missed("ptxas"),
        0,
        "{:?}",
        part.stats
    );
    assert!(part.stats.hit("cicc") > 0, "{:?}", part.stats);
    let json = project.remote_counters();
    assert!(
        json["hits"].as_u64() > Some(0) && json["bytes_down"].as_u64() > Some(0),
        "{json}"
    );
    assert_eq!(json["errors"].as_u64(), Some(0), "{json}");
}

/// The same for one call, which takes less time. The first machine signs, and the second one demands signatures.
#[track_caller]
fn one_call(project: &mut Project, url: &str) {
    project.through(url);
    let keys = Keys::new(&project.space, "ci");
    as_ci(project, &keys);
    project.on("first");
    let build = project.first(ONE);
    as_reader(project, &path(&keys.public));
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
}

#[test]
fn through_nginx() {
    let mut project = Project::new("remote-nginx");
    let server = servers::nginx(&project.space.beside("nginx"), None);
    two_machines(&mut project, &server.url);
    let said = project.space.warpcc_with(&["remote", "ping"]);
    let text = said.stdout_text();
    assert!(said.code == 0 && text.contains("nginx"), "{text}");
    assert!(text.contains("(read and write)"), "{text}");
    // The third machine's own steps may still be on their way.
    project.upload();
    let said = project.space.warpcc_with(&["remote", "stat"]);
    let text = said.stdout_text();
    assert!(
        text.contains(" look-ups hit (") && text.contains("0 waiting"),
        "{text}"
    );
}

#[test]
fn through_nginx_with_tls_and_its_own_authority() {
    let mut project = Project::new("remote-tls");
    let folder = project.space.beside("nginx");
    let certificate = Certificate::new(&folder.join("tls"));
    let server = servers::nginx(&folder, Some(&certificate));
    project.through(&server.url);
    project.on("first");
    let build = project.first(ONE);
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
    // A machine that does not trust the server builds, and prints the reason.
    let (url, _) = server.url.split_once('|').expect("its authority");
    project.through(url);
    project.on("third");
    project.like(ONE, &build).demand_one_warning("certificate");
}

#[test]
fn through_redis() {
    let mut project = Project::new("remote-redis");
    let server = servers::redis(&project.space.beside("redis"));
    two_machines(&mut project, &server.url);
    let said = project.space.warpcc_with(&["config"]);
    let text = said.stdout_text();
    assert!(
        text.contains("redis://127.0.0.1") && !text.contains("open-sesame"),
        "{text}"
    );
    project.through(&server.url.replace("open-sesame", "wrong-word"));
    let said = project.space.warpcc_with(&["remote", "ping"]);
    let text = said.text();
    assert!(said.code == 1 && !text.contains("wrong-word"), "{text}");
}

#[test]
fn through_an_s3_stand_in() {
    let mut project = Project::new("remote-s3");
    let server = servers::s3(&project.space.beside("s3"));
    for (name, value) in servers::S3_VARIABLES {
        project.space.set_env(name, value);
    }
    two_machines(&mut project, &server.url);
}

#[test]
fn through_a_stand_in_of_google_cloud_storage() {
    let mut project = Project::new("remote-gcs");
    let server = servers::gcs(&project.space.beside("gcs"));
    one_call(&mut project, &server.url);
}

/// Runs a test through Azurite, where this machine has it.
fn with_azurite(name: &str, test: fn(&mut Project, &str)) {
    let mut project = Project::new(name);
    let Some(server) = servers::azblob(&project.space.beside("azblob")) else {
        casd::say("skipped: WARPCC_TEST_AZURITE does not name a folder of npm's with azurite");
        return;
    };
    test(&mut project, &server.url);
}

#[test]
fn through_azurite() {
    with_azurite("remote-azblob", |project, url| two_machines(project, url));
}

#[test]
fn through_azurite_with_signatures() {
    with_azurite("remote-azblob-signed", |project, url| {
        one_call(project, url)
    });
}

#[test]
fn through_webdav() {
    let mut project = Project::new("remote-webdav");
    let server = servers::webdav(&project.space.beside("webdav"));
    one_call(&mut project, &server.url);
}

#[test]
fn through_a_stand_in_of_githubs_cache() {
    let mut project = Project::new("remote-ghac");
    let service = GithubCache::start();
    for (name, value) in service.variables() {
        project.space.set_env(name, &value);
    }
    one_call(&mut project, "ghac://team");
    // Call and steps went up together, and nothing before the job's last step.
    let counts = service.counts();
    assert_eq!(
        ["create", "put"].map(|kind| counts[kind]),
        [1, 1],
        "{counts:?}"
    );
    let ping = project.space.warpcc_with(&["remote", "ping"]);
    let text = String::from_utf8_lossy(&ping.stdout).into_owned();
    assert!(text.contains("newest bundle 1"), "{text}");
    assert!(!text.contains("a-token"), "{text}");
}

/// What the build of a repository sees whose limit is reached: nvcc's results, exit code 0, and words about it at the end.
#[test]
fn a_limit_of_githubs_cache_fails_no_build() {
    let mut project = Project::new("remote-ghac-limit");
    let service = GithubCache::start();
    for (name, value) in service.variables() {
        project.space.set_env(name, &value);
    }
    service.set(&serde_json::json!({ "limit": 0, "retry_after": 3600 }));
    project.through("ghac");
    project.on("first");
    let build = project.space.agree(ONE);
    let said = project.space.warpcc_with(&["remote", "upload"]);
    let text = said.stdout_text();
    assert!(said.code == 1 && text.contains("429"), "{text}");
    assert!(project.remote_counters()["rate_limited"].as_u64() > Some(0));
    // The same machine goes on with its own cache.
    project.like(ONE, &build).demand_no_compiler();
}

#[test]
fn through_buildgrid() {
    // Prints a message where this machine has no BuildGrid.
    if let Some(server) = buildgrid::BuildGrid::start_cache() {
        let mut project = Project::new("remote-buildgrid");
        one_call(&mut project, &server.address());
    }
}

#[test]
fn through_casd() {
    // Prints a message where this machine has no casd.
    if let Some(server) = casd::Casd::start() {
        let mut project = Project::new("remote-casd");
        two_machines(&mut project, &server.address());
    }
}

#[test]
fn through_memcached() {
    let mut project = Project::new("remote-memcached");
    let server = servers::memcached(&project.space.beside("memcached"));
    one_call(&mut project, &server.url);
}

#[test]
fn through_a_folder() {
    let mut project = Project::new("remote-folder");
    let share = project.space.beside("share");
    two_machines(&mut project, &format!("file:{}", share.display()));
}

/// `run` works like the launcher: its whole call comes from the shared cache, and `why` explains the next miss.
#[test]
fn through_a_folder_with_run() {
    let mut project = Project::new("remote-run");
    let share = project.space.beside("share");
    project.through(&format!("file:{}", share.display()));
    project.on("first");
    let build = project.first(ONE);
    project.on("second");
    let nvcc = project.space.toolkit.nvcc.display().to_string();
    let first = ["run".to_owned(), "--".to_owned(), nvcc].to_vec();
    let run = crate::Program::Other(crate::TestSpace::warpcc(), first);
    let call = project.like_as(&run, ONE, &build);
    call.demand_no_compiler();
    assert_eq!(call.stats.count("direct_hits"), 1, "{:?}", call.stats);
}

#[test]
fn from_far_to_near_and_never_to_what_is_read_only() {
    let mut project = Project::new("remote-layers");
    let (near, far) = (project.space.beside("near"), project.space.beside("far"));
    let (near_url, far_url) = (
        format!("file:{}", near.display()),
        format!("file:{}", far.display()),
    );
    project.through(&far_url);
    project.on("first");
    let build = project.first(ONE);
    let count = |folder: &std::path::Path| walk(folder).len();
    let there = count(&far);
    assert!(there > 0);
    // Results from the far server go to the near one. Results that are built here go to no read-only server.
    let both = format!("{near_url} {far_url}|read-only");
    project.through(&both);
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
    project.upload();
    assert!(count(&near) > 0);
    project.through(&near_url);
    project.on("third");
    project.like(ONE, &build).demand_no_compiler();
    project.through(&both);
    project.space.set_env("WARPCC_REMOTE_READONLY", "1");
    let before = count(&near);
    project.first(&format!("{ONE} -DPULL_REQUEST"));
    assert_eq!((count(&near), count(&far)), (before, there));
}

#[test]
fn two_machines_that_saw_different_files_keep_both_results() {
    let mut project = Project::new("remote-merge");
    let share = project.space.beside("share");
    let url = format!("file:{}", share.display());
    project.through(&url);
    project
        .space
        .write("case.cu", &format!("#include \"own.h\"\n{}", crate::KERNEL));
    let mut builds = Vec::new();
    for machine in ["first", "second"] {
        project.space.write(
            "own.h",
            &format!("static const char *who = \"{machine}\";\n"),
        );
        project.on(machine);
        builds.push((machine, project.first(ONE)));
    }
    for (machine, build) in &builds {
        project.space.write(
            "own.h",
            &format!("static const char *who = \"{machine}\";\n"),
        );
        project.on(&format!("like-{machine}"));
        let call = project.like(ONE, build);
        call.demand_no_compiler();
        assert_eq!(call.stats.count("direct_hits"), 1, "{:?}", call.stats);
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for item in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match item.path() {
            path if path.is_dir() => found.extend(walk(&path)),
            path => found.push(path),
        }
    }
    found
}
