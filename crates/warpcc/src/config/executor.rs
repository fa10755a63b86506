//! The settings of a Remote Execution cluster: `WARPCC_EXECUTOR` and those that begin with this name.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use warpcc_remote_client::Address;
use warpcc_remote_client::auth::Secret;

use super::key::Key;
use super::property::Property;
use super::value::{self, Raw};
use super::{Setting, SettingSource};

/// The settings of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorSettings {
    /// The cluster's address; `None` where commands run on this machine.
    pub address: Setting<Option<Address>>,
    /// How many commands of one call the cluster gets at a time.
    pub jobs: Setting<NonZeroUsize>,
    /// Whether commands go to the cluster even while this machine is idle.
    pub always: Setting<bool>,
    /// The platform properties that its workers must have.
    pub properties: Setting<Vec<Property>>,
    /// Tools, by their names in reports, that workers with the properties have at the same paths as this machine.
    pub installed: Setting<Vec<String>>,
    /// A bearer token.
    pub token: Setting<Option<Secret>>,
    /// A file with a bearer token.
    pub token_file: Setting<Option<PathBuf>>,
    /// A file with headers, `NAME: VALUE` in each line.
    pub headers: Setting<Option<PathBuf>>,
    /// A credential helper.
    pub helper: Setting<Option<PathBuf>>,
    /// The certificate authorities to trust, PEM.
    pub roots: Setting<Option<PathBuf>>,
    /// Our certificate, PEM.
    pub certificate: Setting<Option<PathBuf>>,
    /// Its key, PEM.
    pub key: Setting<Option<PathBuf>>,
}

/// The default number of commands: a cluster has more room than a machine, but each command waits in a thread.
const JOBS: usize = 32;

impl Default for ExecutorSettings {
    fn default() -> Self {
        Self {
            address: Setting::default_of(None),
            jobs: Setting::default_of(NonZeroUsize::MIN.saturating_add(JOBS - 1)),
            always: Setting::default_of(false),
            properties: Setting::default_of(Vec::new()),
            installed: Setting::default_of(Vec::new()),
            token: Setting::default_of(None),
            token_file: Setting::default_of(None),
            headers: Setting::default_of(None),
            helper: Setting::default_of(None),
            roots: Setting::default_of(None),
            certificate: Setting::default_of(None),
            key: Setting::default_of(None),
        }
    }
}

impl ExecutorSettings {
    /// The properties that workers must have for `tool`, a tool's name in reports.
    pub fn properties_of(&self, tool: &str) -> impl Iterator<Item = &Property> {
        let all = self.properties.value.iter();
        all.filter(move |property| property.tool.as_deref().is_none_or(|of| of == tool))
    }

    /// Whether a property picks workers for this tool.
    pub fn promises(&self, tool: &str) -> bool {
        self.properties_of(tool).next().is_some()
    }

    /// Reads one of these settings; `None` where `key` is another setting.
    pub(super) fn set(
        &mut self,
        key: Key,
        raw: &Raw,
        source: &SettingSource,
        home: Option<&Path>,
    ) -> Option<Result<(), &'static str>> {
        let path = |setting: &mut Setting<Option<PathBuf>>| {
            value::path(raw, home).map(|v| setting.assign(Some(v), source))
        };
        Some(match key {
            Key::Executor => value::address(raw).map(|v| self.address.assign(Some(v), source)),
            Key::ExecutorJobs => value::jobs(raw).map(|v| self.jobs.assign(v, source)),
            Key::ExecutorAlways => value::flag(raw).map(|v| self.always.assign(v, source)),
            Key::ExecutorProperties => {
                value::properties(raw).map(|v| self.properties.assign(v, source))
            }
            Key::ExecutorInstalled => value::tools(raw).map(|v| self.installed.assign(v, source)),
            Key::ExecutorToken => {
                value::text(raw).map(|v| self.token.assign(Some(Secret::new(&v)), source))
            }
            Key::ExecutorTokenFile => path(&mut self.token_file),
            Key::ExecutorHeaders => path(&mut self.headers),
            Key::ExecutorHelper => path(&mut self.helper),
            Key::ExecutorRoots => path(&mut self.roots),
            Key::ExecutorCertificate => path(&mut self.certificate),
            Key::ExecutorIdentity => path(&mut self.key),
            _ => return None,
        })
    }

    /// One of these settings as text, with its source; `None` where `key` is another setting.
    pub(super) fn row(&self, key: Key) -> Option<(String, &SettingSource)> {
        let path = |setting: &Setting<Option<PathBuf>>| {
            let path = setting.value.as_ref();
            path.map(|p| p.display().to_string()).unwrap_or_default()
        };
        Some(match key {
            Key::Executor => {
                let address = self.address.value.as_ref().map(Address::to_string);
                (address.unwrap_or_default(), &self.address.source)
            }
            Key::ExecutorJobs => (self.jobs.value.to_string(), &self.jobs.source),
            Key::ExecutorAlways => (self.always.value.to_string(), &self.always.source),
            Key::ExecutorProperties => {
                let shown = self.properties.value.iter().map(|property| {
                    let tool = property.tool.as_ref().map(|tool| format!("{tool}:"));
                    let tool = tool.unwrap_or_default();
                    format!("{tool}{}={}", property.name, property.value)
                });
                (shown.collect::<Vec<_>>().join(","), &self.properties.source)
            }
            Key::ExecutorInstalled => (self.installed.value.join(","), &self.installed.source),
            Key::ExecutorToken => self.token.hidden_row(),
            Key::ExecutorTokenFile => (path(&self.token_file), &self.token_file.source),
            Key::ExecutorHeaders => (path(&self.headers), &self.headers.source),
            Key::ExecutorHelper => (path(&self.helper), &self.helper.source),
            Key::ExecutorRoots => (path(&self.roots), &self.roots.source),
            Key::ExecutorCertificate => (path(&self.certificate), &self.certificate.source),
            Key::ExecutorIdentity => (path(&self.key), &self.key.source),
            _ => return None,
        })
    }
}
