//! The program that has the network, for the servers that the settings name.

use std::path::Path;

use warpcc_cache::{DiskStore, guards};
use warpcc_remote_client::protocol::{Opening, TimeBudgetSent};
use warpcc_remote_client::remote_program::WarningSink;
use warpcc_remote_client::sent::{AuthSent, LayerSent, StoreSent};
use warpcc_remote_client::{Auth, Layer, RemoteProgram};

/// The one beside `ourselves`, for a call of nvcc: shared caches behind `store`, and a cluster's address with who we are to it.
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

/// The same for a command that tries servers or uploads to them.
pub fn for_command(ourselves: &Path, layers: &[Layer]) -> RemoteProgram {
    for_nvcc_call(ourselves, layers, None, None)
}

/// The same for kernels, each of which is a question of its own, and whose cache tells what went wrong.
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
