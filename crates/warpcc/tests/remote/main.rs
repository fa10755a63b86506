//! Tests shared caches against real servers: two cache folders are two machines, and the second one's first build runs no
//! compiler. Whatever a server does wrong, the build passes with nvcc's bytes, and the next build leaves the server alone.

#[path = "../space/mod.rs"]
mod space;

mod attacks;
mod faults;
mod faulty;
mod forged_signatures;
mod forger;
mod kernels;
mod keys;
mod names;
mod program;
mod servers;
mod signatures;
mod two_machines;
mod untrusted;
mod versions;
mod webdav;

use space::{Build, Exactness, Program, Snapshot, Stats, TestSpace, differences};

/// Two architectures.
const TWO: &str = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80 \
                   -gencode arch=compute_90,code=sm_90";

/// One of the architectures.
const ONE: &str = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80";

const KERNEL: &str = "__global__ void k(float *x, int n) {\n\
      for (int i = 0; i < n; i++) x[i] = x[i] * 3.5f;\n\
    }\n";

/// The messages and the counters of a call of warpcc.
struct Call {
    stderr: String,
    stats: Stats,
}

/// A project whose calls go through a shared cache.
struct Project {
    space: TestSpace,
}

impl Project {
    fn new(name: &str) -> Self {
        let space = TestSpace::new(name);
        space.write("case.cu", KERNEL);
        Self { space }
    }

    /// From now on, calls go through the shared cache at `url`. On a busy machine, a good server must not seem slow, and one
    /// that failed must not be asked again.
    fn through(&mut self, url: &str) {
        let (at, own) = url.split_once('|').unwrap_or((url, ""));
        let patient = match url {
            "none" => "none".to_owned(),
            _ => format!("{at}|timeout=100|connect-timeout=100|retry-after=3600|{own}"),
        };
        self.space.set_env("WARPCC_REMOTE", &patient);
    }

    /// From now on, calls are another machine's, which has built nothing yet.
    fn on(&mut self, machine: &str) {
        let cache = self.space.beside(machine);
        self.space.set_env("WARPCC_DIR", &cache.to_string_lossy());
    }

    /// Builds as nvcc does, and waits until the shared cache has it.
    #[track_caller]
    fn first(&self, line: &str) -> Build {
        let build = self.space.agree(line);
        self.upload();
        build
    }

    /// Waits until all uploads are done.
    #[track_caller]
    fn upload(&self) {
        let said = self.space.warpcc_with(&["remote", "upload"]);
        let text = said.text();
        assert_eq!(said.code, 0, "{text}");
    }

    /// The counters of the shared caches.
    #[track_caller]
    fn remote_counters(&self) -> serde_json::Value {
        self.space.json(&["stats", "--json"])["remote"].clone()
    }

    /// One of them.
    #[track_caller]
    fn remote_count(&self, name: &str) -> u64 {
        self.remote_counters()[name].as_u64().expect("a count")
    }

    /// Runs the line, and fails unless it makes what `build` made.
    #[track_caller]
    fn like(&self, line: &str, build: &Build) -> Call {
        self.like_as(&Program::Launcher, line, build)
    }

    /// The same with another way to start warpcc.
    #[track_caller]
    fn like_as(&self, program: &Program, line: &str, build: &Build) -> Call {
        let space = &self.space;
        build.outputs.delete_from(&space.work());
        let stats = space.stats();
        let before = Snapshot::take(&space.work());
        let said = space.run(program, &space.words(line));
        let outputs = Snapshot::take(&space.work()).since(&before);
        let stderr = said.stderr_text();
        assert_eq!(said.code, 0, "{stderr}");
        let scratch = space.beside("compare");
        let found = differences(&build.outputs, &outputs, Exactness::Bytes, &scratch);
        assert!(found.is_empty(), "differs from nvcc:\n{}", found.join("\n"));
        space.demand_no_leftovers("warpcc");
        Call {
            stderr,
            stats: space.stats().since(&stats),
        }
    }
}

impl Call {
    /// Fails when any tool ran.
    #[track_caller]
    fn demand_no_compiler(&self) {
        let stats = &self.stats;
        let hit = stats.count("direct_hits") == 1 || stats.all_hits() > 0;
        assert!(hit && stats.all_misses() == 0, "a compiler ran: {stats:?}");
        assert_eq!(self.stderr, "");
    }

    /// Fails unless the user was warned in exactly one line, which names the fault.
    #[track_caller]
    fn demand_one_warning(&self, about: &str) {
        let text = &self.stderr;
        let warned = text.starts_with("warpcc: warning: ") && text.lines().count() == 1;
        assert!(
            warned && text.contains(about),
            "not about {about:?}: {text}"
        );
    }
}
