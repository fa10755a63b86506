//! What a hit costs, from memory and from disk: `cargo run --release -p warpcc-rtc --example hit_cost`.

use std::time::Instant;

use warpcc_rtc::{Compiler, Environment, Found, KernelCache, Limits, Settings, Text};

const ROUNDS: usize = 2000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let compiler = Compiler::find_with(None, &Environment::of_process())?;
    let target = "sm_90".parse()?;
    let header = "__device__ inline float twice(float x) { return 2 * x; }\n";
    let padding = "// some 30 KiB of a common header\n".repeat(900);
    let source = format!(
        "{}extern \"C\" __global__ void k(float* x) {{ *x = twice(*x); }}\n",
        "// two KiB of source\n".repeat(100)
    );
    let new = || {
        let mut common = warpcc_rtc::Request::new("", "", target);
        common.preamble = vec![Text::new("common", format!("{header}{padding}"))];
        let settings = Settings::in_folder(folder.path());
        KernelCache::with(compiler.clone(), settings, None).compiled_with(common)
    };
    let get = |cache: &KernelCache| {
        cache.get_image("#define N 4", "k", &source, target, &Limits::default())
    };
    let start = Instant::now();
    assert_eq!(get(&new())?.found, Found::Made);
    report(
        "compiled, with NVRTC's files hashed",
        vec![start.elapsed().as_nanos()],
    );
    let mut disk = Vec::new();
    for _ in 0..ROUNDS {
        let cache = new();
        // Which library it is, is known from the first call of a process on.
        cache.get_image(
            "",
            "k",
            "extern \"C\" __global__ void k() {}",
            target,
            &Limits::default(),
        )?;
        let start = Instant::now();
        let image = get(&cache)?;
        disk.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Disk);
    }
    report("from disk", disk);
    let cache = new();
    get(&cache)?;
    let request = cache.request("#define N 4", "k", &source, target);
    let (mut by_text, mut by_request) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let image = get(&cache)?;
        by_text.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Memory);
        let start = Instant::now();
        let image = cache.get(&request, &Limits::default())?;
        by_request.push(start.elapsed().as_nanos());
        assert_eq!(image.found, Found::Memory);
    }
    report(
        "from memory, get_image (the request is made each time)",
        by_text,
    );
    report("from memory, get with a request at hand", by_request);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example for people")]
fn report(what: &str, mut nanoseconds: Vec<u128>) {
    nanoseconds.sort_unstable();
    let at = |share: f64| nanoseconds[(nanoseconds.len() as f64 * share) as usize];
    println!(
        "{what}: median {:.2} us, 99 of 100 within {:.2} us",
        at(0.5) as f64 / 1e3,
        at(0.99) as f64 / 1e3
    );
}
