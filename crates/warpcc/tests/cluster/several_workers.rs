//! A cluster of several workers: one casd holds blobs and results, others run one action each at a time, and the tests' own
//! dispatcher hands out the actions.

use std::thread;

use crate::dispatched::Cluster;
use crate::space::{Exactness, Program, Snapshot, TestSpace, differences, finish};
use crate::{executed, space};

const FILES: [&str; 4] = ["sine", "power", "root", "main"];

/// A project of four files with a header; one of them is the program's.
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

/// As ninja runs them: all at once.
fn build(space: &TestSpace, program: &Program) {
    thread::scope(|scope| {
        for file in FILES {
            scope.spawn(move || {
                let built = finish(space.command(program, &space.words(&line_of(file))));
                assert_eq!(built.code, 0, "{file}: {}", built.stderr_text());
                assert_eq!(built.stderr_text(), "", "{file}");
            });
        }
    });
}

#[test]
fn every_step_of_a_project_runs_on_one_of_two_workers() {
    let Some(cluster) = Cluster::of(2) else {
        return;
    };
    let space = space("cluster-workers", &cluster.address());
    space.remove("case.cu");
    write_project(&space);
    let sources = Snapshot::take(&space.work());
    // nvcc one by one: --keep's files have the names of the sources, and the folder is one.
    for file in FILES {
        let reference = space.run(&space.reference(), &space.words(&line_of(file)));
        assert_eq!(reference.code, 0, "{file}: {}", reference.stderr_text());
    }
    let wanted = Snapshot::take(&space.work()).since(&sources);
    assert_eq!(wanted.entries.len(), FILES.len());
    wanted.delete_from(&space.work());

    build(&space, &Program::Launcher);
    let outputs = Snapshot::take(&space.work()).since(&sources);
    let scratch = space.beside("compare");
    let found = differences(&wanted, &outputs, Exactness::Bytes, &scratch);
    assert!(found.is_empty(), "{}", found.join("\n"));
    // On a slow machine a late one is started here as well, and may end first.
    assert!(executed(&space) > 0);
    let taken = cluster.taken();
    assert!(taken.iter().all(|&some| some > 0), "{taken:?}");
    // cudafe++, cicc, ptxas, fatbinary, host compile of each.
    assert!(
        taken.iter().sum::<u64>() >= 5 * FILES.len() as u64,
        "{taken:?}"
    );

    // A second machine: the workers' results are in front, for all.
    assert!(cluster.front().has_work());
    outputs.delete_from(&space.work());
    space.clear_cache();
    build(&space, &Program::Launcher);
    let again = Snapshot::take(&space.work()).since(&sources);
    let found = differences(&wanted, &again, Exactness::Bytes, &scratch);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
