//! `warpcc fatbin size`: adds up files one after the other, and compares with a budget.

use warpcc_fatbin::{Binary, ReadLimits, SizeOptions, SizeSum, find};

use super::args::SizeArgs;
use super::exit_code::{NOT_FINE, exit_code};
use super::print;
use crate::commands::binary_errors::report;
use crate::commands::output;
use crate::config::format_bytes;
use crate::log;

pub(super) fn size(args: &SizeArgs) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let options = SizeOptions {
        duplicates: args.duplicates,
        compression: args.compression,
    };
    let (inputs, mut errors) = find(&args.files);
    let mut sum = SizeSum::new(options);
    let mut problems = Vec::new();
    let mut read = 0;
    // One file, or member of a wheel, is unpacked at a time: its images are looked into at once.
    for input in inputs {
        let binary = match Binary::open(input, &limits) {
            Ok(binary) => binary,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        read += 1;
        let found = sum.add(&binary, &limits);
        problems.extend(found.into_iter().map(|p| (binary.input.clone(), p)));
    }
    let sizes = sum.finish();
    let over = args.budget.filter(|budget| sizes.device_bytes > *budget);
    // Where no file could be read, a sum of nothing would hide the reason.
    let has_sums = read > 0 || errors.is_empty();
    output::print(|out| match args.json {
        true => print::size::write_json(&sizes, args.budget, out),
        false if has_sums => print::size::write(&sizes, args.top, args.budget, out),
        false => Ok(()),
    })?;
    let trouble = report(&errors, problems.iter().map(|(input, p)| (input, p)));
    if let Some(budget) = over {
        log::fail(&format!(
            "{} of device code are {} over the budget of {} (bytes of fat binaries in the files as installed, not of the wheel)",
            format_bytes(sizes.device_bytes),
            format_bytes(sizes.device_bytes - budget),
            format_bytes(budget)
        ));
        return Ok(NOT_FINE);
    }
    Ok(exit_code(read, trouble))
}
