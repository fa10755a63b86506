//! The targets, under libFuzzer: `WARPCC_FUZZ_TARGET` says which one runs.
#![no_main]

mod targets;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("WARPCC_FUZZ_TARGET").expect("the driver sets WARPCC_FUZZ_TARGET");
        let target = targets::find(&name).expect("the driver names a target");
        TARGET.set(target).expect("started once");
    },
    |data: &[u8]| {
        TARGET.get().expect("started")(data);
    }
);
