//! `warpcc jit load`: loads modules in a process of its own, which a faulty module may end. Prints the result,
//! a line for each item.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use warpcc_fatbin::{Binary, BinaryInput, ReadLimits};
use warpcc_jit::{DriverError, Item, LoadMessage, LoadOptions, Loader};

use super::args::{By, LoadArgs};
use super::exit_code::FINE;
use crate::commands::output;

/// Loads the modules, and returns the exit code.
///
/// # Errors
/// The output cannot be written, or the file has changed.
pub fn load(args: &LoadArgs) -> anyhow::Result<i32> {
    output::print(|out| {
        let loader = match Loader::open(args.device) {
            Ok(loader) => loader,
            Err(error) => return say(&LoadMessage::Nothing(error.to_string()), out),
        };
        let driver = loader.gpu.driver;
        let (number, name) = (loader.gpu.number, loader.gpu.name.clone());
        say(
            &LoadMessage::Gpu(driver.major, driver.minor, number, name),
            out,
        )?;
        if let Err(error) = each(args, &loader, out) {
            say(&LoadMessage::Nothing(format!("{error:#}")), out)?;
        }
        Ok(())
    })?;
    Ok(FINE)
}

fn each(args: &LoadArgs, loader: &Loader, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(path) = args.file.clone() else {
        return Ok(());
    };
    let limits = ReadLimits::default();
    let input = match args.member.clone() {
        Some(member) => BinaryInput::member(path, member),
        None => BinaryInput::file(path),
    };
    let binary = Binary::open(input, &limits)?;
    let found = binary.contents(&limits);
    let manner = match args.by {
        By::Module => LoadOptions::Module,
        By::Logged => LoadOptions::Logged,
        By::Library => LoadOptions::Library,
    };
    for item in &args.items {
        let (Item::Container(number) | Item::Image(number, _)) = *item;
        let container = found.containers.get(number);
        let container = container.with_context(|| format!("there is no container {number}"))?;
        let answer = match *item {
            Item::Container(_) => {
                let from = usize::try_from(container.offset)?;
                let to = usize::try_from(container.offset + container.size)?;
                let bytes = binary.bytes().get(from..to);
                loader.load(bytes.context("the file became shorter")?, manner)
            }
            Item::Image(_, index) => {
                let image = container.images.get(index);
                let image = image.with_context(|| format!("there is no image {item}"))?;
                loader.load(&image.payload(&limits)?, manner)
            }
        };
        say(&said(item.to_string(), answer), out)?;
    }
    Ok(())
}

fn said(item: String, answer: Result<Duration, DriverError>) -> LoadMessage {
    match answer {
        Ok(time) => LoadMessage::Loaded(item, u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        Err(DriverError::Cuda {
            number, name, log, ..
        }) => LoadMessage::Refused(item, number, name, log),
        Err(error) => LoadMessage::Nothing(error.to_string()),
    }
}

/// Writes the line at once, so that it is not lost if the process is ended.
fn say(said: &LoadMessage, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, said)?;
    writeln!(out)?;
    out.flush()
}
