//! Settings end to end: variables and a real file in, values and messages out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warpcc_remote_client::settings::Access;

use super::{Config, LogTarget, SettingSource};

/// An environment made of `pairs`.
fn env(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), OsString::from(v)))
        .collect();
    move |name| {
        pairs
            .iter()
            .find(|(k, _)| k == name)
            .map(|(_, v)| v.clone())
    }
}

/// Load with this settings file; the error text has its path replaced by FILE.
pub(super) fn with_file(text: &str, pairs: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    let shown = path.to_str().unwrap().to_owned();
    let mut pairs = pairs.to_vec();
    pairs.extend([("HOME", "/home/ada"), ("WARPCC_CONFIG", &shown)]);
    Config::load(env(&pairs)).map_err(|error| error.to_string().replace(&shown, "FILE"))
}

#[test]
fn nothing_set_gives_the_defaults() {
    let config = Config::load(env(&[("HOME", "/home/ada")])).unwrap();
    assert_eq!(config.dir.value, Path::new("/home/ada/.cache/warpcc"));
    assert_eq!(config.max_size.value.bytes(), Some(20 << 30));
    assert!(config.job_limit().get() >= 1);
    assert!(
        config
            .rows()
            .iter()
            .all(|row| row.source == SettingSource::Default)
    );
}

#[test]
fn xdg_folders_are_used_and_relative_ones_are_not() {
    let config = Config::load(env(&[
        ("HOME", "/home/ada"),
        ("XDG_CACHE_HOME", "/fast/cache"),
    ]))
    .unwrap();
    assert_eq!(config.dir.value, Path::new("/fast/cache/warpcc"));
    let config = Config::load(env(&[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "cache")])).unwrap();
    assert_eq!(config.dir.value, Path::new("/home/ada/.cache/warpcc"));
}

#[test]
fn a_home_is_needed_only_for_the_cache_folder() {
    assert!(
        Config::load(env(&[]))
            .unwrap_err()
            .to_string()
            .contains("WARPCC_DIR")
    );
    assert!(Config::load(env(&[("WARPCC_DIR", "/c")])).is_ok());
    assert!(Config::load(env(&[("WARPCC_DIR", "/c"), ("HOME", "/dev/null")])).is_ok());
}

#[test]
fn the_environment_wins_over_the_file_and_both_are_remembered() {
    let text = "# mine\nmax_size = \"5G\"\njobs = 3\nlog = \"stderr\"\nbase_dir = [\"~/src\", \"/b\", \"auto\"]\n";
    let config = with_file(text, &[("WARPCC_JOBS", "7"), ("WARPCC_BASE_DIR", "")]).unwrap();
    assert_eq!(config.job_limit().get(), 7);
    assert_eq!(
        config.jobs.source,
        SettingSource::Environment("WARPCC_JOBS")
    );
    assert_eq!(config.max_size.value.bytes(), Some(5 << 30));
    assert!(matches!(
        config.max_size.source,
        SettingSource::File { line: 2, .. }
    ));
    assert_eq!(config.log.value, Some(LogTarget::Stderr));
    assert_eq!(
        config.base_dir.value.folders,
        [PathBuf::from("/home/ada/src"), PathBuf::from("/b")]
    );
    assert!(config.base_dir.value.auto);
}

/// No shell has replaced it in a variable of a CI file.
#[test]
fn a_tilde_is_the_home_in_variables_too() {
    let tildes = [
        ("WARPCC_DIR", "~/c"),
        ("WARPCC_LOG", "~/log"),
        ("WARPCC_BASE_DIR", "~/src:auto:~"),
        ("WARPCC_RUNTIME_DIR", "~"),
    ];
    let with = |home: &str| {
        let mut pairs = tildes.to_vec();
        pairs.push(("HOME", home));
        Config::load(env(&pairs))
    };
    let config = with("/home/ada").unwrap();
    assert_eq!(config.dir.value, Path::new("/home/ada/c"));
    assert_eq!(
        config.log.value,
        Some(LogTarget::File("/home/ada/log".into()))
    );
    assert_eq!(
        config.base_dir.value.folders,
        [PathBuf::from("/home/ada/src"), PathBuf::from("/home/ada")]
    );
    assert_eq!(config.runtime_dir.value, Some("/home/ada".into()));
    for home in ["", "ada"] {
        assert_eq!(
            with(home).unwrap_err().to_string(),
            "WARPCC_DIR: `~/c` begins with ~, but HOME is not set to an absolute path"
        );
    }
    // Of another user, or a file's name.
    let config = Config::load(env(&[("HOME", "/home/ada"), ("WARPCC_LOG", "~ada/log")])).unwrap();
    assert_eq!(config.log.value, Some(LogTarget::File("~ada/log".into())));
}

