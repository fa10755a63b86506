//! Checks that warpcc links no network crates: the program that every call of nvcc starts is small, and the hundred or so
//! crates that talk to servers are only in `warpcc-remote`.

use anyhow::Result;

use super::complaint::Complaint;
use crate::dist::metadata;
use crate::programs::OURS;

/// The target whose crates are listed. The network crates are the same on each target.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A runtime, TLS, and crates that use them. Any of these brings the rest.
const NETWORK: [&str; 9] = [
    "warpcc-remote",
    "tokio",
    "rustls",
    "ring",
    "h2",
    "hyper",
    "reqwest",
    "tonic",
    "opendal-core",
];

/// The manifest that names the launcher's crates.
const MANIFEST: &str = "crates/warpcc/Cargo.toml";

/// Complaints about the launcher's crates.
///
/// # Errors
/// Cargo does not list the crates.
pub fn complaints() -> Result<Vec<(String, Complaint)>> {
    let linked = metadata::linked(&OURS[..1], TARGET)?;
    let names = linked.iter().map(|package| package.name.as_str());
    Ok(of_network(names)
        .into_iter()
        .map(|text| (MANIFEST.to_owned(), Complaint::whole(text)))
        .collect())
}

fn of_network<'a>(linked: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    linked
        .into_iter()
        .filter(|name| NETWORK.contains(name))
        .map(|name| {
            format!(
                "warpcc would link {name}, which every call of nvcc would load: `cargo tree --package warpcc --invert {name}` \
                 says by what. What speaks with servers belongs into crates/remote, whose program warpcc asks"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_program_has_what_this_one_must_not_have() -> Result<()> {
        let linked = metadata::linked(&OURS[1..], TARGET)?;
        let found = of_network(linked.iter().map(|package| package.name.as_str()));
        assert_eq!(found.len(), NETWORK.len(), "{found:?}");
        assert!(of_network(["warpcc-remote-client", "http", "url"]).is_empty());
        Ok(())
    }
}
