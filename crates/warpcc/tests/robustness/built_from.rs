//! Tests which commit the build script names: that of a checkout, of a packaged crate, or none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with the build script as a program.
struct Script {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Script {
    fn compile() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
        let program = folder.path().join("script");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let made = Command::new(rustc)
            .args(["--edition", "2024", "-o"])
            .args([&program, &source])
            .status();
        assert!(made.expect("rustc starts").success());
        Self { folder, program }
    }

    /// A crate in a new folder, with the script as its file `build.rs`.
    fn package(&self, name: &str) -> PathBuf {
        let package = self.folder.path().join(name);
        fs::create_dir(&package).expect("a folder");
        fs::write(package.join("build.rs"), "fn main() {}\n").expect("a file");
        package
    }

    /// The commit that the script names in `package`.
    fn commit(&self, package: &Path, profile: &str, named: Option<&str>) -> Option<String> {
        let mut command = Command::new(&self.program);
        command
            .current_dir(package)
            .env("PROFILE", profile)
            .env_remove("WARPCC_COMMIT")
            // Folders above the package are no repository.
            .env("GIT_CEILING_DIRECTORIES", self.folder.path());
        command.envs(named.map(|commit| ("WARPCC_COMMIT", commit)));
        let said = command.output().expect("the script starts");
        assert!(said.status.success());
        let said = String::from_utf8(said.stdout).expect("text");
        let line = |line: &str| {
            line.strip_prefix("cargo:rustc-env=BUILT_FROM=")
                .map(str::to_owned)
        };
        said.lines().find_map(line)
    }
}

fn git(folder: &Path, words: &[&str]) -> String {
    let said = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(words)
        .output()
        .expect("git starts");
    assert!(said.status.success(), "git {words:?}: {said:?}");
    String::from_utf8(said.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

#[test]
fn a_checkout_names_its_commit() {
    let script = Script::compile();
    let package = script.package("checkout");
    assert_eq!(
        script.commit(&package, "release", None),
        None,
        "no repository"
    );
    git(&package, &["init", "--quiet"]);
    assert_eq!(
        script.commit(&package, "release", None),
        None,
        "not committed"
    );
    git(&package, &["add", "build.rs"]);
    git(&package, &["commit", "--quiet", "--message", "one"]);
    let commit = git(&package, &["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(
        script.commit(&package, "release", None),
        Some(commit.clone())
    );
    assert_eq!(script.commit(&package, "debug", None), None);
    let named = script.commit(&package, "debug", Some("0123456789ab"));
    assert_eq!(named.as_deref(), Some("0123456789ab"));
    fs::write(package.join("build.rs"), "fn main() { }\n").expect("a file");
    assert_eq!(script.commit(&package, "release", None), Some(commit + "+"));
}

#[test]
fn a_packaged_crate_names_the_commit_that_cargo_wrote() {
    let script = Script::compile();
    let package = script.package("warpcc-0.1.0");
    let info = |git: &str| {
        format!(
            "{{\n  \"git\": {{\n{git}    \"sha1\": \"0f9e59da00112233445566778899aabbccddeeff\"\n  }},\n  \"path_in_vcs\": \"crates/warpcc\"\n}}"
        )
    };
    let file = package.join(".cargo_vcs_info.json");
    fs::write(&file, info("")).expect("a file");
    // The folder lies in a repository of something else.
    git(&package, &["init", "--quiet"]);
    for profile in ["release", "debug"] {
        let commit = script.commit(&package, profile, None);
        assert_eq!(commit.as_deref(), Some("0f9e59da0011"));
    }
    fs::write(&file, info("    \"dirty\": true,\n")).expect("a file");
    let changed = script.commit(&package, "release", None);
    assert_eq!(changed.as_deref(), Some("0f9e59da0011+"));
    fs::write(&file, "{\"git\": {\"sha1\": \"?\"}}").expect("a file");
    assert_eq!(script.commit(&package, "release", None), None);
}
