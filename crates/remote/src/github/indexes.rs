//! The indexes of several bundles, read within what one look may cost: short ones first, so that huge ones hide no others.

use futures_util::future::join_all;
use reqwest::Url;

use super::Github;
use super::beginning::{self, Beginning};
use super::look::{BundleIndex, ReadAllowance};
use super::parts::Parts;
use crate::error::RemoteError;
use warpcc_remote_client::bundle_index::Bundle;

impl Github {
    /// The indexes of the bundles with these numbers, at these addresses; in no order.
    ///
    /// # Errors
    /// As all requests.
    pub(super) async fn read_indexes(
        &self,
        parts: &Parts,
        look: &mut ReadAllowance,
        entries: Vec<(u32, Url)>,
    ) -> Result<Vec<BundleIndex>, RemoteError> {
        let mut all = Vec::new();
        let (damaged, entries): (Vec<_>, Vec<_>) =
            (entries.into_iter()).partition(|(number, _)| look.is_damaged(*number));
        all.extend(
            damaged
                .into_iter()
                .map(|(number, _)| BundleIndex::Damaged(Bundle::new(number, 0))),
        );

        let begin = async |(number, url): (u32, Url)| {
            let begins = beginning::fetch(&self.service, &url).await;
            (number, url, begins)
        };
        let mut begun = Vec::new();
        for (number, url, begins) in join_all(entries.into_iter().map(begin)).await {
            match begins?.filter(|begins| begins.bundle.number() == number) {
                Some(begins) => begun.push((begins, url)),
                None => all.push(look.damaged(Bundle::new(number, 0))),
            }
        }

        begun.sort_by_key(|(begins, _)| begins.length);
        let mut fetched = Vec::new();
        for (begins, url) in begun {
            if !look.may_fetch(begins.length) {
                all.push(BundleIndex::TooMuch);
                continue;
            }
            parts.note_url(begins.bundle, &url);
            match self.fetch_index(parts, begins).await? {
                Ok(packed) => fetched.push((begins.bundle, packed)),
                Err(BundleIndex::Damaged(bundle)) => all.push(look.damaged(bundle)),
                Err(other) => all.push(other),
            }
        }

        fetched.sort_by_key(|(_, packed)| ReadAllowance::unpacked_length(packed));
        all.extend(
            fetched
                .iter()
                .map(|(bundle, packed)| look.unpack(packed, *bundle)),
        );
        Ok(all)
    }

    /// The packed index, else what else is known.
    async fn fetch_index(
        &self,
        parts: &Parts,
        begins: Beginning,
    ) -> Result<Result<Vec<u8>, BundleIndex>, RemoteError> {
        let bundle = begins.bundle;
        let mut packed = Vec::new();
        let take = |piece: &[u8]| {
            packed.extend_from_slice(piece);
            Ok(())
        };
        let name = self.name(bundle.number());
        let span = (begins.index, begins.length);
        match parts.read(&self.service, (bundle, &name), span, take).await {
            Ok(true) => Ok(Ok(packed)),
            // It is shorter than it says.
            Ok(false) => Ok(Err(BundleIndex::Damaged(bundle))),
            Err(RemoteError::Answer { .. }) => Ok(Err(match parts.is_gone(bundle) {
                true => BundleIndex::Damaged(bundle),
                false => BundleIndex::Unavailable,
            })),
            Err(fault) => Err(fault),
        }
    }
}
