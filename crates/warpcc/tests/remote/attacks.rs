//! Tests a shared cache that an attacker can write to: whatever its contents, the build has nvcc's object, and no other file is
//! touched.

mod limits;

use std::fs;

use warpcc_cache::{Digest, ProducedFile, Variant, encode_record};

use crate::forger::{self, Forger};
use crate::{ONE, Project};

/// The memory limit of a call, in KiB. cicc needs the most, about this much.
const ENOUGH: u64 = 4 << 20;

fn output(role: &str, digest: Digest) -> ProducedFile {
    ProducedFile {
        role: role.to_owned(),
        digest,
        executable: false,
    }
}

/// The file that every attack would like to see.
const EVIL: &[u8] = b"#!/bin/sh\nevil\n";

#[test]
fn a_record_cannot_choose_a_file() {
    let mut project = Project::new("attack-names");
    let elsewhere = project.space.beside("elsewhere");
    for folder in [
        &elsewhere,
        &project.space.work().join(".git/hooks"),
        &project.space.work().join("inc"),
    ] {
        fs::create_dir_all(folder).expect("a folder");
    }
    project.space.link("through", &elsewhere.to_string_lossy());
    project.space.set_env("WARPCC_REMOTE_READONLY", "1");
    let line = format!("{ONE} -isystem inc -I{{work}}/inc");
    let absolute = elsewhere.join("absolute").display().to_string();
    project.space.unset_env("WARPCC_REMOTE_READONLY");
    let mut forger = Forger::new(project, &line);
    let evil = forger.blob(EVIL);
    let names = [
        "build.ninja",
        "case.cu",
        "out.o",
        "out.d",
        "./out.o",
        ".git/hooks/pre-commit",
        "through/file",
        "inc/stdio.h",
        "../elsewhere/above",
        "through/../../elsewhere/above",
        &absolute,
        "a\0b",
        "",
        ".",
        "/dev/shm/attack-names",
        "/warpcc-base/1/x",
    ];
    // Names with different effects one at a time, the rest at once: each one is refused.
    let (alone, together) = names.split_at(8);
    let forge = |forger: &Forger, names: &[&str]| {
        forger.forge("direct", |variant| {
            for name in names {
                let mut hook = output(&format!("at {name}"), evil);
                hook.executable = true;
                variant.outcome.outputs.push(hook);
            }
        });
    };
    for name in alone {
        forge(&forger, &[name]);
        forger.attack(ENOUGH);
        forger.demand_refusal(name);
    }
    forge(&forger, together);
    forger.attack(ENOUGH);
    forger.demand_refusal(&together.join(", "));
    let left = fs::read_dir(&elsewhere).expect("the folder").count();
    assert_eq!(left, 0, "something was written elsewhere");
    assert!(!std::path::Path::new("/dev/shm/attack-names").exists());
}

#[test]
fn a_record_has_each_output_once_and_under_its_own_role() {
    let mut forger = Forger::new(Project::new("attack-roles"), ONE);
    let evil = forger.blob(EVIL);
    type Change = Box<dyn Fn(&mut Variant)>;
    let changes: Vec<(&str, Change)> = vec![
        ("no output", Box::new(|v| v.outcome.outputs.clear())),
        (
            "its path in place of its role",
            Box::new(|v| v.outcome.outputs[0].role = "at out.o".to_owned()),
        ),
        (
            "a rule for an object",
            Box::new(|v| v.outcome.outputs[0].role = "lists -o".to_owned()),
        ),
        (
            "twice `lists`",
            Box::new(|v| v.outcome.outputs[0].role = "lists lists -o".to_owned()),
        ),
        (
            "executable",
            Box::new(|v| v.outcome.outputs[0].executable = true),
        ),
        (
            "twice",
            Box::new(move |v| {
                let again = ProducedFile {
                    digest: evil,
                    ..v.outcome.outputs[0].clone()
                };
                v.outcome.outputs.push(again);
            }),
        ),
        (
            "a rule that nobody asked for",
            Box::new(move |v| v.outcome.outputs.push(output("-MF", evil))),
        ),
        (
            "thousands",
            Box::new(move |v| {
                v.outcome.outputs = (0..50_000)
                    .map(|n| output(&format!("at {n}"), evil))
                    .collect();
            }),
        ),
    ];
    for (what, change) in changes {
        forger.forge("direct", change);
        forger.attack(ENOUGH);
        forger.demand_refusal(what);
    }
}

