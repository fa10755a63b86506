//! Finds the newest bundle, also where the newest entry is none of ours: anybody who may write to the repository's cache can
//! add an entry whose name begins like ours. Such an entry is passed over and counted. It must not stop the others.
//!
//! The service cannot list entries. It gives the newest one whose name begins in some way. So where that is not a bundle, longer
//! beginnings are asked for, digit by digit, and small numbers first. An entry with an odd name is in the way of the beginnings of its own name only.

use futures_util::future::join_all;

use super::look::ReadAllowance;
use super::service::FoundEntry;
use super::{DIGITS, Github, HIGHEST};
use crate::error::RemoteError;

impl Github {
    /// A bundle's name.
    pub(super) fn name(&self, number: u32) -> String {
        format!("{}{number:0DIGITS$}", self.prefix)
    }

    /// The number in a bundle's name.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let digits = name.strip_prefix(&self.prefix)?;
        let number = digits.parse().ok()?;
        let is_it = (1..=HIGHEST).contains(&number) && self.name(number) == name;
        is_it.then_some(number)
    }

    /// Bundles that may be the newest, where the newest entry is not one: the first of these that turns out to be a bundle is.
    /// `refused` is the number of the newest entry, if it has one.
    ///
    /// # Errors
    /// As all requests.
    pub(super) async fn search(
        &self,
        look: &mut ReadAllowance,
        refused: Option<u32>,
    ) -> Result<Vec<(u32, FoundEntry)>, RemoteError> {
        let mut beginnings = vec![String::new()];
        while let Some(beginning) = beginnings.pop() {
            if !look.may_search(10) {
                break;
            }
            let ask = async |digit: u32| {
                let name = format!("{}{beginning}{digit}", self.prefix);
                self.service.find(&name).await
            };
            let mut bundles = Vec::new();
            let mut deeper = Vec::new();
            for (digit, found) in join_all((0..10).map(ask)).await.into_iter().enumerate() {
                let Some(found) = found? else { continue };
                match self.number(&found.name) {
                    Some(number) if Some(number) != refused => bundles.push((number, found)),
                    _ if beginning.len() + 1 < DIGITS => deeper.push(format!("{beginning}{digit}")),
                    _ => {}
                }
            }
            if !bundles.is_empty() {
                bundles.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
                return Ok(bundles);
            }
            beginnings.extend(deeper.into_iter().rev());
        }
        Ok(Vec::new())
    }
}
