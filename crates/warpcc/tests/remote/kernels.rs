//! Tests kernels compiled at run time, through the same shared caches: a machine only fetches the kernels that another one
//! warmed. Whatever a server does wrong, the kernel is compiled here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use warpcc_remote::{Layer, SharedCache};
use warpcc_rtc::{CacheSettings, CallLimits, Compiler, Counts, KernelCache, Target, Upstream};

use crate::faulty::{Faulty, Mode};
use crate::servers;
use crate::space::Toolkit;
use warpcc_testkit::casd;

const SCALE: &str = "template<class T> __global__ void scale(T* x) { *x *= N; }\n";
const MANIFEST: &str = "targets = [\"sm_80\", \"sm_90\"]\n[[kernel]]\nsource = \"scale.cu\"\n\
                        names = [\"scale<float>\", \"scale<int>\"]\nparameters = [\"#define N 3\"]\n";
/// One of the manifest's kernels, as a program asks for it.
const ONE: [&str; 10] = [
    "rtc",
    "compile",
    "scale.cu",
    "--name",
    "scale<float>",
    "--arch",
    "sm_90",
    "--parameters",
    "#define N 3",
    "--json",
];

fn nvrtc() -> PathBuf {
    let nvcc = Toolkit::newest().nvcc.canonicalize().expect("a toolkit");
    let top = nvcc.parent().and_then(Path::parent).expect("a folder");
    top.join("lib")
}

/// A folder with sources, in which every machine has its own cache.
struct Team {
    folder: tempfile::TempDir,
    remote: String,
}

impl Team {
    /// A team whose shared cache is at `url`. A good server must not seem slow on a busy machine.
    fn sharing(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("scale.cu", SCALE), ("kernels.toml", MANIFEST)] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let (at, own) = url.split_once('|').unwrap_or((url, ""));
        let patient = "timeout=100|connect-timeout=100|retry-after=3600";
        Self {
            folder,
            remote: format!("{at}|{patient}|{own}"),
        }
    }

    fn cache_of(&self, machine: &str) -> PathBuf {
        self.folder.path().join(machine)
    }

    fn on(&self, machine: &str, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_warpcc"))
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("WARPCC_NVRTC", nvrtc())
            .env("WARPCC_RTC_CACHE", self.cache_of(machine))
            .env("WARPCC_REMOTE", &self.remote)
            .args(args)
            .output()
            .expect("it starts")
    }

    /// Asks for [`ONE`] on a machine. Gives the place where it was found, the cubin, and the messages.
    #[track_caller]
    fn compiled_on(&self, machine: &str) -> (String, Vec<u8>, String) {
        let done = self.on(machine, &ONE);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let found = json["result"].as_str().expect("a word").to_owned();
        let cubin = std::fs::read(self.folder.path().join("scale.cubin")).expect("a cubin");
        (found, cubin, said)
    }
}

#[track_caller]
fn warmed(team: &Team, machine: &str, line: &str) {
    let done = team.on(machine, &["rtc", "warm", "kernels.toml"]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && complaint.is_empty(),
        "{complaint}{said}"
    );
    assert!(said.contains(line), "{said}");
}

/// Kernels that CI signs are found by machines that trust its key. Machines that trust another key compile them.
#[test]
fn signed_kernels_are_found_by_who_trusts_the_key() {
    let share = tempfile::tempdir().expect("a folder");
    let mut team = Team::sharing(&format!("file:{}", share.path().display()));
    for key in ["ci.key", "other.key"] {
        let made = team.on("ci", &["remote", "keygen", key]);
        assert!(made.status.success(), "{made:?}");
    }
    let plain = team.remote.clone();
    let folder = team.folder.path().display().to_string();
    team.remote = format!("{plain}|signing-key-file={folder}/ci.key");
    warmed(&team, "ci", "4 compiled now, 0 there already");
    for (trusted, expected) in [("ci", "shared"), ("other", "made")] {
        team.remote = format!("{plain}|trusted-keys={folder}/{trusted}.key.pub");
        let (found, _, said) = team.compiled_on(&format!("laptop-{trusted}"));
        assert_eq!((found.as_str(), said.as_str()), (expected, ""), "{trusted}");
    }
}

/// Kernels that CI warms are found by another machine, which keeps them.
#[track_caller]
fn two_machines(url: &str) {
    let team = Team::sharing(url);
    warmed(&team, "ci", "4 compiled now, 0 there already");
    let (_, cubin, _) = team.compiled_on("ci");
    let (found, same, said) = team.compiled_on("laptop");
    assert_eq!((found.as_str(), said.as_str()), ("shared", ""));
    assert_eq!(same, cubin);
    assert_eq!(team.compiled_on("laptop").0, "disk");
    warmed(&team, "laptop", "0 compiled now, 4 there already");
}

#[test]
fn through_nginx() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = servers::nginx(folder.path(), None);
    two_machines(&format!("http://127.0.0.1:{}/kernels", server.port));
}

#[test]
fn through_redis_and_a_server_that_lost_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = servers::redis(&folder.path().join("first"));
    two_machines(&server.url);
    // Kernels that are warm already are uploaded to a server that has none of them.
    let mut team = Team::sharing(&server.url);
    warmed(&team, "ci", "0 compiled now, 4 there already");
    let empty = servers::redis(&folder.path().join("second"));
    team.remote = team.remote.replace(&server.url, &empty.url);
    warmed(&team, "ci", "0 compiled now, 4 there already");
    assert_eq!(team.compiled_on("laptop").0, "shared");
}

