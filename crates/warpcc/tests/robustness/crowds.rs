//! Many invocations at once on one cache.

use crate::space::{Program, TestSpace, finish};
use std::collections::BTreeMap;

const CROWD: usize = 64;
const SOURCES: usize = 4;

fn line(index: usize) -> String {
    format!(
        "-c s{}.cu -o o{index}.o -gencode arch=compute_80,code=sm_80 \
         -gencode arch=compute_90,code=sm_90",
        index % SOURCES
    )
}

/// Start all at once, wait for all, and return each object.
fn all_at_once(space: &TestSpace) -> BTreeMap<usize, Vec<u8>> {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CROWD)
            .map(|index| {
                let command = space.command(&Program::Launcher, &space.words(&line(index)));
                scope.spawn(move || finish(command))
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a thread"))
            .collect()
    });
    for (index, outcome) in outcomes.iter().enumerate() {
        assert_eq!(
            outcome.code,
            0,
            "{}: {}",
            line(index),
            outcome.stderr_text()
        );
        assert!(outcome.stderr.is_empty(), "{}", outcome.stderr_text());
    }
    (0..CROWD)
        .map(|index| (index, space.read(&format!("o{index}.o"))))
        .collect()
}

#[test]
fn sixty_four_at_once() {
    let space = TestSpace::new("crowd");
    for n in 0..SOURCES {
        space.write(
            &format!("s{n}.cu"),
            &format!(
                "__global__ void k{n}(int *x) {{ *x = {n}; }}\nint f{n}() {{ return {n}; }}\n"
            ),
        );
    }
    let want: Vec<Vec<u8>> = (0..SOURCES)
        .map(|n| {
            let outcome = space.run(&space.reference(), &space.words(&line(n)));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
            space.read(&format!("o{n}.o"))
        })
        .collect();
    for pass in ["cold", "warm"] {
        for index in 0..CROWD {
            space.remove(&format!("o{index}.o"));
        }
        let before = space.stats();
        for (index, object) in all_at_once(&space) {
            assert!(
                object == want[index % SOURCES],
                "{pass}: o{index}.o is not nvcc's"
            );
        }
        let stats = space.stats().since(&before);
        assert_eq!(stats.count("total"), CROWD as i64, "{pass}: {stats:?}");
        assert_eq!(stats.count("fallbacks"), 0, "{pass}: {stats:?}");
        assert_eq!(stats.count("failed"), 0, "{pass}: {stats:?}");
        if pass == "warm" {
            assert_eq!(stats.all_misses(), 0, "a tool ran: {stats:?}");
        }
        space.demand_no_leftovers(pass);
    }
}

#[test]
fn same_output_from_several_at_once() {
    // As two build systems in one folder would: whole files, never a mixture.
    let space = TestSpace::new("same-output");
    space.write(
        "s0.cu",
        "__global__ void k(int *x) { *x = 1; }\nint f() { return 1; }\n",
    );
    let line = line(0);
    space.agree(&line);
    let want = space.read("o0.o");
    // One of 600 calls found the file half replaced, before it was looked at again.
    for _ in 0..40 {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let command = space.command(&Program::Launcher, &space.words(&line));
                scope.spawn(move || finish(command));
            }
        });
        assert!(space.read("o0.o") == want, "a mixture");
    }
    let stats = space.stats();
    assert_eq!(stats.count("fallbacks"), 0, "{stats:?}");
    space.demand_no_leftovers("eight at once");
}