#[test]
fn a_step_has_its_files_and_no_other() {
    let mut forger = Forger::new(Project::new("attack-steps"), ONE);
    forger.forget("direct");
    let evil = forger.blob(EVIL);
    for role in [
        "99",
        "+0",
        "00",
        "-1",
        "0 ",
        " 0",
        "at build.ninja",
        "-o",
        "18446744073709551616",
    ] {
        forger.forge("steps", |variant| {
            variant.outcome.outputs.push(output(role, evil))
        });
        forger.attack(ENOUGH);
        assert!(forger.refused() > 0, "{role:?} was not refused");
    }
    for (place, role) in [(0, "0"), (0, "+0")] {
        // The first file again, with other content; and under an odd name.
        forger.forge("steps", |variant| {
            let outputs = &mut variant.outcome.outputs;
            outputs.push(output("0", evil));
            outputs[place].role = role.to_owned();
        });
        forger.attack(ENOUGH);
        assert!(forger.refused() > 0);
    }
    forger.forge("steps", |variant| variant.outcome.outputs.clear());
    forger.attack(ENOUGH);
    assert!(forger.refused() > 0);
    forger.forge("steps", |variant| {
        for output in &mut variant.outcome.outputs {
            output.executable = true;
        }
    });
    forger.attack(ENOUGH);
    assert!(forger.refused() > 0);
}

#[test]
fn text_cannot_speak_to_a_terminal() {
    let mut forger = Forger::new(Project::new("attack-text"), ONE);
    let said = b"\x1b[01;35mwarning\x1b[0m \x1b]0;title\x07\x1b[2J\x9b\r\xe2\x80\xae \x1b]8;;http://a\x1b\\w\x1b]8;;\x1b\\\n";
    let shown = b"\x1b[01;35mwarning\x1b[0m \\x1b]0;title\\x07\\x1b[2J\\x9b\\x0d\\xe2\\x80\\xae \x1b]8;;http://a\x1b\\w\x1b]8;;\x1b\\\n";
    let shown = String::from_utf8_lossy(shown).into_owned();
    forger.forge("direct", |variant| variant.outcome.stderr = said.to_vec());
    let call = forger.attack(ENOUGH);
    assert_eq!(
        (call.stderr, call.stats.count("direct_hits")),
        (shown.clone(), 1)
    );
    // A local hit has the same messages.
    let again = forger.project.like(ONE, &forger.build);
    assert_eq!(again.stderr, shown);
    forger.forget("direct");
    forger.forge("steps", |variant| variant.outcome.stderr = said.to_vec());
    let call = forger.attack(ENOUGH);
    assert!(call.stderr.contains(&shown), "{}", call.stderr);
    assert!(!call.stderr.contains("\x1b[2J"), "{}", call.stderr);
}

#[test]
fn rubbish_does_not_fail_a_build() {
    let mut forger = Forger::new(Project::new("attack-rubbish"), ONE);
    forger.forget("direct");
    let rubbish = forger.blob(b"this is neither C++ nor PTX {\n");
    let mut fallbacks = 0;
    for name in forger.keys("steps") {
        let mut forged = forger.honest(&name);
        for output in forged.iter_mut().flat_map(|v| &mut v.outcome.outputs) {
            output.digest = rubbish;
        }
        let record = encode_record(&forger::key(&name), &forged).expect("a record");
        let honest = fs::read(forger.path("ac", &name)).expect("a result");
        forger.put(&name, &record);
        fallbacks += forger.attack_for_any_object().count("fallbacks");
        fs::write(forger.path("ac", &name), honest).expect("the result");
    }
    assert!(fallbacks > 0, "no step failed, so nothing was tested");
}
