//! Signed results: what a trusted key has signed is taken through every kind of server, and nothing else is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use prost::Message;
use warpcc_cache::{Variant, encode_record};
use warpcc_remote::keys::Signer;
use warpcc_remote::signature::{self, SIGNED};
use warpcc_remote_client::signatures::SigningKey;
use warpcc_testkit::casd;

use crate::forger::{self, Forger};
use crate::{ONE, Program, Project, TestSpace, servers};

const TRUSTED: &str = "WARPCC_REMOTE_TRUSTED_KEYS";
const SECRET_FILE: &str = "WARPCC_REMOTE_SIGNING_KEY_FILE";
const ENOUGH: u64 = 4 << 20;
const EVIL: &[u8] = b"evil";

/// A pair of keys in files.
pub struct Keys {
    secret: PathBuf,
    pub public: PathBuf,
}

impl Keys {
    pub fn new(space: &TestSpace, name: &str) -> Self {
        let secret = space.beside(&format!("{name}.key"));
        let said = space.warpcc_with(&["remote", "keygen", &secret.to_string_lossy()]);
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let public = secret.with_extension("key.pub");
        let shown = fs::read_to_string(&public).expect("a public key");
        assert!(String::from_utf8_lossy(&said.stdout).contains(shown.trim()));
        let mode = fs::metadata(&secret).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Never over a key that is there.
        let again = space.warpcc_with(&["remote", "keygen", &secret.to_string_lossy()]);
        assert_ne!(again.code, 0);
        Self { secret, public }
    }

    fn signer(&self) -> Signer {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let origin = SigningKey::File(self.secret.clone());
        let load = Signer::load(&origin);
        runtime.expect("a runtime").block_on(load).expect("a key")
    }
}

pub fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// From now on calls are CI's, which signs.
pub fn as_ci(project: &mut Project, keys: &Keys) {
    project.space.unset_env(TRUSTED);
    project.space.set_env(SECRET_FILE, &path(&keys.secret));
}

/// From now on calls are those of somebody who checks.
pub fn as_reader(project: &mut Project, trusted: &str) {
    project.space.unset_env(SECRET_FILE);
    project.space.set_env(TRUSTED, trusted);
}

