//! Whatever a server does wrong: the build passes with nvcc's bytes, the user is warned once, and the next call leaves the
//! server alone.

use crate::faulty::{Faulty, Mode};
use crate::servers::free_port;
use crate::space::Build;
use crate::{ONE, Project};

/// A project that the server holds already, built by another machine.
fn built(name: &str, server: &Faulty) -> (Project, Build) {
    let mut project = Project::new(name);
    let url = format!(
        "http://127.0.0.1:{}|timeout=2|connect-timeout=1",
        server.port
    );
    project.space.set_env("WARPCC_REMOTE", &url);
    project.on("first");
    let build = project.first(ONE);
    (project, build)
}

/// The build with a server in `mode` is right, warns about `about`, and the next leaves the server alone.
#[track_caller]
fn survives(project: &mut Project, build: &Build, server: &Faulty, mode: Mode, about: &str) {
    project.on(&format!("{mode:?}").replace(|c: char| !c.is_alphanumeric(), "-"));
    server.set(mode);
    project.like(ONE, build).demand_one_warning(about);
    assert!(server.requests() > 0, "{mode:?}: it was never asked");
    server.set(mode);
    let other = project.space.agree(&format!("{ONE} -DOTHER"));
    assert_eq!(other.stats.count("built"), 1, "{:?}", other.stats);
    assert_eq!(server.requests(), 0, "{mode:?}: it was asked again");
}

#[test]
fn silent_and_slow_servers() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-slow", &server);
    survives(
        &mut project,
        &build,
        &server,
        Mode::BlackHole,
        "did not answer within 2 s",
    );
    survives(
        &mut project,
        &build,
        &server,
        Mode::Trickle,
        "did not answer within 2 s",
    );
}

#[test]
fn servers_that_refuse_or_break() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-broken", &server);
    for (mode, about) in [
        (Mode::Status("500 Internal Server Error"), "500"),
        (Mode::Status("401 Unauthorized"), "refuses: 401"),
        (Mode::Status("302 Found"), "302"),
        (Mode::Garbage, "no ActionResult"),
        (Mode::Dies, "cannot reach"),
    ] {
        survives(&mut project, &build, &server, mode, about);
    }
}

#[test]
fn servers_with_wrong_bytes() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-wrong", &server);
    for (mode, about) in [
        (Mode::WrongBytes, "other bytes than those of"),
        (Mode::Exchanged, "other bytes than those of"),
        (Mode::CutShort, "cannot reach"),
        (Mode::WrongKey, "a record of another key"),
    ] {
        survives(&mut project, &build, &server, mode, about);
    }
    project.on("WrongBytes");
    let said = project.space.warpcc_with(&["stats", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!(json["remote"]["wrong_bytes"].as_u64(), Some(1), "{json}");
}

#[test]
fn no_server_at_all() {
    let mut project = Project::new("remote-nobody");
    project.space.set_env("WARPCC_REMOTE", "none");
    let build = project.space.agree(ONE);
    project.on("second");
    let url = format!("http://127.0.0.1:{}", free_port());
    project.space.set_env("WARPCC_REMOTE", &url);
    project.like(ONE, &build).demand_one_warning("cannot reach");
    // Remembered: the next call says nothing more.
    let other = project.space.agree(&format!("{ONE} -DOTHER"));
    assert_eq!(other.stats.count("built"), 1);
}

#[test]
fn a_server_that_lost_everything_or_half_of_it() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-empty", &server);
    for lost in ["/cas/", "/"] {
        server.forget(lost);
        project.on(if lost == "/" { "all" } else { "blobs" });
        let call = project.like(ONE, &build);
        assert_eq!((call.stats.count("built"), call.stderr.as_str()), (1, ""));
        // And it is given everything again.
        project.upload();
        project.on(if lost == "/" {
            "all-again"
        } else {
            "blobs-again"
        });
        project.like(ONE, &build).demand_no_compiler();
    }
}

#[test]
fn a_full_server_gives_but_takes_nothing() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-full", &server);
    server.set(Mode::Full("507 Insufficient Storage"));
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
    let line = format!("{ONE} -DOTHER");
    let other = project.space.agree(&line);
    let said = project.space.warpcc_with(&["remote", "upload"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.code == 1 && text.contains("507") && text.contains("still waiting"),
        "{text}"
    );
    // Nothing is lost: when there is room again, it goes.
    server.set(Mode::Good);
    project.upload();
    project.on("third");
    project.like(&line, &other).demand_no_compiler();
}
