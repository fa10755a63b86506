//! Connects a cache of the C interface with the shared caches of the build, if this library was built with them (feature
//! `remote`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warpcc_rtc::{CacheSettings, Environment, Upstream};

use crate::error::Failure;

/// Which shared caches settings name.
#[derive(Debug, Clone, Default)]
pub(crate) enum Named {
    /// No shared cache was named.
    #[default]
    Nothing,
    /// The caches of the environment or the settings file.
    Configured,
    /// The caches of this text, which was checked.
    As(String),
}

/// The shared cache behind a cache's folders.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    #[cfg(feature = "remote")]
    shared: Option<warpcc_remote::SharedCache>,
    /// Remarks about its settings.
    odd: Mutex<Vec<String>>,
}

/// Whether `named` can be used.
#[cfg(feature = "remote")]
pub(crate) fn check(named: &Named) -> Result<(), Failure> {
    match named {
        Named::Nothing | Named::Configured => Ok(()),
        Named::As(text) => {
            let environment = Environment::of_process();
            let get = |name: &str| environment.get(name)?.to_str().map(str::to_owned);
            let layers = warpcc_remote::config_file::parse_all([text.as_str()], &get);
            layers
                .map(drop)
                .map_err(|error| Failure::invalid("remote", error.to_string()))
        }
    }
}

/// Without shared caches, only `none` can be used.
#[cfg(not(feature = "remote"))]
pub(crate) fn check(named: &Named) -> Result<(), Failure> {
    match named {
        Named::Nothing => Ok(()),
        Named::As(text) if text == "none" => Ok(()),
        Named::Configured | Named::As(_) => Err(Failure::unsupported(
            "remote",
            "this library was built without shared caches: build warpcc-rtc-c with its feature `remote`",
        )),
    }
}

impl Attached {
    /// The shared cache that `named` names, for a cache with these settings. A wrong setting in the environment becomes a
    /// remark.
    #[cfg(feature = "remote")]
    pub(crate) fn open(named: &Named, environment: &Environment, kept: &CacheSettings) -> Self {
        let environment = match named {
            Named::Nothing => return Self::default(),
            Named::Configured => environment.clone(),
            Named::As(text) => environment.clone().with("WARPCC_REMOTE", text),
        };
        let get = |name: &str| environment.get(name).map(ToOwned::to_owned);
        match warpcc_remote::SharedCache::configured(&get, || kept.open_first_written()) {
            Ok(shared) => Self {
                shared,
                ..Self::default()
            },
            Err(why) => Self {
                odd: Mutex::new(vec![format!("the shared cache: {why}")]),
                ..Self::default()
            },
        }
    }

    /// No shared cache: [`check`] has refused all other names.
    #[cfg(not(feature = "remote"))]
    pub(crate) fn open(_: &Named, _: &Environment, _: &CacheSettings) -> Self {
        Self::default()
    }

    /// The upstream for another cache that uses the same shared cache.
    pub(crate) fn upstream(&self) -> Option<Arc<dyn Upstream>> {
        #[cfg(feature = "remote")]
        if let Some(shared) = self.shared.clone() {
            return Some(Arc::new(shared));
        }
        None
    }

    /// Uploads for at most `limit`. Returns whether results still wait; the reason is then a remark.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        #[cfg(feature = "remote")]
        if let Some(shared) = &self.shared {
            let unfinished = shared.flush(limit);
            let mut odd = self.odd();
            // A program that asks again gets each remark once.
            let new = |line: &String| !odd.contains(line);
            let new: Vec<_> = unfinished.into_iter().filter(new).collect();
            odd.extend(new);
            return shared.waits();
        }
        let _ = limit;
        false
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        self.odd().clone()
    }

    fn odd(&self) -> MutexGuard<'_, Vec<String>> {
        self.odd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
