//! Tests a cluster of several workers behind another project's scheduler.

use std::thread;

use crate::farm::Farm;
use crate::space::{Exactness, Program, Snapshot, TestSpace, differences, finish};
use crate::{executed, remote, space};

const FILES: [&str; 4] = ["sine", "power", "root", "main"];

/// A project of four files with a header. One of the files has `main`.
fn write_project(space: &TestSpace) {
    space.write(
        "step.cuh",
        "#pragma once\n#include <cstdio>\n\
         template <int N> __device__ float step(float x) { return x * N + step<N - 1>(x); }\n\
         template <> __device__ inline float step<0>(float x) { return x; }\n",
    );
    for (number, (name, call)) in [("sine", "sinf"), ("power", "exp2f"), ("root", "cbrtf")]
        .into_iter()
        .enumerate()
    {
        space.write(
            &format!("{name}.cu"),
            &format!(
                "#include \"step.cuh\"\n__global__ void {name}_kernel(float *x) {{\n\
                 x[threadIdx.x] = {call}(step<{}>(x[threadIdx.x]));\n}}\n\
                 void {name}(float *x) {{ {name}_kernel<<<1, 32>>>(x); }}\n",
                number + 2
            ),
        );
    }
    space.write(
        "main.cu",
        "#include \"step.cuh\"\nvoid sine(float *), power(float *), root(float *);\n\
         __global__ void fill(float *x) { x[threadIdx.x] = threadIdx.x; }\n\
         int main() { float *x; cudaMalloc(&x, 128); fill<<<1, 32>>>(x); sine(x); power(x); root(x);\n\
         printf(\"%d\\n\", (int)cudaDeviceSynchronize()); }\n",
    );
}

fn line_of(file: &str) -> String {
    format!("-std=c++17 -O3 -c {file}.cu -o {file}.o -arch=sm_80")
}

/// A project in a space whose steps all leave for a cluster, and nvcc's objects of it.
struct Project {
    space: TestSpace,
    sources: Snapshot,
    wanted: Snapshot,
}

impl Project {
    fn new(name: &str, address: &str) -> Self {
        let space = space(name, address);
        space.remove("case.cu");
        write_project(&space);
        let sources = Snapshot::take(&space.work());
        // nvcc compiles one file at a time: files of --keep have the names of the sources, and are all in one folder.
        for file in FILES {
            let reference = space.run(&space.reference(), &space.words(&line_of(file)));
            assert_eq!(reference.code, 0, "{file}: {}", reference.stderr_text());
        }
        let wanted = Snapshot::take(&space.work()).since(&sources);
        assert_eq!(wanted.entries.len(), FILES.len());
        wanted.delete_from(&space.work());
        Self {
            space,
            sources,
            wanted,
        }
    }

    /// Builds all files at once, as ninja does, on a machine with an empty cache, and compares with nvcc's objects. Gives
    /// the messages.
    #[track_caller]
    fn build(&self) -> String {
        self.space.clear_cache();
        let said = thread::scope(|scope| {
            let calls = FILES.map(|file| {
                let words = self.space.words(&line_of(file));
                let command = self.space.command(&Program::Launcher, &words);
                scope.spawn(move || {
                    let built = finish(command);
                    assert_eq!(built.code, 0, "{file}: {}", built.stderr_text());
                    built.stderr_text()
                })
            });
            calls.map(|call| call.join().expect("a call")).concat()
        });
        let outputs = Snapshot::take(&self.space.work()).since(&self.sources);
        let scratch = self.space.beside("compare");
        let found = differences(&self.wanted, &outputs, Exactness::Bytes, &scratch);
        assert!(found.is_empty(), "{}", found.join("\n"));
        outputs.delete_from(&self.space.work());
        said
    }
}

#[test]
fn every_step_of_a_project_runs_on_one_of_two_workers() {
    let Some(farm) = Farm::start(2, &[("OSFamily", "linux")]) else {
        return;
    };
    let mut project = Project::new("cluster-workers", &farm.address());
    project
        .space
        .set_env("WARPCC_EXECUTOR_PROPERTIES", "OSFamily=linux");
    assert_eq!(project.build(), "");
    let taken = farm.taken();
    assert!(taken.iter().all(|&some| some > 0), "{taken:?}");
    // cudafe++, cicc, ptxas, fatbinary and host compile of each file: the scheduler got all of these.
    let steps = 5 * FILES.len();
    assert!(farm.over() >= steps, "{}", farm.over());
    // On a slow machine a late command is also started here, and may end first.
    assert!(executed(&project.space) > 0);
    assert_eq!(remote(&project.space, "errors"), 0);

    // A second machine: BuildGrid knows the workers' results, and no action runs twice.
    assert_eq!(project.build(), "");
    let taken = farm.taken();
    assert!(taken.iter().sum::<u64>() <= steps as u64, "{taken:?}");

    // A command that a worker accepts but does not work on runs here, and is cancelled there.
    project
        .space
        .write("late.cu", "__global__ void late(int *x) { *x = 7; }\n");
    farm.idle();
    project
        .space
        .agree("-c late.cu -o late.o -arch=sm_80")
        .demand_no_fallback();
    farm.wait_for_a_cancelled_one();
    project.space.remove("late.cu");
    project.space.remove("late.o");
    let taken = farm.taken();

    // BuildGrid refuses a property that it does not know, with the error of a server that lacks a blob.
    project
        .space
        .set_env("WARPCC_EXECUTOR_PROPERTIES", "colour=blue");
    let said = project.build();
    assert!(
        said.contains("warpcc: warning: ") && said.contains("colour"),
        "{said}"
    );
    assert_eq!(farm.taken(), taken);
}