#[test]
fn flags_take_the_usual_words() {
    for (text, expected) in [("1", true), ("ON", true), ("no", false), ("0", false)] {
        let config = with_file("", &[("WARPCC_DISABLE", text)]).unwrap();
        assert_eq!(config.disable.value, expected, "{text}");
    }
}

#[test]
fn seconds_are_whole_and_none_means_for_ever() {
    let of = |text: &str| with_file(text, &[]).unwrap().stall_timeout.value;
    assert_eq!(of(""), Some(Duration::from_secs(300)));
    assert_eq!(of("stall_timeout = 7"), Some(Duration::from_secs(7)));
    assert_eq!(of("stall_timeout = \"0\""), None);
    assert!(with_file("stall_timeout = -1", &[]).is_err());
}

#[test]
fn mistakes_name_their_place() {
    let of = |text: &str| with_file(text, &[]).unwrap_err();
    assert_eq!(
        of("jobs = 2\nmaxsize = 1\n"),
        "FILE:2: unknown setting `maxsize`, did you mean `max_size`?"
    );
    assert_eq!(
        of("\n[cache]\n# where\ndir = 1\n"),
        "FILE:4: unknown setting `cache.dir`, did you mean `dir`?"
    );
    assert_eq!(
        of("[recache]\nmax-size = 1\n"),
        "FILE:2: unknown setting `recache.max-size`, did you mean `max_size`?"
    );
    assert_eq!(
        of("[executor]\njobs = 1\n"),
        "FILE:2: unknown setting `executor.jobs`, did you mean `executor_jobs`?"
    );
    assert_eq!(
        of("executor = { address = \"grpc://h:1\" }\n"),
        "FILE:1: unknown setting `executor.address`, did you mean `executor`?"
    );
    assert_eq!(
        of("\n\njobs = 0\n"),
        "FILE:3: jobs: `0` is not a number of jobs (a whole number from 1)"
    );
    assert_eq!(
        of("dir = \"x\"\n"),
        "FILE:1: dir: `x` is not an absolute path"
    );
    assert_eq!(
        of("disable = 1979-05-27\n"),
        "FILE:1: disable: `1979-05-27` is neither true nor false (write 1 or 0)"
    );
    assert!(of("jobs = 2\njobs = = 3\n").starts_with("FILE:2: not TOML: "));
    assert_eq!(
        with_file("", &[("WARPCC_MAX_SIZE", "many")]).unwrap_err(),
        "WARPCC_MAX_SIZE: `many` is not a size (like 5G or 500MiB; 0 for no limit)"
    );
}

#[test]
fn a_named_settings_file_must_exist() {
    let error = Config::load(env(&[("HOME", "/h"), ("WARPCC_CONFIG", "/nowhere/c.toml")]));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("/nowhere/c.toml: cannot read")
    );
}

#[test]
fn shared_caches_from_the_file_and_over_it() {
    let text = "[remote]\ntimeout = 1.5\nlayers = [\n  \"file:/near\",\n  \
                { url = \"https://u:hunter2@far/x\", read_only = true, timeout = 9 },\n]\n";
    let config = with_file(text, &[]).unwrap();
    let layers = config.layers();
    assert_eq!(layers.len(), 2);
    assert_eq!(layers[0].answer.as_millis(), 1500);
    assert_eq!(layers[1].answer.as_secs(), 9);
    assert_eq!(layers[0].access, Access::ReadWrite);
    assert_eq!(layers[1].access, Access::ReadOnly);
    let shown = config.rows();
    let shown = shown.iter().find(|row| row.name == "remote").unwrap();
    assert_eq!(shown.value, "file:///near https://far/x");
    assert!(!format!("{config:?}").contains("hunter2"));

    let config = with_file(text, &[("WARPCC_REMOTE_READONLY", "1")]).unwrap();
    let layers = config.layers();
    assert!(layers.iter().all(|l| l.access == Access::ReadOnly));
    let config = with_file(text, &[("WARPCC_REMOTE", "none")]).unwrap();
    assert!(config.layers().is_empty());
    let config = with_file("remote = [\"file:/a\", \"file:/b\"]", &[]).unwrap();
    assert_eq!(config.layers().len(), 2);
}

