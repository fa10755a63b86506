//! Checks whether the shared caches answer and can be written, in the same way as `warpcc remote ping`.

use std::thread;
use std::time::Duration;

use warpcc_remote_client::Layer;
use warpcc_remote_client::ping::{Answer, WriteTest};
use warpcc_report::doctor::Finding;

use super::finding::{fine, warning};
use crate::config::Config;
use crate::process_context::ProcessContext;
use crate::remotes;

/// The time limit. All servers are asked at the same time.
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn check(config: &Config, context: &ProcessContext, findings: &mut Vec<Finding>) {
    let layers = config.layers();
    if layers.is_empty() && config.executor.address.value.is_none() {
        return;
    }
    let remote = remotes::for_command(&context.ourselves[0], &layers);
    if let Err(gone) = remote.check() {
        findings.push(warning(
            gone.to_string(),
            "no shared cache is used, and no step runs on a cluster",
            "install warpcc and warpcc-remote from the same release, into the same folder",
        ));
        return;
    }
    let found: Vec<Finding> = thread::scope(|scope| {
        let remote = &remote;
        let ask = |(index, layer)| scope.spawn(move || judge(layer, remote.ping(index, LIMIT)));
        let asked: Vec<_> = layers.iter().enumerate().map(ask).collect();
        let ended = asked.into_iter().filter_map(|one| one.join().ok());
        ended.collect()
    });
    findings.extend(found);
}

fn judge(layer: &Layer, answer: Result<Answer, String>) -> Finding {
    let server = layer.shown();
    match answer {
        Err(why) => warning(
            format!("the shared cache {server} cannot be used: {why}"),
            "results of other machines are built again here, and nothing is uploaded",
            "`warpcc remote ping` asks again; WARPCC_REMOTE=none turns shared caches off",
        ),
        Ok(Answer {
            write: WriteTest::Refused(why),
            ..
        }) => warning(
            format!("the shared cache {server} cannot be written: {why}"),
            "results of this machine do not reach the others",
            "allow writing there, or add |read-only to its URL",
        ),
        Ok(Answer {
            warning: Some(why), ..
        }) => warning(
            why,
            "anybody who can read the key file can sign results, and machines that trust the key use them",
            "change its mode; if others may have read it, make a new key and revoke this one",
        ),
        Ok(Answer { says, write, .. }) => {
            let way = match write {
                WriteTest::NotTried => "read only",
                WriteTest::Taken | WriteTest::Refused(_) => "read and write",
            };
            fine(format!("the shared cache {server} answers ({way}): {says}"))
        }
    }
}
