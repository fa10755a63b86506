//! Connects to `warpcc-remote`, the program that talks to the servers that the settings name.

use std::path::Path;

use warpcc_cache::{DiskStore, guards};
use warpcc_remote_client::protocol::{Opening, TimeBudgetSent};
use warpcc_remote_client::remote_program::WarningSink;
use warpcc_remote_client::sent::{AuthSent, LayerSent, StoreSent};
use warpcc_remote_client::{Auth, Layer, RemoteProgram};

/// For a call of nvcc. `ourselves` is this program's file: `warpcc-remote` is next to it. `cluster` has the cluster's address and
/// the credentials for it.
pub fn for_nvcc_call(
    ourselves: &Path,
    layers: &[Layer],
    store: Option<&DiskStore>,
    cluster: Option<(String, &Auth)>,
) -> RemoteProgram {
    let opening = Opening {
        layers: layers.iter().map(LayerSent::from).collect(),
        store: store.map(StoreSent::from),
        time_budget: TimeBudgetSent::PerCall,
        cluster: cluster.map(|(address, auth)| (address, AuthSent::from(auth))),
        switched_off: guards::switched_off(),
    };
    RemoteProgram::next_to(ourselves, opening, WarningSink::Print(crate::log::warn))
}

/// For a command that tests servers or uploads to them.
pub fn for_command(ourselves: &Path, layers: &[Layer]) -> RemoteProgram {
    for_nvcc_call(ourselves, layers, None, None)
}

/// For kernels of run-time compilation. Each kernel has a time limit of its own. Warnings are kept for the kernel cache, which
/// hands them to the program.
pub fn for_kernels(ourselves: &Path, layers: &[Layer], store: &DiskStore) -> RemoteProgram {
    let opening = Opening {
        layers: layers.iter().map(LayerSent::from).collect(),
        store: Some(store.into()),
        time_budget: TimeBudgetSent::PerQuestion,
        cluster: None,
        switched_off: guards::switched_off(),
    };
    RemoteProgram::next_to(ourselves, opening, WarningSink::Keep(Default::default()))
}