#[test]
fn a_wrong_shared_cache_is_told_without_its_secrets() {
    for (text, told) in [
        (
            "remote = 7",
            "FILE:1: remote: `remote` must be a URL, a list of URLs, or a table with `layers`",
        ),
        (
            "[remote]\nlayers = [{ ca = \"/x\" }]",
            "FILE:2: remote: `a table of layers` has no url",
        ),
        (
            "remote = \"ftp://u:hunter2@h/\"",
            "`ftp://h/` is not a supported kind",
        ),
        (
            "[remote]\nlayers = [{ url = \"http://h\", tokenfile = \"hunter2\" }]",
            "FILE:2: unknown setting `remote.layers.tokenfile`, did you mean `token_file`?",
        ),
        (
            "jobs = 2\n[remote]\nlayers = [\"http://h\"]\nread-onli = \"hunter2\"",
            "FILE:4: unknown setting `remote.read-onli`, did you mean `read_only`?",
        ),
        (
            "[remote]\ntimeout = 1\nlayrs = [\"http://h\"]",
            "FILE:3: unknown setting `remote.layrs`, did you mean `layers`?",
        ),
        (
            "[remote]\nurl = \"http://u:hunter2@h\"",
            "FILE:1: remote has no list `layers` of URLs or tables",
        ),
        (
            "[remote]\nlayers = [\"http://h\"]\ntimeout = \"hunter2\"",
            "FILE:3: remote: `timeout of http://h/` is not a number of seconds",
        ),
        (
            "remote = [\"http://h|tokenfile=hunter2\"]",
            "FILE:1: remote: `tokenfile of http://h/` is not a setting of a shared cache, did you mean `token_file`?",
        ),
    ] {
        let error = with_file(text, &[]).unwrap_err();
        assert!(
            error.contains(told) && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn a_signing_key_is_shown_nowhere_and_a_reader_writes_nothing() {
    let text = "remote = [\"http://a\", \"http://b|trusted-keys=none\"]\n\
                remote_trusted_keys = [\"/k\"]\n";
    let reader = with_file(text, &[]).unwrap();
    let access: Vec<_> = reader.layers().iter().map(|layer| layer.access).collect();
    assert_eq!(access, [Access::ReadOnly, Access::ReadWrite]);
    let signer = with_file(text, &[("WARPCC_REMOTE_SIGNING_KEY", "hunter2")]).unwrap();
    let layers = signer.layers();
    assert!(layers[0].access == Access::ReadWrite && layers[1].untrusted);
    let shown: String = signer.rows().iter().map(|row| row.value.clone()).collect();
    assert!(!shown.contains("hunter2") && !format!("{signer:?}").contains("hunter2"));
    let error = with_file("remote_signing_key = [\"hunter2\"]", &[]).unwrap_err();
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn tools_of_the_workers_count_where_a_property_picks_these() {
    let text =
        "executor_installed = [\"host\", \"cicc\"]\nexecutor_properties = [\"cicc:image=cuda\"]\n";
    let config = with_file(text, &[]).unwrap();
    assert_eq!(config.executor.installed.value, ["host", "cicc"]);
    assert!(config.executor.promises("cicc"));
    assert!(!config.executor.promises("host"));
    let config = with_file(text, &[("WARPCC_EXECUTOR_INSTALLED", " ptxas,")]).unwrap();
    assert_eq!(config.executor.installed.value, ["ptxas"]);
    let error = with_file("executor_installed = [\"nvlink\"]\n", &[]).unwrap_err();
    assert!(
        error.contains("executor_installed") && error.contains("fatbinary"),
        "{error}"
    );
}
