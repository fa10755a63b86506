//! Whatever a server does wrong: the build passes with nvcc's bytes, the user is warned once, and the next call leaves the
//! server alone.

use crate::faulty::{Faulty, Mode};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

use crate::servers::{self, free_port};
use crate::space::{Build, Program};
use crate::{ONE, Project};

/// A project that the server holds already, built by another machine. Requests may take this many seconds.
fn built(name: &str, server: &Faulty, timeout: u32) -> (Project, Build) {
    let mut project = Project::new(name);
    let url = format!("http://127.0.0.1:{}|timeout={timeout}", server.port);
    project.through(&url);
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
    let (mut project, build) = built("remote-slow", &server, 2);
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
    let (mut project, build) = built("remote-broken", &server, 60);
    for (mode, about) in [
        (Mode::Status("500 Internal Server Error"), "500"),
        (Mode::Status("401 Unauthorized"), "refused the request: 401"),
        (Mode::Status("302 Found"), "302"),
        (Mode::Garbage, "not an ActionResult"),
        (Mode::Dies, "cannot reach"),
    ] {
        survives(&mut project, &build, &server, mode, about);
    }
}

#[test]
fn servers_with_wrong_bytes() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-wrong", &server, 60);
    for (mode, about) in [
        (Mode::WrongBytes, "do not match the digest"),
        (Mode::Exchanged, "do not match the digest"),
        (Mode::CutShort, "cannot reach"),
        (Mode::WrongKey, "a record of another key"),
    ] {
        survives(&mut project, &build, &server, mode, about);
    }
    project.on("WrongBytes");
    let json = project.space.json(&["stats", "--json"]);
    assert_eq!(json["remote"]["wrong_bytes"].as_u64(), Some(1), "{json}");
}

#[test]
fn nginx_killed_in_mid_build() {
    let mut project = Project::new("remote-killed");
    let folder = project.space.beside("nginx");
    let server = servers::nginx(&folder, None);
    let url = format!("http://127.0.0.1:{}|timeout=5", server.port);
    project.through(&url);
    project.on("first");
    let build = project.first(ONE);
    project.on("second");
    // Another call, so that it asks for step after step.
    let line = format!("{ONE} -Xptxas -O2");
    let other = {
        project.through("none");
        project.on("nobody");
        let other = project.space.agree(&line);
        other.outputs.delete_from(&project.space.work());
        project.through(&url);
        project.on("second");
        other
    };
    let mut command = project
        .space
        .command(&Program::Launcher, &project.space.words(&line));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("warpcc");
    thread::sleep(Duration::from_millis(400));
    drop(server);
    let ended = child.wait_with_output().expect("its end");
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    // Whatever it had got by then: what it made is right, and so is everything it kept.
    project.like(&line, &other);
    project.like(ONE, &build);
}

/// The uploader that a call with this cache has left behind.
fn uploader_of(cache: &Path) -> Option<Pid> {
    let folder = format!("WARPCC_DIR={}\0", cache.display());
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes.into_iter().find_map(|process| {
        let number = process.file_name().to_str()?.parse().ok()?;
        let words = fs::read(process.path().join("cmdline")).ok()?;
        let environment = fs::read(process.path().join("environ")).ok()?;
        let ours = String::from_utf8_lossy(&environment).contains(&folder);
        (ours && words.ends_with(b"\0upload\0--background\0")).then(|| Pid::from_raw(number))?
    })
}

