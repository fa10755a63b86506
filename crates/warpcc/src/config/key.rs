//! The settings by name: in the settings file, and as environment variables.

use warpcc_remote_client::signatures;

/// A setting's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Dir,
    MaxSize,
    Jobs,
    Memory,
    Disable,
    Recache,
    Readonly,
    Nvcc,
    Log,
    BaseDir,
    RuntimeDir,
    BuildId,
    StallTimeout,
    EarlyCutoff,
    Shared,
    Remote,
    RemoteReadonly,
    RemoteTrustedKeys,
    RemoteSigner,
    RemoteSignerFile,
    RemoteSignerCommand,
    Executor,
    ExecutorJobs,
    ExecutorAlways,
    ExecutorProperties,
    ExecutorInstalled,
    ExecutorToken,
    ExecutorTokenFile,
    ExecutorHeaders,
    ExecutorHelper,
    ExecutorRoots,
    ExecutorCertificate,
    ExecutorIdentity,
}

impl Key {
    pub(super) const ALL: [Self; 33] = [
        Self::Dir,
        Self::MaxSize,
        Self::Jobs,
        Self::Memory,
        Self::Disable,
        Self::Recache,
        Self::Readonly,
        Self::Nvcc,
        Self::Log,
        Self::BaseDir,
        Self::RuntimeDir,
        Self::BuildId,
        Self::StallTimeout,
        Self::EarlyCutoff,
        Self::Shared,
        Self::Remote,
        Self::RemoteReadonly,
        Self::RemoteTrustedKeys,
        Self::RemoteSigner,
        Self::RemoteSignerFile,
        Self::RemoteSignerCommand,
        Self::Executor,
        Self::ExecutorJobs,
        Self::ExecutorAlways,
        Self::ExecutorProperties,
        Self::ExecutorInstalled,
        Self::ExecutorToken,
        Self::ExecutorTokenFile,
        Self::ExecutorHeaders,
        Self::ExecutorHelper,
        Self::ExecutorRoots,
        Self::ExecutorCertificate,
        Self::ExecutorIdentity,
    ];

    /// The key in the settings file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dir => "dir",
            Self::MaxSize => "max_size",
            Self::Jobs => "jobs",
            Self::Memory => "memory",
            Self::Disable => "disable",
            Self::Recache => "recache",
            Self::Readonly => "readonly",
            Self::Nvcc => "nvcc",
            Self::Log => "log",
            Self::BaseDir => "base_dir",
            Self::RuntimeDir => "runtime_dir",
            Self::BuildId => "build_id",
            Self::StallTimeout => "stall_timeout",
            Self::EarlyCutoff => "early_cutoff",
            Self::Shared => "shared",
            Self::Remote => "remote",
            Self::RemoteReadonly => "remote_readonly",
            Self::RemoteTrustedKeys => "remote_trusted_keys",
            Self::RemoteSigner => "remote_signing_key",
            Self::RemoteSignerFile => "remote_signing_key_file",
            Self::RemoteSignerCommand => "remote_signing_key_command",
            Self::Executor => "executor",
            Self::ExecutorJobs => "executor_jobs",
            Self::ExecutorAlways => "executor_always",
            Self::ExecutorProperties => "executor_properties",
            Self::ExecutorInstalled => "executor_installed",
            Self::ExecutorToken => "executor_token",
            Self::ExecutorTokenFile => "executor_token_file",
            Self::ExecutorHeaders => "executor_headers",
            Self::ExecutorHelper => "executor_helper",
            Self::ExecutorRoots => "executor_roots",
            Self::ExecutorCertificate => "executor_certificate",
            Self::ExecutorIdentity => "executor_key",
        }
    }

    /// The environment variable.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Dir => "WARPCC_DIR",
            Self::MaxSize => "WARPCC_MAX_SIZE",
            Self::Jobs => "WARPCC_JOBS",
            Self::Memory => "WARPCC_MEMORY",
            Self::Disable => "WARPCC_DISABLE",
            Self::Recache => "WARPCC_RECACHE",
            Self::Readonly => "WARPCC_READONLY",
            Self::Nvcc => "WARPCC_NVCC",
            Self::Log => "WARPCC_LOG",
            Self::BaseDir => "WARPCC_BASE_DIR",
            Self::RuntimeDir => "WARPCC_RUNTIME_DIR",
            Self::BuildId => "WARPCC_BUILD_ID",
            Self::StallTimeout => "WARPCC_STALL_TIMEOUT",
            Self::EarlyCutoff => "WARPCC_EARLY_CUTOFF",
            Self::Shared => "WARPCC_SHARED",
            Self::Remote => "WARPCC_REMOTE",
            Self::RemoteReadonly => "WARPCC_REMOTE_READONLY",
            Self::RemoteTrustedKeys => signatures::TRUSTED_KEYS,
            Self::RemoteSigner => signatures::SIGNING_KEY,
            Self::RemoteSignerFile => signatures::SIGNING_KEY_FILE,
            Self::RemoteSignerCommand => signatures::SIGNING_KEY_COMMAND,
            Self::Executor => "WARPCC_EXECUTOR",
            Self::ExecutorJobs => "WARPCC_EXECUTOR_JOBS",
            Self::ExecutorAlways => "WARPCC_EXECUTOR_ALWAYS",
            Self::ExecutorProperties => "WARPCC_EXECUTOR_PROPERTIES",
            Self::ExecutorInstalled => "WARPCC_EXECUTOR_INSTALLED",
            Self::ExecutorToken => "WARPCC_EXECUTOR_TOKEN",
            Self::ExecutorTokenFile => "WARPCC_EXECUTOR_TOKEN_FILE",
            Self::ExecutorHeaders => "WARPCC_EXECUTOR_HEADERS",
            Self::ExecutorHelper => "WARPCC_EXECUTOR_HELPER",
            Self::ExecutorRoots => "WARPCC_EXECUTOR_ROOTS",
            Self::ExecutorCertificate => "WARPCC_EXECUTOR_CERTIFICATE",
            Self::ExecutorIdentity => "WARPCC_EXECUTOR_KEY",
        }
    }

    /// The setting that a settings file calls `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The setting whose name looks most like `name`.
    pub(super) fn nearest(name: &str) -> Self {
        Self::best(|key| likeness(name, key.name()))
    }

    /// The setting that was probably meant by `name` in a table: `executor_jobs` by `jobs` in `[executor]`, `dir` by `dir`
    /// in `[cache]`. If no name is like it, the table's own.
    pub(super) fn nearest_in(table: &str, name: &str) -> Self {
        let score = |key: Self| {
            let prefix = format!("{table}_");
            let rest = key.name().strip_prefix(prefix.as_str());
            likeness(name, rest.unwrap_or_else(|| key.name()))
        };
        let best = Self::best(score);
        match score(best) > 0.8 {
            true => best,
            false => Self::nearest(table),
        }
    }

    fn best(score: impl Fn(Self) -> f64) -> Self {
        Self::ALL
            .into_iter()
            .max_by(|a, b| score(*a).total_cmp(&score(*b)))
            .unwrap_or(Self::Dir)
    }
}

/// How much a key's name looks like `name`, from 0 to 1.
fn likeness(name: &str, key: &str) -> f64 {
    // `name` is foreign text: compare as the file would be fixed, in lower
    // case and with the underscores TOML users like to write as dashes.
    strsim::jaro_winkler(&name.to_lowercase().replace('-', "_"), key)
}