fn counted(project: &Project, name: &str) -> u64 {
    let said = project.space.warpcc_with(&["stats", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    json["remote"][name].as_u64().expect("a count")
}

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
    assert_eq!(counted(project, "uploads"), 0);
    // Of somebody without a key, though: a reader builds it anew.
    project.space.unset_env(TRUSTED);
    project.on("anybody");
    project.first(&mine);
    as_reader(project, &path(&keys.public));
    project.on("reader-2");
    let call = project.like(&mine, &my_build);
    assert_eq!(call.stats.count("direct_hits"), 0, "{:?}", call.stats);
    assert!(counted(project, "unsigned") > 0);
    let said = project.space.warpcc_with(&["stats"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(text.contains(" unsigned, 0 signed with a key"), "{text}");
}

#[test]
fn through_redis() {
    let mut project = Project::new("signed-redis");
    let server = servers::redis(&project.space.beside("redis"));
    let url = format!("redis://:open-sesame@127.0.0.1:{}/1", server.port);
    ci_and_a_reader(&mut project, &url);
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
    let url = format!("http://127.0.0.1:{}/cache", server.port);
    ci_and_a_reader(&mut project, &url);
}

#[test]
fn through_nginx_with_tls() {
    let mut project = Project::new("signed-tls");
    let folder = project.space.beside("nginx");
    let certificate = servers::Certificate::new(&folder.join("tls"));
    let server = servers::nginx(&folder, Some(&certificate));
    let ca = path(&certificate.certificate);
    let url = format!("https://127.0.0.1:{}/cache|ca={ca}", server.port);
    ci_and_a_reader(&mut project, &url);
}

#[test]
fn through_an_s3_stand_in() {
    let mut project = Project::new("signed-s3");
    let server = servers::s3(&project.space.beside("s3"));
    project.space.set_env("AWS_ACCESS_KEY_ID", "any");
    project.space.set_env("AWS_SECRET_ACCESS_KEY", "thing");
    project.space.set_env("AWS_EC2_METADATA_DISABLED", "true");
    let port = server.port;
    let url = format!("s3://bucket/team?endpoint=http://127.0.0.1:{port}&region=us-east-1");
    ci_and_a_reader(&mut project, &url);
}

/// A folder that CI has filled, and an enemy's hand in it; calls are a reader's.
struct Attack {
    forger: Forger,
    ours: Keys,
    theirs: Keys,
    /// The one record of the call.
    direct: String,
    /// It, as CI has packed it.
    packed: Vec<u8>,
}

impl Attack {
    fn new(name: &str) -> Self {
        let mut project = Project::new(name);
        let ours = Keys::new(&project.space, "ours");
        let theirs = Keys::new(&project.space, "theirs");
        project.space.set_env(SECRET_FILE, &path(&ours.secret));
        let mut forger = Forger::new(project, ONE);
        as_reader(&mut forger.project, &path(&ours.public));
        let direct = forger.only_direct();
        forger.forget("steps");
        let result = fs::read(forger.path("ac", &direct)).expect("a result");
        let packed = ActionResult::decode(&result[..])
            .expect("a result")
            .stdout_raw;
        Self {
            forger,
            ours,
            theirs,
            direct,
            packed,
        }
    }

    /// Puts a packed record under a key.
    fn put(&self, key: &str, packed: Vec<u8>) {
        let result = ActionResult {
            stdout_raw: packed,
            ..ActionResult::default()
        };
        let result = result.encode_to_vec();
        fs::write(self.forger.path("ac", key), result).expect("a result");
    }

    /// The record with another output.
    fn evil_frame(&self) -> Vec<u8> {
        let evil = self.forger.blob(EVIL);
        let change = |mut variant: Variant| {
            for output in &mut variant.outcome.outputs {
                output.digest = evil;
            }
            variant
        };
        let variants = self.forger.honest(&self.direct).into_iter().map(change);
        let variants: Vec<Variant> = variants.collect();
        let record = encode_record(&forger::key(&self.direct), &variants).expect("a record");
        zstd::bulk::compress(&record, 3).expect("packs")
    }

    fn signed_by(&self, keys: &Keys, frame: &[u8]) -> Vec<u8> {
        signature::wrap(&forger::key(&self.direct), frame, Some(&keys.signer()))
    }

    /// The reader compiles, says nothing, and counts why.
    #[track_caller]
    fn is_not_taken(&mut self, what: &str, counter: &str) {
        let call = self.forger.attack(ENOUGH);
        assert_eq!(
            (call.stderr.as_str(), call.stats.count("direct_hits")),
            ("", 0),
            "{what}"
        );
        if !counter.is_empty() {
            assert_eq!(counted(&self.forger.project, counter), 1, "{what}");
        }
    }
}

#[test]
fn nothing_but_what_a_trusted_key_has_signed_is_taken() {
    let mut attack = Attack::new("signed-attacks");
    let frame = attack.evil_frame();
    let header = SIGNED.len() + 32 + 64;
    // The attack works on those who ask for no signature.
    attack.put(
        &attack.direct,
        signature::wrap(&forger::key(&attack.direct), &frame, None),
    );
    attack.forger.project.space.unset_env(TRUSTED);
    assert_eq!(
        attack.forger.attack_for_any_object().count("direct_hits"),
        1
    );
    as_reader(&mut attack.forger.project, &path(&attack.ours.public));
    attack.is_not_taken("without a signature", "unsigned");
    attack.put(&attack.direct, attack.signed_by(&attack.theirs, &frame));
    attack.is_not_taken("with their own", "foreign");
    let honest = attack.packed.clone();
    attack.put(&attack.direct, [&honest[..header], &frame].concat());
    attack.is_not_taken("with the signature of another record", "bad_signature");
    let unsigned = [&b"WCCREM01"[..], &honest[header..]].concat();
    attack.put(&attack.direct, unsigned);
    attack.is_not_taken("without its signature", "unsigned");
    for (what, packed) in [
        ("truncated", honest[..honest.len() - 1].to_vec()),
        ("with a byte more", [&honest[..], b"x"].concat()),
        ("with another frame behind", [&honest[..], &frame].concat()),
    ] {
        attack.put(&attack.direct, packed);
        attack.is_not_taken(what, "bad_signature");
    }
    attack.put(&attack.direct, [b"WCCREM03", &honest[8..]].concat());
    attack.is_not_taken("of another version", "");
    // The same record, of another key: signed for that one.
    let elsewhere = signature::wrap(
        &forger::key(&"ab".repeat(32)),
        &honest[header..],
        Some(&attack.ours.signer()),
    );
    attack.put(&attack.direct, elsewhere);
    attack.is_not_taken("of another key", "bad_signature");
    attack.put(&attack.direct, honest);
    attack.forger.attack(ENOUGH).demand_no_compiler();
    // Until its key is revoked.
    let public = fs::read_to_string(&attack.ours.public).expect("a key");
    let list = format!("{},!{}", path(&attack.ours.public), public.trim());
    as_reader(&mut attack.forger.project, &list);
    attack.is_not_taken("with a revoked key", "foreign");
    // Without the list nobody is trusted.
    as_reader(&mut attack.forger.project, "/nowhere/keys");
    let call = attack.forger.attack(ENOUGH);
    call.demand_one_warning("/nowhere/keys");
    assert_eq!(call.stats.count("direct_hits"), 0, "{:?}", call.stats);
}

#[test]
fn a_signer_signs_nothing_of_others() {
    let mut attack = Attack::new("signed-laundering");
    // Under the same key, for the same sources.
    let frame = attack.evil_frame();
    let key = forger::key(&attack.direct);
    attack.put(&attack.direct, signature::wrap(&key, &frame, None));
    let project = &mut attack.forger.project;
    as_ci(project, &attack.ours);
    let share = project.space.beside("shared");
    project.through(&format!("file:{}", share.display()));
    project.on("ci-2");
    let build = project.first(ONE);
    as_reader(project, &path(&attack.ours.public));
    project.on("reader");
    let call = project.like(ONE, &build);
    call.demand_no_compiler();
    assert_eq!(call.stats.count("direct_hits"), 1, "{:?}", call.stats);
    let result = fs::read(attack.forger.path("ac", &attack.direct)).expect("a result");
    let packed = ActionResult::decode(&result[..])
        .expect("a result")
        .stdout_raw;
    assert!(packed.starts_with(SIGNED));
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
        let text = String::from_utf8_lossy(&said.stdout).into_owned() + &said.stderr_text();
        (said.code, text)
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
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
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
