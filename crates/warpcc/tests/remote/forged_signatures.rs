//! Records that an attacker has changed, signed or moved: a reader takes only what a trusted key has signed, as it was signed.

use std::fs;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use prost::Message;
use warpcc_cache::{Variant, encode_record};
use warpcc_remote::signature::{self, SIGNED};

use crate::forger::{self, Forger};
use crate::keys::{Keys, SECRET_FILE, TRUSTED, as_ci, as_reader, path};
use crate::{ONE, Project};

const ENOUGH: u64 = 4 << 20;

const EVIL: &[u8] = b"evil";

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
            assert_eq!(self.forger.project.remote_count(counter), 1, "{what}");
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
