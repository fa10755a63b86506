//! Signed results: what a trusted key has signed is taken through every kind of server, and nothing else is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use warpcc_testkit::casd;

use crate::keys::{Keys, SECRET_FILE, TRUSTED, as_ci, as_reader, path};
use crate::{ONE, Program, Project, servers};

/// What CI signs a reader takes, and gives nothing back; what somebody else gives nobody takes who checks.
#[track_caller]
fn ci_and_a_reader(project: &mut Project, url: &str) {
    project.through(url);
    let keys = Keys::new(&project.space, "ci");
    as_ci(project, &keys);
    project.on("ci");
    let build = project.first(ONE);
    // Its own results, on another machine.
    project.on("ci-2");
    project.like(ONE, &build).demand_no_compiler();
    as_reader(project, &path(&keys.public));
    project.on("reader");
    let call = project.like(ONE, &build);
    call.demand_no_compiler();
    assert_eq!(call.stats.count("direct_hits"), 1, "{:?}", call.stats);
    let mine = format!("{ONE} -DMINE");
    let my_build = project.space.agree(&mine);
    project.upload();
    assert_eq!(project.remote_count("uploads"), 0);
    // Of somebody without a key, though: a reader builds it anew.
    project.space.unset_env(TRUSTED);
    project.on("anybody");
    project.first(&mine);
    as_reader(project, &path(&keys.public));
    project.on("reader-2");
    let call = project.like(&mine, &my_build);
    assert_eq!(call.stats.count("direct_hits"), 0, "{:?}", call.stats);
    assert!(project.remote_count("unsigned") > 0);
    let said = project.space.warpcc_with(&["stats"]);
    let text = said.stdout_text();
    assert!(
        text.contains(" unsigned, 0 signed with an untrusted key"),
        "{text}"
    );
}

#[test]
fn through_redis() {
    let mut project = Project::new("signed-redis");
    let server = servers::redis(&project.space.beside("redis"));
    ci_and_a_reader(&mut project, &server.url);
}

#[test]
fn through_casd() {
    // Says so where this machine has none.
    if let Some(server) = casd::Casd::start() {
        let mut project = Project::new("signed-casd");
        ci_and_a_reader(&mut project, &server.address());
    }
}

#[test]
fn through_nginx() {
    let mut project = Project::new("signed-nginx");
    let server = servers::nginx(&project.space.beside("nginx"), None);
    ci_and_a_reader(&mut project, &server.url);
}

#[test]
fn through_nginx_with_tls() {
    let mut project = Project::new("signed-tls");
    let folder = project.space.beside("nginx");
    let certificate = servers::Certificate::new(&folder.join("tls"));
    let server = servers::nginx(&folder, Some(&certificate));
    ci_and_a_reader(&mut project, &server.url);
}

#[test]
fn through_an_s3_stand_in() {
    let mut project = Project::new("signed-s3");
    let server = servers::s3(&project.space.beside("s3"));
    for (name, value) in servers::S3_VARIABLES {
        project.space.set_env(name, value);
    }
    ci_and_a_reader(&mut project, &server.url);
}

#[test]
fn who_cannot_sign_replaces_no_signed_result() {
    let mut project = Project::new("signed-merge");
    let share = project.space.beside("share");
    project.through(&format!("file:{}", share.display()));
    let keys = Keys::new(&project.space, "ci");
    let source = format!("#include \"own.h\"\n{}", crate::KERNEL);
    project.space.write("case.cu", &source);
    let who = |project: &Project, name: &str| {
        let text = format!("static const char *who = \"{name}\";\n");
        project.space.write("own.h", &text);
    };
    let results = |share: &Path| -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
        let all = fs::read_dir(share.join("ac")).expect("results");
        let paths = all.map(|found| found.expect("a result").path());
        paths
            .map(|path| (path.clone(), fs::read(&path).expect("a result")))
            .collect()
    };
    as_ci(&mut project, &keys);
    who(&project, "ci");
    project.on("ci");
    let build = project.first(ONE);
    let signed = results(&share);
    // The same call, which saw another header: another variant under the same key.
    project.space.unset_env(SECRET_FILE);
    who(&project, "other");
    project.on("anybody");
    project.first(ONE);
    let after = results(&share);
    assert!(after.len() > signed.len(), "nothing was uploaded");
    for (path, bytes) in &signed {
        assert_eq!(after.get(path), Some(bytes), "{}", path.display());
    }
    as_reader(&mut project, &path(&keys.public));
    who(&project, "ci");
    project.on("reader");
    let call = project.like(ONE, &build);
    call.demand_no_compiler();
    assert_eq!(call.stats.count("direct_hits"), 1, "{:?}", call.stats);
}

