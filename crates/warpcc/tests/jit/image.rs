//! The recipe of docs/jit.md for a container image, in a root of its own: what `jit warm` leaves there is found when the image runs.
//!
//! The root has a shell, warpcc, and their libraries. `--gpus all` is a stand-in for the driver, which is there only then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::warm::with_driver;

/// A block of code of the page, by its language and a word in it.
fn block(language: &str, word: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/jit.md");
    let page = fs::read_to_string(page).expect("the page");
    let mut blocks = page.split("\n```").skip(1).step_by(2);
    let found = blocks.find_map(|block| {
        let text = block.strip_prefix(language)?.strip_prefix('\n')?;
        text.contains(word).then(|| text.to_owned())
    });
    found.unwrap_or_else(|| panic!("no block {language} with {word}"))
}

/// What an image has and says.
struct Image {
    root: PathBuf,
    variables: Vec<(String, String)>,
}

impl Image {
    /// Copies a program and its libraries to the same paths in the root.
    fn add_program(&self, program: &Path, at: &str) {
        self.add(program, at);
        let listed = Command::new("ldd").arg(program).output().expect("ldd");
        for word in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
            if word.starts_with('/') {
                self.add(Path::new(word), word);
            }
        }
    }

    fn add(&self, from: &Path, to: &str) {
        let to = self.root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }

    /// Runs a command of the recipe in the root, as a container engine does.
    fn run(&self, words: &str) -> Output {
        let script = r#"mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot "$1" /bin/sh -c "$2""#;
        Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--pid", "--fork"])
            .args(["--net", "--kill-child", "sh", "-c", script, "sh"])
            .arg(&self.root)
            .arg(words)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("unshare starts")
    }

    fn warmed(&self, words: &str) -> Value {
        let output = self.run(&format!("{words} --json"));
        assert_eq!(output.status.code(), Some(0), "{words}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

#[test]
fn an_image_of_the_recipe_starts_with_a_full_cache() {
    let mut can = Command::new("unshare");
    let can = can.args(["--mount", "--pid", "--fork", "true"]).status();
    if !can.is_ok_and(|ended| ended.success()) {
        eprintln!("nothing was tried: this user may not make a root");
        return;
    }
    let space = with_driver();
    let root = space.at().join("root");
    for folder in ["dev", "proc", "tmp", "opt"] {
        fs::create_dir_all(root.join(folder)).expect("made");
    }
    let mut image = Image {
        root,
        variables: Vec::new(),
    };
    image.add_program(Path::new("/bin/sh"), "/bin/sh");
    let mut advised = None;
    for line in block("dockerfile", "jit").lines() {
        let (word, rest) = line.split_once(' ').unwrap_or_default();
        match word {
            "COPY" if rest.starts_with("warpcc ") => {
                let to = rest.trim_start_matches("warpcc ");
                image.add_program(
                    Path::new(env!("CARGO_BIN_EXE_warpcc")),
                    &format!("{to}warpcc"),
                );
            }
            "COPY" => {
                let (_, to) = rest.split_once(' ').expect("two names");
                image.add(&space.at().join("a.fatbin"), to);
            }
            "ENV" => {
                let (name, value) = rest.split_once('=').expect("a variable");
                image.variables.push((name.to_owned(), value.to_owned()));
            }
            "RUN" => advised = Some(image.run(rest)),
            "FROM" | "#" | "" => {}
            other => panic!("{other}: the test does not know how to do that"),
        }
    }
    // It needs no GPU, says what a start compiles, and does not end the build.
    let advised = advised.expect("a RUN");
    let said = String::from_utf8_lossy(&advised.stdout);
    assert!(
        advised.status.success() && said.contains("the first start compiles 1 PTX text"),
        "{advised:?}"
    );
    let commands = block("sh", "docker commit");
    let warm = commands.lines().find_map(|line| {
        let words = line.split('#').next()?.trim();
        words.strip_prefix("docker run --gpus all --name warm app ")
    });
    let warm = warm.expect("the page warms the container");
    // Without a driver nothing can be warmed, as in `docker build`.
    let refused = image.run(warm);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    // The engine puts the driver where the linker looks.
    image.add(&space.at().join("libcuda.so.1"), "/usr/lib/libcuda.so.1");
    let first = image.warmed(warm);
    assert_eq!(first["before"]["files"], 0, "{first}");
    assert_eq!(first["after"]["files"], 1, "{first}");
    assert!(image.root.join("opt/cuda-cache/index").is_file());
    // `docker commit`: the root as it is, in another place.
    let committed = space.at().join("committed");
    let copied = Command::new("cp")
        .arg("-a")
        .args([&image.root, &committed])
        .status();
    assert!(copied.expect("cp").success());
    image.root = committed;
    let again = image.warmed(warm);
    assert_eq!(again["before"]["files"], 1, "{again}");
    assert_eq!(again["after"]["files"], 1, "{again}");
    assert_eq!(again["modules"][0]["stored"], true, "{again}");
}
