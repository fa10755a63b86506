//! Whether the shared caches answer and can be written, as `warpcc remote ping` asks them.

use std::thread;
use std::time::Duration;

use warpcc_remote::Layer;
use warpcc_remote::ping::{Answer, WriteTest, ping};
use warpcc_report::doctor::Finding;

use super::finding::{fine, warning};
use crate::config::Config;

/// All are asked at once, and none for longer.
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let layers = config.layers();
    let found: Vec<Finding> = thread::scope(|scope| {
        let ask = |layer| scope.spawn(move || judge(layer, ping(layer, LIMIT)));
        let asked: Vec<_> = layers.iter().map(ask).collect();
        let ended = asked.into_iter().filter_map(|one| one.join().ok());
        ended.collect()
    });
    findings.extend(found);
}

fn judge(layer: &Layer, answer: Result<Answer, warpcc_remote::Fault>) -> Finding {
    let server = layer.shown();
    match answer {
        Err(fault) => warning(
            format!("the shared cache {server} cannot be asked: {fault}"),
            "what others have built is built again here, and nothing is given to them",
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
        Ok(Answer { says, write, .. }) => {
            let way = match write {
                WriteTest::NotTried => "read only",
                WriteTest::Taken | WriteTest::Refused(_) => "read and write",
            };
            fine(format!("the shared cache {server} answers ({way}): {says}"))
        }
    }
}
