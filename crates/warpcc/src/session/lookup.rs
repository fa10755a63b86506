//! Looks a call up in the caches, and waits for other processes that build the same call.

use std::cell::OnceCell;

use warpcc_cache::{DiskStore, Key, KeyVariants};
use warpcc_plan::Unsupported;
use warpcc_remote_client::SharedCaches;

use super::call::Call;
use crate::content_key::ContentKey;
use crate::direct::{self, DirectLookup};
use crate::request::Request;
use crate::scratch::{NameUse, Scratch, ScratchOptions};
use crate::signals::Interrupt;

/// What a miss does after it has waited for other processes with the same call.
pub(super) enum AfterWait {
    /// Another process has stored the result, which took this many microseconds of processor time to make.
    Hit(u64),
    /// This process has to build the result, in this scratch folder.
    Build(Scratch),
}

/// Finds the result of a call without building it.
pub(super) struct CallLookup<'a> {
    call: Call<'a>,
    request: &'a Request,
    keys: &'a KeyVariants,
    /// They are computed only after the first miss, because they need the source's content.
    content_keys: OnceCell<Vec<ContentKey>>,
}

impl<'a> CallLookup<'a> {
    pub(super) fn new(call: Call<'a>, request: &'a Request, keys: &'a KeyVariants) -> Self {
        Self {
            call,
            request,
            keys,
            content_keys: OnceCell::new(),
        }
    }

    /// The call's content keys; empty without a cache.
    pub(super) fn content_keys(&self) -> &[ContentKey] {
        self.content_keys.get_or_init(|| match self.call.store() {
            Some(_) => ContentKey::all_of(self.request),
            None => Vec::new(),
        })
    }

    /// Looks the call up in the cache on this disk, first under its direct key and then under its content keys.
    pub(super) fn look_up(&self, looks_up: bool) -> DirectLookup {
        let Some(store) = self.call.store().filter(|_| looks_up) else {
            return DirectLookup::Miss(None);
        };
        let direct = self.look_up_as(store, self.request, self.keys);
        if !matches!(direct, DirectLookup::Miss(_)) {
            return direct;
        }
        for content_key in self.content_keys() {
            if let DirectLookup::Hit(micros) =
                self.look_up_as(store, &content_key.request, &content_key.keys)
            {
                self.call.log.line(|| {
                    "made by a call that compiled the same source in another folder".to_owned()
                });
                return DirectLookup::Hit(micros);
            }
        }
        direct
    }

    /// Asks the shared caches for the direct key and the content keys, all at once. True if a look-up on disk may hit now.
    pub(super) fn fetch(&self, shared: &SharedCaches, store: &DiskStore) -> bool {
        let mut candidates = vec![(self.request, self.keys)];
        candidates.extend(
            self.content_keys()
                .iter()
                .map(|content_key| (&content_key.request, &content_key.keys)),
        );
        direct::fetch(shared, store, &candidates)
    }

    fn look_up_as(&self, store: &DiskStore, request: &Request, keys: &KeyVariants) -> DirectLookup {
        let found = direct::look_up(store, request, keys);
        let log = self.call.log;
        match &found {
            Ok(DirectLookup::Miss(Some(difference))) => {
                log.line(|| format!("no direct hit: {difference}"));
            }
            Ok(_) => {}
            Err(error) => log.line(|| format!("direct hit not usable: {error}")),
        }
        found.unwrap_or(DirectLookup::Miss(None))
    }

    /// Waits for another process that builds the same call, and looks the call up once more. After a miss, takes the scratch
    /// folder to build in.
    ///
    /// Calls with the same content key wait for the first one of them. When it ends, the others look its result up. If it
    /// could not be shared, they all build at the same time. They do not wait if the last call with these options could not
    /// share its result.
    pub(super) fn wait_for_same_call(
        &self,
        looks_up: bool,
        interrupt: &Interrupt,
    ) -> Result<AfterWait, Unsupported> {
        let own = self.keys.base();
        let store = self.call.store().filter(|_| looks_up);
        let shares =
            |content_key: &&ContentKey| store.is_some_and(|store| content_key.may_share(store));
        let shared = self.content_keys().iter().find(shares);
        if let Some(shared) = shared.map(|content_key| content_key.keys.base()) {
            let (scratch, waited) = self.open_scratch(shared, interrupt)?;
            if !waited {
                return Ok(AfterWait::Build(scratch));
            }
            if let DirectLookup::Hit(micros) = self.look_up(looks_up) {
                return Ok(AfterWait::Hit(micros));
            }
        }
        let (scratch, waited) = self.open_scratch(own, interrupt)?;
        match self.look_up(looks_up && waited) {
            DirectLookup::Hit(micros) => Ok(AfterWait::Hit(micros)),
            _ => Ok(AfterWait::Build(scratch)),
        }
    }

    /// The scratch folder of this name, and whether this process waited for another one that used it.
    fn open_scratch(
        &self,
        name: Key,
        interrupt: &Interrupt,
    ) -> Result<(Scratch, bool), Unsupported> {
        let options = ScratchOptions {
            temporary: &self.request.temporary(),
            name: &name.hex()[..16],
            name_use: NameUse::with_debug(self.request.invocation.debug),
        };
        let opened = Scratch::open(&options, &interrupt.scratch, self.call.log);
        let advice = match &opened {
            Ok((scratch, _)) => scratch.advice(),
            Err(error) => error.advice(),
        };
        if let Some(advice) = advice {
            self.call.recorder.warn_once(&advice);
        }
        opened.map_err(|error| Unsupported::new(error.reason(), error.to_string()))
    }
}