#[test]
fn through_casd() {
    // Prints a message where this machine has no casd.
    if let Some(server) = casd::Casd::start() {
        two_machines(&server.address());
    }
}

#[test]
fn a_read_only_cache_is_given_nothing() {
    let server = Faulty::start();
    let team = Team::sharing(&format!("http://127.0.0.1:{}|read-only", server.port));
    warmed(&team, "pull-request", "4 compiled now");
    assert_eq!(team.compiled_on("laptop").0, "made");
}

#[test]
fn waiting_uploads_are_done_later() {
    let server = Faulty::start();
    let team = Team::sharing(&format!("http://127.0.0.1:{}", server.port));
    server.set(Mode::Full("507 Insufficient Storage"));
    assert_eq!(team.compiled_on("first").0, "made");
    // Either an upload in the background finds the server full, or this one does.
    team.on("first", &["remote", "upload"]);
    server.set(Mode::Good);
    let done = team.on("first", &["remote", "upload"]);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(team.compiled_on("second").0, "shared");
}

/// Asserts that the kernel is right and made here, that one line reports the fault, and that the next call leaves the
/// server alone.
#[track_caller]
fn survives(team: &Team, server: &Faulty, mode: Mode, about: &str) {
    let (_, cubin, _) = team.compiled_on("ci");
    let machine = format!("{mode:?}").replace(|c: char| !c.is_alphanumeric(), "-");
    server.set(mode);
    let (found, made, said) = team.compiled_on(&machine);
    assert_eq!(
        (found.as_str(), made == cubin),
        ("made", true),
        "{mode:?}: {said}"
    );
    let warned = said.starts_with("warpcc: warning: the shared cache is not used for a while");
    assert!(
        warned && said.lines().count() == 1 && said.contains(about),
        "{mode:?}: {said}"
    );
    assert!(server.requests() > 0, "{mode:?}: it was never asked");
    server.set(mode);
    let other: Vec<_> = ONE.into_iter().chain(["-D", "OTHER"]).collect();
    assert!(team.on(&machine, &other).status.success());
    assert_eq!(server.requests(), 0, "{mode:?}: it was asked again");
}

#[test]
fn whatever_a_server_does_the_kernel_is_right() {
    let server = Faulty::start();
    let mut team = Team::sharing(&format!("http://127.0.0.1:{}", server.port));
    warmed(&team, "ci", "4 compiled now");
    for (mode, about) in [
        (Mode::Status("500 Internal Server Error"), "500"),
        (Mode::Garbage, "not an ActionResult"),
        (Mode::Dies, "cannot reach"),
        (Mode::WrongBytes, "do not match the digest"),
        (Mode::Exchanged, "do not match the digest"),
        (Mode::CutShort, "cannot reach"),
        (Mode::WrongKey, "a record of another key"),
    ] {
        survives(&team, &server, mode, about);
    }
    team.remote = team.remote.replace("timeout=100", "timeout=1");
    survives(&team, &server, Mode::BlackHole, "did not answer within 1 s");
    let nobody = servers::free_port();
    team.remote = format!("http://127.0.0.1:{nobody}");
    let (found, _, said) = team.compiled_on("alone");
    assert!(
        found == "made" && said.contains("cannot reach"),
        "{found}: {said}"
    );
}

#[test]
fn programs_share_without_a_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = servers::nginx(&folder.path().join("nginx"), None);
    let url = format!("http://127.0.0.1:{}/kernels", server.port);
    let on = |machine: &str| {
        let settings = CacheSettings::in_folder(&folder.path().join(machine));
        let layer = Layer::at(&url).expect("a layer");
        let shared =
            SharedCache::open(vec![layer], || settings.open_first_written()).expect("a folder");
        let shared = shared.expect("a layer is given");
        let compiler = Compiler::open(&nvrtc()).expect("NVRTC");
        let upstream: Arc<dyn Upstream> = Arc::new(shared.clone());
        (
            KernelCache::with(compiler, settings, Some(upstream)),
            shared,
        )
    };
    let images = |cache: &KernelCache| -> Vec<Arc<[u8]>> {
        let target: Target = "sm_90".parse().expect("a target");
        let ask = |n: usize| {
            let parameters = format!("#define N {n}");
            let asked = cache.get_image(
                &parameters,
                "scale<int>",
                SCALE,
                target,
                &CallLimits::default(),
            );
            asked.expect("it compiles").compiled.image.clone()
        };
        // Several requests at a time, as programs make them.
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || ask(n % 4))).collect();
            threads
                .into_iter()
                .map(|t| t.join().expect("a thread"))
                .collect()
        })
    };
    let (first, shared) = on("first");
    let made = images(&first);
    assert_eq!(first.counts().made, 4);
    assert!(
        shared.settle(Duration::from_secs(60)) && !shared.waits(),
        "{:?}",
        first.remarks()
    );
    let (second, _) = on("second");
    assert_eq!(images(&second), made);
    let Counts { shared, made, .. } = second.counts();
    assert_eq!((shared, made), (4, 0), "{:?}", second.remarks());
    assert!(second.remarks().is_empty(), "{:?}", second.remarks());
}
