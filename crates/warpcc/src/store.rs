//! Opens the cache's folder, as the settings say.

use anyhow::Context;
use warpcc_cache::{DiskStore, OpenError, Options, StoreAccess};

use crate::config::Config;

/// Opens the cache. Prints a warning if it cannot be used, because a cache never fails a build.
pub fn open_store(config: &Config) -> Option<DiskStore> {
    match try_open(config) {
        Ok(store) => {
            warn_if_closed(&store);
            Some(store)
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            crate::log::warn(&format!("no cache: {error:#}"));
            None
        }
    }
}

fn warn_if_closed(store: &DiskStore) {
    if store.was_closed() {
        crate::log::warn(&format!(
            "other users could write to the cache folder {}, and now cannot: `shared = true` lets them, \
             `warpcc cache clear` removes what they may have put there",
            store.root().display()
        ));
    }
}

/// As [`open_store`], without a warning.
pub fn open_quietly(config: &Config) -> Option<DiskStore> {
    try_open(config).ok()
}

/// Opens the cache.
///
/// # Errors
/// Its path is not a folder, or other users could change what is in it.
pub fn try_open(config: &Config) -> Result<DiskStore, OpenError> {
    let options = Options {
        max_size: config.max_size.value.bytes().unwrap_or(0),
        readonly: config.readonly.value,
    };
    let access = match config.shared.value {
        true => StoreAccess::ByUmask,
        false => StoreAccess::Private,
    };
    DiskStore::open_for(&config.dir.value, options, access)
}

/// Opens the cache, for a command that needs it.
///
/// # Errors
/// Its folder cannot be created or read, or others could change what is in it.
pub fn need_store(config: &Config) -> anyhow::Result<DiskStore> {
    let open = || {
        let store = try_open(config)?;
        store.check_folder()?;
        anyhow::Ok(store)
    };
    let store = open().with_context(|| {
        format!(
            "the cache folder {} cannot be used",
            config.dir.value.display()
        )
    })?;
    warn_if_closed(&store);
    Ok(store)
}
