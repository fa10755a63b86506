//! The settings, and where each was set: the only reader of environment and settings file.
//!
//! Knows nothing of nvcc, the cache's layout or the command line. The launcher loads the settings for every compilation, so this
//! is fast: without a settings file it costs one failed `open`, and limits of the machine are read only when they are needed.

mod edit;
mod environment;
mod error;
mod executor;
mod file;
mod key;
mod property;
mod setting;
mod signatures;
mod size;
mod unknown;
mod value;

use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use edit::{EditedFile, edit};
#[cfg(debug_assertions)]
pub use environment::switch_guards_off;
pub use environment::{BEHIND, NoColor, environment, no_color, ourselves, variable};
pub use error::ConfigError;
pub use executor::ExecutorSettings;
pub use setting::{LogTarget, Setting, SettingRow, SettingSource};
pub use signatures::SignatureSettings;
pub use size::{MaxSize, format_bytes};
pub use unknown::unknown_variables;

use key::Key;
use value::Raw;
use warpcc_budget::BudgetLimits;
use warpcc_path_map::BaseDirs;
use warpcc_remote_client::settings::Access;
use warpcc_remote_client::{Layer, layer_policy};

/// No tool is known that makes no progress for so long and then goes on.
const STALL_TIMEOUT: Duration = Duration::from_secs(300);

/// Every setting, with its value and the place it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The folder that holds the cache.
    pub dir: Setting<PathBuf>,
    /// How large the cache may grow.
    pub max_size: Setting<MaxSize>,
    /// How many commands may run at once, of all calls together; `None` asks the machine (see [`Config::job_limit`]).
    pub jobs: Setting<Option<NonZeroUsize>>,
    /// How much memory all commands together may need; `None` asks the machine.
    pub memory: Setting<Option<MaxSize>>,
    /// Run plain nvcc and do nothing else.
    pub disable: Setting<bool>,
    /// Ignore stored results, but store new ones.
    pub recache: Setting<bool>,
    /// Use stored results, but store nothing.
    pub readonly: Setting<bool>,
    /// The nvcc to run where the command line does not name one.
    pub nvcc: Setting<Option<PathBuf>>,
    /// Where to write what warpcc did.
    pub log: Setting<Option<LogTarget>>,
    /// Folders whose paths are replaced by fixed names in keys and results.
    pub base_dir: Setting<BaseDirs>,
    /// The folder of the budget, which all calls share; `None` for the usual one.
    pub runtime_dir: Setting<Option<PathBuf>>,
    /// The build that a call belongs to; `None` derives it from the process that started the call.
    pub build_id: Setting<Option<String>>,
    /// How long a step may make no progress before it is ended; `None` for no limit.
    pub stall_timeout: Setting<Option<Duration>>,
    /// Whether cicc runs in two halves, the second of which is left out where its input is known.
    pub early_cutoff: Setting<bool>,
    /// Whether other users share the cache's folder.
    pub shared: Setting<bool>,
    /// The shared caches, near to far.
    pub remote: Setting<Vec<Layer>>,
    /// Upload nothing to any shared cache, regardless of each one's own setting.
    pub remote_readonly: Setting<bool>,
    /// The key that signs uploads, and the keys whose signatures are trusted.
    pub signatures: SignatureSettings,
    /// The cluster that commands may run on.
    pub executor: ExecutorSettings,
    /// The path of the settings file, which may not exist; `None` without a home folder.
    pub file: Option<PathBuf>,
}

