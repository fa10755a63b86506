//! Tests `warpcc jit` as people and scripts call it: figures against ptxas, findings, exit codes; warming
//! in a module of its own.

mod image;
mod warm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use warpcc_testkit::Toolkit;

/// A kernel that every toolkit assembles.
fn ptx(target: &str, kernel: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target {target}\n.address_size 64\n.visible .entry {kernel}(.param .u64 p)\n\
         {{\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, 1;\n{body}\n\
         st.global.u32 [%rd1], %r1;\nret;\n}}\n"
    )
}

struct Space {
    folder: TempDir,
    toolkit: Toolkit,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Space {
    fn new(toolkit: Toolkit) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        fs::create_dir(&home).expect("made");
        Self {
            folder,
            toolkit,
            variables: vec![("HOME", home)],
        }
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.toolkit.nvcc.with_file_name(name));
        command.current_dir(self.at());
        command
    }

    /// A fat binary with one uncompressed PTX.
    fn fatbin(&self, name: &str, arch: &str, text: &str) {
        fs::write(self.at().join("text.ptx"), text).expect("written");
        let image = format!("--image3=kind=ptx,sm={arch},file=text.ptx");
        let done = self
            .tool("fatbinary")
            .args(["-64", "--compress-mode=none", &image])
            .arg(format!("--create={name}"))
            .output()
            .expect("fatbinary starts");
        assert!(done.status.success(), "{done:?}");
    }

    fn warpcc(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpcc"));
        command
            .current_dir(self.at())
            .env_clear()
            .env("WARPCC_NVCC", &self.toolkit.nvcc)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .arg("jit");
        let output = command.args(words.split_whitespace()).output();
        output.expect("warpcc starts")
    }

    fn json(&self, words: &str, code: i32) -> Value {
        let output = self.warpcc(words);
        assert_eq!(output.status.code(), Some(code), "{words}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The exit code of advice with nothing to fix, except perhaps the place of this machine's temporary folder: a
    /// container's layer and memory are findings.
    fn fine(&self) -> i32 {
        let code = self.warpcc("cache").status.code();
        code.filter(|code| *code < 2).expect("an exit code")
    }

    fn said(&self, words: &str, code: i32) -> String {
        let output = self.warpcc(words);
        assert_eq!(output.status.code(), Some(code), "{words}: {output:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    }
}

fn what(advice: &Value) -> String {
    let remarks = advice["remarks"].as_array().expect("a list");
    let lines = remarks
        .iter()
        .map(|r| format!("{}: {}\n", r["weight"], r["what"]));
    lines.collect()
}

#[test]
fn advice_counts_what_ptxas_makes() {
    for toolkit in Toolkit::all() {
        let space = Space::new(toolkit);
        let at = space.at();
        space.fatbin("a.fatbin", "80", &ptx("sm_80", "one", ""));
        space.fatbin(
            "b.fatbin",
            "80",
            &ptx("sm_80", "two", "add.u32 %r1, %r1, 5;"),
        );
        let both = [fs::read(at.join("a.fatbin")), fs::read(at.join("b.fatbin"))];
        let both = both.map(|bytes| bytes.expect("readable")).concat();
        fs::write(at.join("lib.fatbin"), both).expect("written");
        let mut bytes = 0;
        let mut texts = 0;
        for (kernel, body) in [("one", ""), ("two", "add.u32 %r1, %r1, 5;")] {
            fs::write(at.join("x.ptx"), ptx("sm_80", kernel, body)).expect("written");
            let done = space
                .tool("ptxas")
                .args(["-arch=sm_90", "x.ptx", "-o", "x.cubin"])
                .status();
            assert!(done.expect("ptxas starts").success());
            bytes += fs::metadata(at.join("x.cubin")).expect("made").len();
            texts += 1;
        }
        // The same library twice is compiled once.
        let advice = space.json(
            "advise lib.fatbin a.fatbin --gpu sm_90,sm_80 --json",
            space.fine(),
        );
        let on = &advice["gpus"][1];
        assert_eq!(
            (on["gpu"].as_str(), on["texts"].as_u64()),
            (Some("sm_90"), Some(texts))
        );
        assert_eq!(on["measured"], on["texts"]);
        assert_eq!(on["cubin_bytes"].as_u64(), Some(bytes));
        assert_eq!(on["files"][0]["texts"][1]["kernels"][0], "two");
        assert_eq!(on["files"][1]["texts"][0]["repeated"], true);
        assert_eq!(on["fits"], true);
        let fix = advice["remarks"].to_string();
        assert!(fix.contains("-gencode arch=compute_90,code=sm_90"), "{fix}");
        // The PTX is too new: nothing to compile, and an error at run time.
        let old = space.said("advise lib.fatbin --gpu sm_75", 1);
        assert!(
            old.contains("2 containers cannot be loaded on sm_75"),
            "{old}"
        );
    }
}

#[test]
fn a_cache_that_is_too_small_or_in_a_bad_place_is_something_to_fix() {
    let mut space = Space::new(Toolkit::newest());
    space.fatbin("a.fatbin", "80", &ptx("sm_80", "one", ""));
    let home = space.variables.clone();
    let mut with = |more: &[(&'static str, &str)], words: &str, code| {
        space.variables.clone_from(&home);
        space
            .variables
            .extend(more.iter().map(|(n, v)| (*n, PathBuf::from(v))));
        what(&space.json(&format!("advise a.fatbin --json --gpu sm_90 {words}"), code))
    };
    for (name, value, word) in [
        (
            "CUDA_CACHE_MAXSIZE",
            "1000",
            "more than a cache of 1000 B holds",
        ),
        (
            "CUDA_CACHE_MAX_SIZE",
            "1",
            "CUDA_CACHE_MAX_SIZE is set, and no driver reads it",
        ),
        ("CUDA_CACHE_DISABLE", "1", "every start on sm_90 compiles"),
        ("CUDA_CACHE_PATH", "relative", "not an absolute path"),
        (
            "CUDA_CACHE_PATH",
            "/dev/null/cache",
            "/dev/null is not a folder",
        ),
        (
            "CUDA_CACHE_PATH",
            "/dev/shm/warpcc-jit-test",
            "memory (tmpfs)",
        ),
        ("HOME", "", "neither HOME nor CUDA_CACHE_PATH is set"),
    ] {
        let said = with(&[(name, value)], "--estimate", 1);
        assert!(said.contains(word), "{name}={value}: {said}");
    }
    // Without texts to compile, the cache does not matter.
    space.variables = home.clone();
    space.variables.push(("CUDA_CACHE_MAX_SIZE", "1".into()));
    space.fatbin(
        "n.fatbin",
        "100",
        &ptx("sm_100", "one", "").replace("8.0", "8.6"),
    );
    let fits = space.said("advise a.fatbin --gpu sm_90 --estimate", 1);
    assert!(
        fits.contains("estimated") && fits.contains("to fix"),
        "{fits}"
    );
    // A PTX newer than the driver is not compiled: it fails.
    space.variables = home;
    let old = space.said("advise n.fatbin --gpu sm_100 --driver 12.4", 1);
    assert!(old.contains("cannot be loaded"), "{old}");
}

#[test]
fn broken_ptx_is_found_with_its_kernel() {
    for toolkit in Toolkit::all() {
        let space = Space::new(toolkit);
        let good = ptx("sm_80", "good", "");
        let second = ptx("sm_80", "bad", "zap.u32 %r1, %r1, 5;");
        let (_, second) = second.split_once(".visible").expect("a kernel");
        space.fatbin("a.fatbin", "80", &format!("{good}.visible{second}"));
        space.fatbin("good.fatbin", "80", &good);
        space.fatbin("exact.fatbin", "90a", &ptx("sm_90a", "exact", ""));
        let proof = space.json("prove a.fatbin good.fatbin --gpu sm_80,sm_90 --json", 1);
        assert_eq!(proof["texts"], 2);
        assert_eq!(proof["failures"].as_array().map(Vec::len), Some(2));
        let failure = &proof["failures"][0];
        assert_eq!(
            (&failure["target"], &failure["by"]),
            (&"compute_80".into(), &"sm_80".into())
        );
        assert_eq!(failure["complaints"][0]["kernel"], "bad");
        assert!(
            failure["complaints"].to_string().contains("zap"),
            "{failure}"
        );
        assert_eq!(failure["kernels"].as_array().map(Vec::len), Some(2));
        let shown = space.said("prove a.fatbin", 1);
        assert!(
            shown.contains("REFUSED") && shown.contains("bad: "),
            "{shown}"
        );
        // Its own architecture and the newest; for `a` code there is only its own.
        let proof = space.json("prove good.fatbin --json", 0);
        assert_eq!(proof["tried"][0]["target"], "sm_80");
        assert_eq!(proof["tried"].as_array().map(Vec::len), Some(2));
        let proof = space.json("prove exact.fatbin --json", 0);
        assert_eq!(proof["tried"].as_array().map(Vec::len), Some(1));
        assert_eq!(proof["tried"][0]["target"], "sm_90a");
    }
}

#[test]
fn files_without_code_are_reported_and_the_rest_is_read() {
    let space = Space::new(Toolkit::newest());
    let at = space.at();
    space.fatbin("a.fatbin", "80", &ptx("sm_80", "one", ""));
    let whole = fs::read(at.join("a.fatbin")).expect("readable");
    fs::write(at.join("cut.fatbin"), &whole[..whole.len() - 20]).expect("written");
    fs::write(at.join("empty.so"), "").expect("written");
    fs::write(at.join("text.so"), "hello").expect("written");
    // An impossible size.
    let mut huge = whole.clone();
    huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    fs::write(at.join("huge.fatbin"), huge).expect("written");
    for bad in [
        "cut.fatbin",
        "empty.so",
        "text.so",
        "huge.fatbin",
        "nowhere",
    ] {
        let advice = space.warpcc(&format!("advise {bad} a.fatbin --gpu sm_90 --json"));
        assert_eq!(advice.status.code(), Some(2), "{bad}");
        let told = String::from_utf8_lossy(&advice.stderr).into_owned();
        assert!(told.contains(bad), "{bad}: {told}");
        let advice: Value = serde_json::from_slice(&advice.stdout).expect("JSON");
        assert!(
            advice["gpus"][0]["texts"].as_u64() >= Some(1),
            "{bad}: {advice}"
        );
        let proof = space.said(&format!("prove {bad} a.fatbin"), 2);
        assert!(proof.contains("assembled"), "{bad}: {proof}");
    }
    fs::copy("/bin/true", at.join("host")).expect("copied");
    assert!(space.said("prove host", 1).contains("There is no PTX"));
    assert!(
        space
            .said("advise host --gpu sm_90", 0)
            .contains("nothing to load")
    );
}

#[test]
fn without_a_driver_or_a_toolkit_the_reason_is_told() {
    let mut space = Space::new(Toolkit::newest());
    space.fatbin("a.fatbin", "80", &ptx("sm_80", "one", ""));
    // A folder that hides a driver, should this machine have one.
    space
        .variables
        .push(("LD_LIBRARY_PATH", space.at().join("none")));
    if !Path::new("/dev/nvidiactl").exists() {
        let said = space.said("warm a.fatbin", 2);
        assert!(
            said.contains("no NVIDIA driver") && said.contains("GPU"),
            "{said}"
        );
        space.said("prove a.fatbin --load", 2);
    }
    space.toolkit.nvcc = "/nowhere/nvcc".into();
    assert!(space.said("prove a.fatbin", 2).contains("--ptxas"));
    assert!(
        space
            .said("advise a.fatbin --gpu sm_90", space.fine())
            .contains("figures are estimates")
    );
    assert!(
        space
            .said("prove a.fatbin --ptxas /bin/true", 2)
            .contains("this ptxas is not supported")
    );
}
