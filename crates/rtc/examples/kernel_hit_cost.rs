//! Measures the cost of a hit, from memory and from disk: `cargo run --release -p warpcc-rtc --example
//! kernel_hit_cost`.
//!
//! A look-up that hashes and compares every text, as the first version did, is measured in the same run. Functions need a
//! driver: where there is none, they are left out.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use warpcc_rtc::{
    CacheSettings, CallLimits, CompileRequest, Compiled, Compiler, Device, Environment, Found,
    Image, Kernel, KernelCache, Target, Text,
};
use xxhash_rust::xxh3::Xxh3;

const ROUNDS: usize = 2000;

type Done = Result<(), Box<dyn std::error::Error>>;

fn main() -> Done {
    let subject = Subject::new()?;
    let start = Instant::now();
    assert_eq!(subject.get(&subject.cache())?.found, Found::Made);
    report(
        "compiled, with NVRTC's files hashed",
        vec![start.elapsed().as_nanos()],
    );
    from_disk(&subject)?;
    let cache = subject.cache();
    from_memory(&subject, &cache)?;
    functions(&cache, &subject.source)
}

/// The kernel to ask for, and the folder that it is kept in.
struct Subject {
    folder: tempfile::TempDir,
    compiler: Compiler,
    target: Target,
    preamble: String,
    source: String,
}

impl Subject {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let header = "__device__ inline float twice(float x) { return 2 * x; }\n";
        let padding = "// some 30 KiB of a common header\n".repeat(900);
        Ok(Self {
            folder: tempfile::tempdir()?,
            compiler: Compiler::find_with(None, &Environment::of_process())?,
            target: "sm_90".parse()?,
            preamble: format!("{header}{padding}"),
            source: format!(
                "{}extern \"C\" __global__ void k(float* x) {{ *x = twice(*x); }}\n",
                "// two KiB of source\n".repeat(100)
            ),
        })
    }

    /// A cache with nothing in memory.
    fn cache(&self) -> KernelCache {
        let mut common = CompileRequest::new("", "", self.target);
        common.preamble = vec![Text::new("common", self.preamble.clone())];
        let settings = CacheSettings::in_folder(self.folder.path());
        KernelCache::with(self.compiler.clone(), settings, None).compiled_with(common)
    }

    fn get(&self, cache: &KernelCache) -> Result<Image, warpcc_rtc::Error> {
        let limits = CallLimits::default();
        cache.get_image("#define N 4", "k", &self.source, self.target, &limits)
    }
}

fn from_disk(subject: &Subject) -> Done {
    let mut disk = Vec::new();
    for _ in 0..ROUNDS {
        let cache = subject.cache();
        // Which library it is, is known from the first call of a process on.
        let other = "extern \"C\" __global__ void k() {}";
        cache.get_image("", "k", other, subject.target, &CallLimits::default())?;
        let start = Instant::now();
        let image = subject.get(&cache)?;
        disk.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Disk);
    }
    report("from disk", disk);
    Ok(())
}

fn from_memory(subject: &Subject, cache: &KernelCache) -> Done {
    subject.get(cache)?;
    let request = cache.request("#define N 4", "k", &subject.source, subject.target);
    let mut again = request.clone();
    again.source = (*request.source).into();
    for text in &mut again.preamble {
        text.text = (*text.text).into();
    }
    let first = Whole::default();
    let limits = CallLimits::default();
    first.keep(request.clone(), cache.get(&request, &limits)?.compiled);
    let (mut by_text, mut by_request, mut by_other, mut whole) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let found = first.get(&request);
        whole.push(start.elapsed().as_nanos());
        assert!(found.is_some());
        let start = Instant::now();
        let image = cache.get(&again, &limits)?;
        by_other.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Memory);
        let start = Instant::now();
        let image = subject.get(cache)?;
        by_text.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Memory);
        let start = Instant::now();
        let image = cache.get(&request, &limits)?;
        by_request.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Memory);
    }
    report(
        "from memory, get_image (the request is made each time)",
        by_text,
    );
    report(
        "from memory, get with a request of texts of its own",
        by_other,
    );
    let now = report("from memory, get with a request at hand", by_request);
    let before = report("the same, every text hashed and compared", whole);
    say(&format!("{:.1} times as fast", before / now));
    Ok(())
}

type Alike = Vec<(CompileRequest, Arc<Compiled>)>;

/// A look-up that hashes and compares every text.
#[derive(Default)]
struct Whole(RwLock<HashMap<u64, Alike>>);

impl Whole {
    fn hash(request: &CompileRequest) -> u64 {
        let mut hasher = Xxh3::new();
        request.hash(&mut hasher);
        hasher.finish()
    }

    fn keep(&self, request: CompileRequest, compiled: Arc<Compiled>) {
        let mut all = self.0.write().expect("no panic");
        all.entry(Self::hash(&request))
            .or_default()
            .push((request, compiled));
    }

    fn get(&self, request: &CompileRequest) -> Option<Arc<Compiled>> {
        let all = self.0.read().expect("no panic");
        let alike = all.get(&Self::hash(request))?;
        let found = alike.iter().find(|(known, _)| known == request)?;
        Some(found.1.clone())
    }
}

fn functions(cache: &KernelCache, source: &str) -> Done {
    let Ok(gpu) = Device::open(0) else {
        say("functions: not measured, there is no driver");
        return Ok(());
    };
    let limits = CallLimits::default();
    let kernel = Kernel::new("#define N 4", "k", source);
    let (mut by_text, mut by_kernel) = (Vec::new(), Vec::new());
    cache.get_function("#define N 4", "k", source, &gpu, &limits)?;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        cache.get_function("#define N 4", "k", source, &gpu, &limits)?;
        by_text.push(start.elapsed().as_nanos());
        let start = Instant::now();
        cache.get_function_of(&kernel, &gpu, &limits)?;
        by_kernel.push(start.elapsed().as_nanos());
    }
    report("get_function, by its texts", by_text);
    report("get_function_of, a kernel at hand", by_kernel);
    Ok(())
}

/// Prints and gives the median, in microseconds.
fn report(what: &str, mut nanoseconds: Vec<u128>) -> f64 {
    nanoseconds.sort_unstable();
    let at = |share: f64| nanoseconds[(nanoseconds.len() as f64 * share) as usize] as f64 / 1e3;
    say(&format!(
        "{what}: median {:.2} us, 99 of 100 within {:.2} us",
        at(0.5),
        at(0.99)
    ));
    at(0.5)
}

#[expect(clippy::print_stdout, reason = "an example for people")]
fn say(what: &str) {
    println!("{what}");
}