impl Config {
    /// Read the environment through `env`, and the settings file it points to.
    ///
    /// The environment wins over the file, the file over the defaults. A variable
    /// set to nothing counts as not set.
    pub fn load(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let env = |name: &str| env(name).filter(|value| !value.is_empty());
        let home = absolute(env("HOME"));
        let mut config = Self::defaults();
        let mut dir_given = false;

        let file = settings_file(env, home.as_deref());
        if let Some((path, must_exist)) = file {
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    for entry in file::parse(&path, &text)? {
                        dir_given |= entry.key == Key::Dir;
                        config.set(entry.key, &entry.raw, entry.source, home.as_deref())?;
                    }
                }
                Err(error) if is_absent(&error) && !must_exist => {}
                Err(error) => return Err(ConfigError::Unreadable { path, error }),
            }
            config.file = Some(path);
        }

        for key in Key::ALL {
            if let Some(text) = env(key.variable()) {
                dir_given |= key == Key::Dir;
                let source = SettingSource::Environment(key.variable());
                config.set(key, &Raw::Text(text), source, home.as_deref())?;
            }
        }

        if !dir_given {
            config.dir.value = xdg(env, "XDG_CACHE_HOME", home.as_deref(), ".cache")
                .ok_or(ConfigError::NoHome)?
                .join("warpcc");
        }
        Ok(config)
    }

    /// How many commands may run at once: the setting, or what the machine has.
    pub fn job_limit(&self) -> NonZeroUsize {
        self.jobs
            .value
            .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// The part of the machine that all calls together may use, as this call sees it.
    pub fn limits(&self) -> BudgetLimits {
        let mut limits = BudgetLimits::detect();
        if let Some(jobs) = self.jobs.value {
            limits.slots = u32::try_from(jobs.get()).unwrap_or(u32::MAX);
        }
        if let Some(memory) = self.memory.value {
            limits.memory_kib = memory.bytes().unwrap_or(u64::MAX) / 1024;
        }
        limits
    }

    /// The shared caches, near to far, as they are to be used.
    pub fn layers(&self) -> Vec<Layer> {
        let mut layers = self.remote.value.clone();
        if layers.is_empty() {
            return layers;
        }
        layer_policy::apply(&mut layers, &self.signatures.defaults());
        let dir = &self.dir.value;
        let none = self.remote_readonly.value || warpcc_cache::is_never_uploaded(dir);
        let only_untrusted = warpcc_cache::is_untrusted(dir);
        for layer in &mut layers {
            if none || (only_untrusted && !layer.untrusted) {
                layer.access = Access::ReadOnly;
            }
        }
        layers
    }

    /// Every setting as text, in the order of the documentation.
    pub fn rows(&self) -> Vec<SettingRow> {
        Key::ALL.map(|key| self.row(key)).into()
    }

    fn defaults() -> Self {
        Self {
            // Replaced by `load`, the only caller, once the home folder is known.
            dir: Setting::default_of(PathBuf::new()),
            max_size: Setting::default_of(MaxSize::DEFAULT),
            jobs: Setting::default_of(None),
            memory: Setting::default_of(None),
            disable: Setting::default_of(false),
            recache: Setting::default_of(false),
            readonly: Setting::default_of(false),
            nvcc: Setting::default_of(None),
            log: Setting::default_of(None),
            base_dir: Setting::default_of(BaseDirs::default()),
            runtime_dir: Setting::default_of(None),
            build_id: Setting::default_of(None),
            stall_timeout: Setting::default_of(Some(STALL_TIMEOUT)),
            early_cutoff: Setting::default_of(false),
            shared: Setting::default_of(false),
            remote: Setting::default_of(Vec::new()),
            remote_readonly: Setting::default_of(false),
            signatures: SignatureSettings::default(),
            executor: ExecutorSettings::default(),
            file: None,
        }
    }

    /// One row per setting: how it is read.
    fn set(
        &mut self,
        key: Key,
        raw: &Raw,
        source: SettingSource,
        home: Option<&Path>,
    ) -> Result<(), ConfigError> {
        let read = self.executor.set(key, raw, &source, home);
        if let Some(read) = read.or_else(|| self.signatures.set(key, raw, &source, home)) {
            return read.map_err(|problem| ConfigError::Value {
                place: place(key, &source),
                // A malformed address or token may still contain a secret.
                value: match key {
                    Key::Executor | Key::ExecutorToken => "…".to_owned(),
                    Key::RemoteSigner | Key::RemoteSignerCommand => "…".to_owned(),
                    _ => raw.shown(),
                },
                problem: problem.into(),
            });
        }
        let read = match key {
            Key::Dir => value::folder(raw, home).map(|v| self.dir.assign(v, &source)),
            Key::MaxSize => value::max_size(raw).map(|v| self.max_size.assign(v, &source)),
            Key::Jobs => value::jobs(raw).map(|v| self.jobs.assign(Some(v), &source)),
            Key::Memory => value::max_size(raw).map(|v| self.memory.assign(Some(v), &source)),
            Key::Disable => value::flag(raw).map(|v| self.disable.assign(v, &source)),
            Key::Recache => value::flag(raw).map(|v| self.recache.assign(v, &source)),
            Key::Readonly => value::flag(raw).map(|v| self.readonly.assign(v, &source)),
            Key::Nvcc => value::path(raw, home).map(|v| self.nvcc.assign(Some(v), &source)),
            Key::Log => value::log(raw, home).map(|v| self.log.assign(Some(v), &source)),
            Key::BaseDir => value::base_dirs(raw, home).map(|v| self.base_dir.assign(v, &source)),
            Key::RuntimeDir => {
                value::path(raw, home).map(|v| self.runtime_dir.assign(Some(v), &source))
            }
            Key::BuildId => value::text(raw).map(|v| self.build_id.assign(Some(v), &source)),
            Key::StallTimeout => value::seconds(raw).map(|v| self.stall_timeout.assign(v, &source)),
            Key::EarlyCutoff => value::flag(raw).map(|v| self.early_cutoff.assign(v, &source)),
            Key::Shared => value::flag(raw).map(|v| self.shared.assign(v, &source)),
            Key::RemoteReadonly => {
                value::flag(raw).map(|v| self.remote_readonly.assign(v, &source))
            }
            Key::Remote => {
                // The value may hold credentials: the error names the part of it that is wrong.
                return match value::layers(raw) {
                    Ok(layers) => {
                        self.remote.assign(layers, &source);
                        Ok(())
                    }
                    Err(error) => Err(ConfigError::Value {
                        place: place(key, &source.in_line(error.line)),
                        value: error.at,
                        problem: error.problem,
                    }),
                };
            }
            // Read above.
            _ => Ok(()),
        };
        read.map_err(|problem| ConfigError::Value {
            place: place(key, &source),
            value: raw.shown(),
            problem: problem.into(),
        })
    }

    /// One row per setting: how it is shown.
    fn row(&self, key: Key) -> SettingRow {
        let (value, source) = match key {
            Key::Dir => (self.dir.value.display().to_string(), &self.dir.source),
            Key::MaxSize => (self.max_size.value.to_string(), &self.max_size.source),
            Key::Jobs => (self.job_limit().to_string(), &self.jobs.source),
            Key::Memory => {
                let kib = self.limits().memory_kib;
                (format_bytes(kib.saturating_mul(1024)), &self.memory.source)
            }
            Key::Disable => (self.disable.value.to_string(), &self.disable.source),
            Key::Recache => (self.recache.value.to_string(), &self.recache.source),
            Key::Readonly => (self.readonly.value.to_string(), &self.readonly.source),
            Key::Nvcc => {
                let path = self.nvcc.value.as_ref();
                (
                    path.map(|p| p.display().to_string()).unwrap_or_default(),
                    &self.nvcc.source,
                )
            }
            Key::Log => {
                let target = self.log.value.as_ref();
                (
                    target.map(LogTarget::to_string).unwrap_or_default(),
                    &self.log.source,
                )
            }
            Key::BaseDir => {
                let base = &self.base_dir.value;
                let mut shown: Vec<_> = base
                    .folders
                    .iter()
                    .map(|p| p.display().to_string())
                    .collect();
                shown.extend(base.auto.then(|| "auto".to_owned()));
                (shown.join(":"), &self.base_dir.source)
            }
            Key::RuntimeDir => {
                let path = self.runtime_dir.value.as_ref();
                (
                    path.map(|p| p.display().to_string()).unwrap_or_default(),
                    &self.runtime_dir.source,
                )
            }
            Key::BuildId => (
                self.build_id.value.clone().unwrap_or_default(),
                &self.build_id.source,
            ),
            Key::StallTimeout => {
                let seconds = self.stall_timeout.value.map_or(0, |time| time.as_secs());
                (seconds.to_string(), &self.stall_timeout.source)
            }
            Key::EarlyCutoff => (
                self.early_cutoff.value.to_string(),
                &self.early_cutoff.source,
            ),
            Key::Shared => (self.shared.value.to_string(), &self.shared.source),
            Key::Remote => {
                let shown: Vec<_> = self.remote.value.iter().map(Layer::shown).collect();
                (shown.join(" "), &self.remote.source)
            }
            Key::RemoteReadonly => (
                self.remote_readonly.value.to_string(),
                &self.remote_readonly.source,
            ),
            // Every other one is the signatures' or the executor's.
            _ => {
                let row = self.signatures.row(key).or_else(|| self.executor.row(key));
                row.unwrap_or_else(|| (String::new(), &SettingSource::Default))
            }
        };
        SettingRow {
            name: key.name(),
            variable: key.variable(),
            value,
            source: source.clone(),
        }
    }
}

