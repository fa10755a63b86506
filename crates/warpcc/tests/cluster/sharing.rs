//! Tests the commands that several calls send: never more than the machine's share. A dying worker gives its command back,
//! a late command is raced here, and one that no call waits for is cancelled.

use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::dispatched::Cluster;
use super::space::{Program, TestSpace, finish};
use super::{executed, space};

const ONE: &str = "-c case.cu -o out.o -arch=sm_80";

/// A space with a budget of its own, and `slots` slots of the cluster.
fn alone(name: &str, cluster: &Cluster, slots: usize) -> TestSpace {
    let mut space = space(name, &cluster.address());
    let runtime = space.beside("runtime");
    space.set_env("WARPCC_RUNTIME_DIR", &runtime.to_string_lossy());
    space.set_env("WARPCC_EXECUTOR_JOBS", &slots.to_string());
    space.set_env("WARPCC_JOBS", "4");
    for n in 0..5 {
        let text =
            format!("__global__ void k{n}(int *x) {{ *x = {n}; }}\nint f{n}() {{ return {n}; }}\n");
        space.write(&format!("s{n}.cu"), &text);
    }
    space
}

fn line(number: usize) -> String {
    format!("-c s{number}.cu -o o{number}.o -arch=sm_80")
}

fn start(space: &TestSpace, line: &str) -> Child {
    let mut command = space.command(&Program::Launcher, &space.words(line));
    command.spawn().expect("starting warpcc")
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a living warpcc");
}

fn build(space: &TestSpace, number: usize) {
    let outcome = space.run(&Program::Launcher, &space.words(&line(number)));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
}

#[test]
fn the_slots_of_the_cluster_are_the_machines_and_come_back_from_the_dead() {
    let Some(cluster) = Cluster::of_one() else {
        return;
    };
    let space = alone("cluster-slots", &cluster, 2);
    // Each of three calls has two commands to send at once.
    thread::scope(|scope| {
        for number in 0..3 {
            let command = space.command(&Program::Launcher, &space.words(&line(number)));
            scope.spawn(move || {
                let outcome = finish(command);
                assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
            });
        }
    });
    assert!(executed(&space) > 0);
    assert_eq!(cluster.most(), 2);
    // One call has all slots, and gets no answer.
    let before = executed(&space);
    cluster.hold(Some(""));
    let mut doomed = start(&space, &line(3));
    cluster.wait_for(2);
    signal(&doomed, Signal::KILL);
    doomed.wait().expect("warpcc");
    cluster.wait_for(0);
    cluster.hold(None);
    build(&space, 4);
    assert!(executed(&space) > before, "the dead one kept its slots");
    assert_eq!(cluster.most(), 2);
}

#[test]
fn an_unanswered_step_runs_here_and_is_cancelled_there() {
    let Some(cluster) = Cluster::of_one() else {
        return;
    };
    let space = alone("cluster-straggler", &cluster, 8);
    cluster.hold(Some("tc/bin/ptxas"));
    space.agree(ONE).demand_no_fallback();
    // cudafe++, cicc, fatbinary, the host compile.
    assert_eq!(executed(&space), 4);
    cluster.wait_for(0);
    let cancelled = cluster.cancelled();
    assert!(
        matches!(&cancelled[..], [one] if one.starts_with("held/")),
        "{cancelled:?}"
    );
}

#[test]
fn an_interrupted_build_cancels_what_is_away() {
    let Some(cluster) = Cluster::of_one() else {
        return;
    };
    let space = alone("cluster-interrupted", &cluster, 8);
    cluster.hold(Some(""));
    let mut child = start(&space, ONE);
    cluster.wait_for(2);
    // Meanwhile the call learns the operations' names.
    thread::sleep(Duration::from_secs(1));
    let held = cluster.unanswered();
    assert!(!held.is_empty());
    signal(&child, Signal::INT);
    let status = child.wait().expect("warpcc");
    assert!(!status.success());
    cluster.wait_for(0);
    let cancelled = cluster.cancelled();
    assert!(
        held.iter().all(|name| cancelled.contains(name)),
        "{cancelled:?} of {held:?}"
    );
    space.demand_no_leftovers("an interrupted build");
}
