//! CuPy, cuda.core and Numba-CUDA of PyPI with the package's cache: what they compile is found by the next process, is what they
//! compile without it, and follows an edited header.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{done, named, nvrtc, packages, top};

/// What a step printed: hashes of its images, names of its kernels, and how much our cache made and found.
struct Told {
    digests: String,
    names: String,
    counts: String,
}

/// The folder with these packages.
pub fn others() -> PathBuf {
    named("WARPCC_TEST_ADAPTERS").unwrap_or_else(|| top().join(".tools/adapters"))
}

fn run(python: &Path, folder: &Path, step: &str, cache: &Path) -> Told {
    let toolkit = nvrtc().parent().map(Path::to_path_buf).unwrap_or_default();
    let libraries = [nvrtc(), toolkit.join("nvvm/lib64")];
    let libraries = std::env::join_paths(libraries).expect("a list");
    let mut command = Command::new(python);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", folder)
        .env("PYTHONPATH", packages())
        .env("WARPCC_TEST_ADAPTERS", others())
        .env("CUDA_PATH", &toolkit)
        .env("CUDA_HOME", &toolkit)
        .env("LD_LIBRARY_PATH", libraries)
        // Its own cache, which must not hide what ours does.
        .env(
            "CUPY_CACHE_DIR",
            folder.join(format!("cupy-of-{}", cache.display()).replace('/', "_")),
        )
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters.py"))
        .args([step.as_ref(), cache.as_os_str(), folder.as_os_str()]);
    let told = String::from_utf8(done(command).stdout).expect("text");
    let json: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    if cache != Path::new("-") {
        assert_eq!(json["remarks"].to_string(), "[]", "{step}");
    }
    Told {
        digests: json["images"].to_string(),
        names: json["names"].to_string(),
        counts: format!("{} made, {} found", json["made"], json["found"]),
    }
}

/// Runs every adapter's program: without the cache, with it twice, and after its header was edited.
pub fn keep_what_other_packages_compile(python: &Path, folder: &Path) {
    for (step, images, with_header) in [("cupy", 2, 1), ("cuda.core", 2, 1), ("numba", 4, 0)] {
        let folder = folder.join(step);
        std::fs::create_dir(&folder).expect("a folder");
        let write = |text| std::fs::write(folder.join("factor.h"), text).expect("written");
        write("#define FACTOR 3\n");
        let alone = run(python, &folder, step, Path::new("-"));
        let cache = folder.join("cache");
        let first = run(python, &folder, step, &cache);
        assert_eq!(first.counts, format!("{images} made, 0 found"), "{step}");
        if with_header == 0 {
            // Nothing reads the header: the second run also shows that.
            write("#define FACTOR 40\n");
        }
        let second = run(python, &folder, step, &cache);
        assert_eq!(second.counts, format!("0 made, {images} found"), "{step}");
        for with in [&first, &second] {
            assert_eq!(with.digests, alone.digests, "{step}");
            assert_eq!(with.names, alone.names, "{step}");
        }
        if with_header == 0 {
            continue;
        }
        write("#define FACTOR 40\n");
        let edited = run(python, &folder, step, &cache);
        let counts = format!("{with_header} made, {} found", images - with_header);
        assert_eq!(edited.counts, counts, "{step}");
        assert_ne!(edited.digests, alone.digests, "{step}");
    }
}