/// Where a rejected value was written: file, line and key, or the variable.
fn place(key: Key, source: &SettingSource) -> String {
    match source {
        SettingSource::File { path, line } => format!("{}:{line}: {}", path.display(), key.name()),
        SettingSource::Environment(name) => (*name).to_owned(),
        SettingSource::Default => key.name().to_owned(),
    }
}

/// A base folder by the XDG rules, which ignore relative values.
fn xdg(
    env: impl Fn(&str) -> Option<OsString>,
    variable: &str,
    home: Option<&Path>,
    below_home: &str,
) -> Option<PathBuf> {
    absolute(env(variable)).or_else(|| home.map(|home| home.join(below_home)))
}

/// The path of the settings file, and whether the file must exist; nothing without a home folder.
fn settings_file(
    env: impl Fn(&str) -> Option<OsString>,
    home: Option<&Path>,
) -> Option<(PathBuf, bool)> {
    let chosen = env(unknown::FILE).map(PathBuf::from);
    let chosen = chosen.map(|path| match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    });
    match chosen {
        Some(chosen) => Some((chosen, true)),
        None => xdg(env, "XDG_CONFIG_HOME", home, ".config")
            .map(|folder| (folder.join("warpcc").join("config.toml"), false)),
    }
}

fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// `NotADirectory` too: a home of `/dev/null` is how build sandboxes say "none".
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod documents;
#[cfg(test)]
mod tests;
