//! The committed header is what the sources say: `cargo xtask header` writes it.

use std::path::Path;

const SOURCES: [&str; 19] = [
    "version",
    "error",
    "ffi",
    "request",
    "compiler",
    "images",
    "bundle",
    "pieces",
    "linker",
    "fatbin_maker",
    "settings",
    "observe",
    "cache",
    "many",
    "kernel",
    "device",
    "tensors",
    "plans",
    "launcher",
];

fn made() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join(format!("src/{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    let text = String::from_utf8(text).expect("text");
    // The notes on pointers for readers of Rust are in the text already.
    let mut kept = Vec::new();
    let mut in_safety = false;
    for line in text.lines() {
        let said = line.trim_start().trim_start_matches('*').trim();
        if said == "# Safety" {
            in_safety = true;
            // The empty line before it.
            while kept.last().is_some_and(|line: &&str| line.trim() == "*") {
                kept.pop();
            }
        }
        if in_safety && line.trim_end().ends_with("*/") {
            in_safety = false;
        }
        if !in_safety {
            kept.push(line.trim_end());
        }
    }
    kept.join("\n") + "\n"
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/warpcc_rtc.h");
    let made = made();
    if std::env::var_os("WARPCC_HEADER").is_some_and(|what| what == "write") {
        std::fs::write(&path, &made).expect("written");
        return;
    }
    let committed = std::fs::read_to_string(&path).expect("the header");
    if let Some((line, (ours, theirs))) = committed
        .lines()
        .chain([""])
        .zip(made.lines().chain([""]))
        .enumerate()
        .find(|(_, (ours, theirs))| ours != theirs)
    {
        panic!(
            "{}:{}: it says\n  {ours}\nand the sources say\n  {theirs}\nrun `cargo xtask header`",
            path.display(),
            line + 1
        );
    }
    assert!(
        committed == made,
        "the header ends too early or too late: run `cargo xtask header`"
    );
}

#[test]
fn every_source_with_functions_for_c_is_in_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let made = made();
    let mut functions = 0;
    for file in std::fs::read_dir(folder).expect("sources").flatten() {
        let text = std::fs::read_to_string(file.path()).expect("text");
        let lines: Vec<_> = text.lines().collect();
        for pair in lines
            .windows(2)
            .filter(|pair| pair[0] == "#[unsafe(no_mangle)]")
        {
            let name = pair[1]
                .split("fn ")
                .nth(1)
                .and_then(|rest| rest.split('(').next());
            let name = name.expect("a name");
            assert!(
                made.contains(&format!("{name}(")),
                "{name} is not in the header"
            );
            functions += 1;
        }
    }
    assert!(functions > 60, "{functions}");
}

#[test]
fn versions_agree() {
    let made = made();
    let said = |name: &str| -> String {
        let line = made
            .lines()
            .find(|line| line.starts_with(&format!("#define {name} ")));
        let value = line
            .and_then(|line| line.split(' ').nth(2))
            .expect("a number");
        value.to_owned()
    };
    let version = ["MAJOR", "MINOR", "PATCH"]
        .map(|part| said(&format!("WARPCC_RTC_VERSION_{part}")))
        .join(".");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let build = include_str!("../build.rs");
    assert!(build.contains(&format!("libwarpcc_rtc_c.so.{}\"", said("WARPCC_RTC_ABI"))));
    let cmake = include_str!("../CMakeLists.txt");
    assert!(cmake.contains(&format!("set(WARPCC_RTC_ABI {})", said("WARPCC_RTC_ABI"))));
    assert!(cmake.contains(&format!("VERSION {version}")));
}
