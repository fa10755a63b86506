//! Compiles the images of a manifest: kernels in threads and processes, then PTX in threads.

use rayon::prelude::*;
use warpcc_budget::BoardPlace;
use warpcc_rtc::{
    CallLimits, CompileRequest, Error, Image, KernelCache, ManyOptions, WorkerCommand,
};

use super::manifest::ImageJob;
use crate::config::{Config, variable};
use crate::process_context::ProcessContext;
use crate::resources;

/// An image of a manifest: its name, its target, and the result.
pub type Named<'j> = (&'j str, String, Result<Image, Error>);

/// Compiles all `jobs`, or finds them. The results are in the same order.
pub fn compile_all<'j>(
    cache: &KernelCache,
    jobs: &'j [ImageJob],
    context: &ProcessContext,
) -> Vec<Named<'j>> {
    let requests: Vec<CompileRequest> = jobs
        .iter()
        .filter_map(|job| match job {
            ImageJob::Kernel {
                parameters,
                name,
                source,
                target,
            } => Some(cache.request(parameters, name, source, *target)),
            ImageJob::Recorded(request) => Some(request.clone()),
            ImageJob::Ptx { .. } => None,
        })
        .collect();
    let options = ManyOptions {
        budget: Config::load(variable)
            .map_or(BoardPlace::default(), |config| resources::place(&config)),
        workers: Some(WorkerCommand::new(&context.ourselves[0], ["rtc", "worker"])),
        ..ManyOptions::default()
    };
    let limits = CallLimits::default();
    let kernels = cache.get_many(&requests, &options, &limits, |_| true);
    let linked: Vec<Result<Image, Error>> = jobs
        .par_iter()
        .filter_map(|job| match job {
            ImageJob::Ptx { name, text, target } => {
                Some(cache.load_ptx(name, text, *target, &limits))
            }
            _ => None,
        })
        .collect();
    let (mut kernels, mut linked) = (kernels.into_iter(), linked.into_iter());
    let named = jobs.iter().filter_map(|job| match job {
        ImageJob::Kernel { name, target, .. } => {
            Some((name.as_str(), target.to_string(), kernels.next()?))
        }
        ImageJob::Recorded(request) => {
            Some((&*request.name, request.target.to_string(), kernels.next()?))
        }
        ImageJob::Ptx { name, target, .. } => {
            Some((name.as_str(), target.to_string(), linked.next()?))
        }
    });
    named.collect()
}