#[test]
fn uploads_outlive_the_call_and_a_killed_uploader() {
    let server = Faulty::start();
    let mut project = Project::new("remote-outlive");
    let url = format!("http://127.0.0.1:{}", server.port);
    project.through(&url);
    project.on("first");
    // Nobody runs `remote upload` here: the uploader that the call has left behind does it.
    let build = project.space.agree(ONE);
    let waiting = || {
        let json = project.space.json(&["remote", "stat", "--json"]);
        json[0]["waiting"].as_u64()
    };
    for _ in 0..600 {
        if waiting() == Some(0) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(waiting(), Some(0));
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
    // One that is killed while a server keeps it waiting loses nothing.
    server.set(Mode::BlackHole);
    project.on("third");
    project.through("none");
    let line = format!("{ONE} -DTHIRD");
    let third = project.space.agree(&line);
    project.through(&format!("{url}|timeout=60"));
    // It asks nobody, and leaves an uploader behind, which waits for the server.
    project.space.set_env("WARPCC_RECACHE", "1");
    project.like(&line, &third);
    project.space.unset_env("WARPCC_RECACHE");
    while server.requests() == 0 {
        thread::sleep(Duration::from_millis(20));
    }
    let uploader = uploader_of(&project.space.beside("third")).expect("an uploader");
    rustix::process::kill_process(uploader, rustix::process::Signal::KILL).expect("killed");
    server.set(Mode::Good);
    project.through(&url);
    project.upload();
    project.on("fourth");
    project.like(&line, &third).demand_no_compiler();
}

#[test]
fn a_token_comes_from_its_file_and_is_never_shown() {
    let server = Faulty::start();
    let mut project = Project::new("remote-token");
    let token = project.space.beside("token");
    fs::write(&token, "swordfish-42\n").expect("the token");
    let url = format!(
        "http://127.0.0.1:{}|token-file={}",
        server.port,
        token.display()
    );
    project.through(&url);
    server.demand_header("authorization: bearer swordfish-42");
    project.on("first");
    let build = project.first(ONE);
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
    // Expired: 401, a miss, and no word of the token.
    fs::write(&token, "swordfish-41\n").expect("the token");
    project.on("third");
    let call = project.like(ONE, &build);
    call.demand_one_warning("401");
    for args in [&["config"][..], &["remote", "ping"], &["remote", "stat"]] {
        let said = project.space.warpcc_with(args);
        let text = said.text();
        assert!(
            !text.contains("swordfish") && !call.stderr.contains("swordfish"),
            "{text}"
        );
    }
}

#[test]
fn user_and_password_go_into_a_header() {
    let server = Faulty::start();
    let mut project = Project::new("remote-basic");
    let url = format!("http://u:hunter2@127.0.0.1:{}", server.port);
    project.through(&url);
    // `u:hunter2` in base64; the server looks at lower case.
    server.demand_header("authorization: basic dtpodw50zxiy");
    let said = project.space.warpcc_with(&["remote", "ping"]);
    let text = said.stdout_text();
    assert!(said.code == 0 && !text.contains("hunter2"), "{text}");
    let wrong = url.replace("hunter2", "hunter3");
    project.through(&wrong);
    let said = project.space.warpcc_with(&["remote", "ping"]);
    let text = said.stdout_text();
    assert!(
        said.code == 1 && text.contains("401") && !text.contains("hunter3"),
        "{text}"
    );
}

#[test]
fn ping_and_doctor_try_a_write() {
    let server = Faulty::start();
    let mut project = Project::new("remote-ping-write");
    let url = format!("http://127.0.0.1:{}", server.port);
    project.through(&url);
    let said = |project: &Project, args: &[&str]| {
        let said = project.space.warpcc_with(args);
        (said.code, said.stdout_text())
    };
    let ping = ["remote", "ping"];
    let (code, text) = said(&project, &ping);
    assert!(code == 0 && text.contains("(read and write)"), "{text}");
    assert_eq!(server.count(), 0, "what was tried is removed");
    assert!(server.requests() > 4);
    // As nginx without dav_methods.
    server.set(Mode::Full("405 Method Not Allowed"));
    let (code, text) = said(&project, &ping);
    assert!(
        code == 1 && text.contains("(read only)") && text.contains("405"),
        "{text}"
    );
    let (_, json) = said(&project, &["remote", "ping", "--json"]);
    assert!(json.contains("\"writes\":false"), "{json}");
    let (code, text) = said(&project, &["doctor"]);
    assert!(
        code > 0 && text.contains("cannot be written") && text.contains("405"),
        "{text}"
    );
    // A cache that says so is not tried.
    project.through(&format!("{url}|read-only"));
    let (code, text) = said(&project, &ping);
    assert!(
        code == 0 && text.contains("(read only)") && !text.contains("405"),
        "{text}"
    );
    // One that says nothing is given up.
    server.set(Mode::BlackHole);
    let began = std::time::Instant::now();
    let (_, text) = said(&project, &["doctor"]);
    assert!(text.contains("cannot be used"), "{text}");
    assert!(began.elapsed().as_secs() < 120, "doctor has a deadline");
    project.through("s3://bucket/path");
    let (code, text) = said(&project, &ping);
    assert!(code == 1 && text.contains("?region=REGION"), "{text}");
}

#[test]
fn no_server_at_all() {
    let mut project = Project::new("remote-nobody");
    project.through("none");
    let build = project.space.agree(ONE);
    project.on("second");
    let url = format!("http://127.0.0.1:{}", free_port());
    project.through(&url);
    project.like(ONE, &build).demand_one_warning("cannot reach");
    // Remembered: the next call says nothing more.
    let other = project.space.agree(&format!("{ONE} -DOTHER"));
    assert_eq!(other.stats.count("built"), 1);
}

#[test]
fn a_server_that_lost_everything_or_half_of_it() {
    let server = Faulty::start();
    let (mut project, build) = built("remote-empty", &server, 60);
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
    let (mut project, build) = built("remote-full", &server, 60);
    server.set(Mode::Full("507 Insufficient Storage"));
    project.on("second");
    project.like(ONE, &build).demand_no_compiler();
    let line = format!("{ONE} -DOTHER");
    let other = project.space.agree(&line);
    let said = project.space.warpcc_with(&["remote", "upload"]);
    let text = said.stdout_text();
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