#[test]
fn without_its_key_ci_uploads_nothing_and_says_why() {
    let mut project = Project::new("signed-keys");
    let share = project.space.beside("share");
    project.through(&format!("file:{}", share.display()));
    let keys = Keys::new(&project.space, "ci");
    project.space.set_env(SECRET_FILE, "/nowhere/ci.key");
    project.on("ci");
    project.space.agree(ONE);
    let upload = |project: &Project| {
        let said = project.space.warpcc_with(&["remote", "upload"]);
        (said.code, said.text())
    };
    let (code, text) = upload(&project);
    assert!(code == 1 && text.contains("/nowhere/ci.key"), "{text}");
    assert!(!share.join("ac").exists());
    // The next call that asks says it, once.
    let space = &project.space;
    let told = ["-DNEXT", "-DAFTER"].map(|word| {
        let words = space.words(&format!("{ONE} {word}"));
        space.run(&Program::Launcher, &words).stderr_text()
    });
    assert!(
        told[0].contains("uploads to the shared cache are paused")
            && told[0].contains("/nowhere/ci.key")
            && told[1].is_empty(),
        "{told:?}"
    );
    // The public one in its place; one that others can read, which works.
    project.space.set_env(SECRET_FILE, &path(&keys.public));
    let (code, text) = upload(&project);
    assert!(code == 1 && text.contains("has a public key"), "{text}");
    project.space.set_env(SECRET_FILE, &path(&keys.secret));
    fs::set_permissions(&keys.secret, fs::Permissions::from_mode(0o644)).expect("chmod");
    let (code, text) = upload(&project);
    assert!(
        code == 0 && text.contains("can be read by others"),
        "{text}"
    );
    assert!(share.join("ac").exists());
    for command in [&["remote", "ping"][..], &["doctor"]] {
        let said = project.space.warpcc_with(command);
        let text = said.stdout_text();
        assert!(text.contains("can be read by others"), "{text}");
    }
    // From a variable, and from a command.
    project.space.unset_env(SECRET_FILE);
    let secret = fs::read_to_string(&keys.secret).expect("a key");
    project
        .space
        .set_env("WARPCC_REMOTE_SIGNING_KEY", secret.trim());
    let said = project.space.warpcc_with(&["config"]);
    assert!(!String::from_utf8_lossy(&said.stdout).contains(secret.trim()));
    project.on("variable");
    project.first(&format!("{ONE} -DVARIABLE"));
    project.space.unset_env("WARPCC_REMOTE_SIGNING_KEY");
    let command = format!("cat {}", keys.secret.display());
    project
        .space
        .set_env("WARPCC_REMOTE_SIGNING_KEY_COMMAND", &command);
    project.on("command");
    project.first(&format!("{ONE} -DCOMMAND"));
    project.space.unset_env("WARPCC_REMOTE_SIGNING_KEY_COMMAND");
    as_reader(&mut project, &path(&keys.public));
    for what in ["VARIABLE", "COMMAND"] {
        project.on(&format!("reader-{what}"));
        let line = format!("{ONE} -D{what}");
        project.space.set_env("WARPCC_REMOTE", "none");
        let build = project.space.agree(&line);
        project.through(&format!("file:{}", share.display()));
        project.on(&format!("reader-of-{what}"));
        project.like(&line, &build).demand_no_compiler();
    }
}
