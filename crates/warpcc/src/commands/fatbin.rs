//! Runs the commands of `warpcc fatbin`, and returns their exit codes.

mod args;
mod exit_code;
mod print;
mod size;
mod thin;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use rayon::prelude::*;
use warpcc_fatbin::{
    Binary, BinaryInput, Container, Depth, FatbinError, Gpu, Image, ImageKind, Listing,
    LoadOutcome, Problem, ReadLimits, Situation, Verdicts, diff, find, judge, list,
};

pub use args::FatbinCommand;
use args::{CheckArgs, DiffArgs, ExtractArgs, ListArgs, WantedKind};
use exit_code::{FAILED, FINE, NOT_FINE, exit_code};

use super::binary_errors::report;
use super::output::{self, write_file};

/// Runs one of the commands, and returns the exit code.
///
/// # Errors
/// The command could not be carried out.
pub fn run(command: &FatbinCommand) -> anyhow::Result<i32> {
    match command {
        FatbinCommand::List(args) => list_files(args),
        FatbinCommand::Extract(args) => extract(args),
        FatbinCommand::Diff(args) => compare(args),
        FatbinCommand::Size(args) => size::size(args),
        FatbinCommand::Thin(args) => thin::thin_file(args),
        FatbinCommand::Check(args) => check(args),
    }
}

/// Opens each file, and passes it to `look`. Returns the results in order.
fn each<T: Send>(
    paths: &[std::path::PathBuf],
    look: impl Fn(&Binary) -> T + Sync,
) -> (Vec<(BinaryInput, T)>, Vec<FatbinError>) {
    let limits = ReadLimits::default();
    let (inputs, mut errors) = find(paths);
    let opened: Vec<Result<(BinaryInput, T), FatbinError>> = inputs
        .into_par_iter()
        .map(|input| {
            let binary = Binary::open(input, &limits)?;
            let seen = look(&binary);
            Ok((binary.input, seen))
        })
        .collect();
    let mut seen = Vec::new();
    for result in opened {
        match result {
            Ok(one) => seen.push(one),
            Err(error) => errors.push(error),
        }
    }
    (seen, errors)
}

fn list_files(args: &ListArgs) -> anyhow::Result<i32> {
    let pictures = args.svg.is_some() || args.html.is_some();
    let depth = match args.kernels || pictures {
        true => Depth::Kernels,
        false => Depth::Toolkits,
    };
    let limits = ReadLimits::default();
    let (listed, errors) = each(&args.files, |binary| list(binary, depth, &limits));
    if listed.is_empty() && errors.is_empty() {
        crate::log::warn(
            "there is no ELF or PE file, static library, fat binary or wheel in these folders",
        );
    }
    let rows = || listed.iter().flat_map(|(_, listing)| &listing.rows);
    output::print(|out| {
        if args.json {
            return print::tables::write_json(rows(), out);
        }
        if args.csv && args.kernels {
            return print::tables::write_kernel_csv(rows(), out);
        }
        if args.csv {
            return print::tables::write_csv(rows(), out);
        }
        for (input, listing) in &listed {
            if listing.containers == 0 && listed.len() > 1 {
                continue;
            }
            print::list::write(&input.to_string(), listing, args.summary, out)?;
        }
        match listed.len() {
            0 | 1 => Ok(()),
            files => print::list::write_total(files, listed.iter().map(|(_, l)| l), out),
        }
    })?;
    if let Some(path) = &args.svg {
        write_file(path, |out| print::picture::write_svg(rows(), out))?;
    }
    if let Some(path) = &args.html {
        let title = args.files.iter().map(|f| f.display().to_string());
        let title = title.collect::<Vec<_>>().join(", ");
        write_file(path, |out| print::picture::write_html(&title, rows(), out))?;
    }
    let problems = listed
        .iter()
        .flat_map(|(input, listing)| listing.problems.iter().map(move |p| (input, p)));
    let read = listed.iter().filter(|(_, l)| is_usable(l)).count();
    Ok(exit_code(read, report(&errors, problems)))
}

/// Whether a listing has images, or is empty without a problem.
fn is_usable(listing: &Listing) -> bool {
    !listing.rows.is_empty() || listing.problems.is_empty()
}

fn extract(args: &ExtractArgs) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let (inputs, errors) = find(&args.files);
    let mut problems = Vec::new();
    let mut taken = BTreeSet::new();
    let mut written = 0;
    let mut opening = Vec::new();
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make {}", args.output.display()))?;
    for input in inputs {
        let binary = match Binary::open(input, &limits) {
            Ok(binary) => binary,
            Err(error) => {
                opening.push(error);
                continue;
            }
        };
        let found = binary.contents(&limits);
        problems.extend(
            found
                .problems
                .iter()
                .map(|p| (binary.input.clone(), p.clone())),
        );
        let stem = free_stem(&binary.input, &mut taken);
        for (number, container) in found.containers.iter().enumerate() {
            let images = container.images.iter().enumerate();
            let wanted = images.filter(|(_, image)| is_wanted(image, args));
            for (index, image) in wanted {
                match image.payload(&limits) {
                    Ok(payload) => {
                        let name = file_name(&stem, (number, container), (index, image));
                        create(&args.output.join(name), &payload, args.force)?;
                        written += 1;
                    }
                    Err(flaw) => problems.push((
                        binary.input.clone(),
                        Problem {
                            member: container.member.clone(),
                            offset: image.place.offset,
                            flaw,
                        },
                    )),
                }
            }
        }
    }
    if written > 0 || opening.is_empty() && errors.is_empty() {
        output::print(|out| print::list::write_extracted(written, &args.output, out))?;
    }
    let trouble =
        report(&opening, problems.iter().map(|(i, p)| (i, p))) | report(&errors, [].into_iter());
    Ok(exit_code(written, trouble))
}

fn is_wanted(image: &Image<'_>, args: &ExtractArgs) -> bool {
    let kind = match args.kind {
        None => true,
        Some(WantedKind::Elf) => image.kind == ImageKind::Cubin,
        Some(WantedKind::Ptx) => image.kind == ImageKind::Ptx,
        Some(WantedKind::Lto) => image.kind == ImageKind::LtoIr,
    };
    kind && args.arch.is_none_or(|arch| arch == image.arch)
}

/// A name for a file's outputs; two files of one name in different folders get a number.
fn free_stem(input: &BinaryInput, taken: &mut BTreeSet<String>) -> String {
    let name = match &input.member {
        Some(member) => Path::new(member).file_name(),
        None => input.path.file_name(),
    };
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    let mut stem = name.clone();
    let mut number = 2;
    while !taken.insert(stem.clone()) {
        stem = format!("{name}-{number}");
        number += 1;
    }
    stem
}

/// A file name with the numbers that `list` gives to the container and the image, so that all images of a file have
/// different names.
fn file_name(
    stem: &str,
    (number, container): (usize, &Container<'_>),
    (index, image): (usize, &Image<'_>),
) -> String {
    let member = match &container.member {
        // A member's name comes from the file, and must not lead out of the folder.
        Some(member) => format!(".{}", member.replace(['/', '\0'], "_")),
        None => String::new(),
    };
    format!(
        "{stem}{member}.c{number:03}.i{index:02}.{}.{}",
        image.target(),
        image.kind.extension()
    )
}

fn create(path: &Path, bytes: &[u8], force: bool) -> anyhow::Result<()> {
    let mut options = File::options();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(bytes));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn compare(args: &DiffArgs) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let mut sides = Vec::new();
    for path in [&args.before, &args.after] {
        let (listed, errors) = each(std::slice::from_ref(path), |binary| {
            list(binary, Depth::Kernels, &limits)
        });
        let problems = listed
            .iter()
            .flat_map(|(input, listing)| listing.problems.iter().map(move |p| (input, p)));
        if report(&errors, problems) {
            bail!(
                "{} cannot be read completely, so it is not compared",
                path.display()
            );
        }
        let rows = listed.into_iter().flat_map(|(_, listing)| listing.rows);
        let wanted = rows.filter(|row| {
            args.arch
                .is_none_or(|arch| row.arch == format!("sm_{arch}"))
        });
        sides.push(wanted.collect::<Vec<_>>());
    }
    let [before, after] = &sides[..] else {
        bail!("give two files to compare");
    };
    let difference = diff(before, after);
    output::print(|out| match args.json {
        true => print::diff::write_json(&difference, out),
        false => print::diff::write(&difference, out),
    })?;
    Ok(if difference.is_empty() {
        FINE
    } else {
        NOT_FINE
    })
}

fn check(args: &CheckArgs) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let situation = Situation {
        driver: args.driver,
        force_jit: args.force_ptx_jit,
        disable_jit: args.disable_ptx_jit,
    };
    let gpus: BTreeSet<Gpu> = args.gpu.iter().chain(&args.native).copied().collect();
    let gpus: Vec<Gpu> = gpus.into_iter().collect();
    let (judged, errors) = each(&args.files, |binary| {
        judge(binary, &gpus, &situation, &limits)
    });
    let is_bad = |gpu: Gpu, outcome: LoadOutcome| match outcome {
        LoadOutcome::Run | LoadOutcome::NotLinked => false,
        LoadOutcome::Jit | LoadOutcome::JitLink => args.native.contains(&gpu),
        LoadOutcome::Fail => true,
    };
    let all: Vec<(&BinaryInput, &Verdicts)> = judged.iter().map(|(input, v)| (input, v)).collect();
    output::print(|out| match args.json {
        true => print::check::write_json(&all, out),
        false => print::check::write(&all, &gpus, &is_bad, args.kernels, out),
    })?;
    let problems = judged
        .iter()
        .flat_map(|(input, v)| v.problems.iter().map(move |p| (input, p)));
    if report(&errors, problems) {
        return Ok(FAILED);
    }
    let mut verdicts = judged.iter().flat_map(|(_, v)| &v.verdicts);
    Ok(match verdicts.any(|v| is_bad(v.gpu, v.outcome)) {
        true => NOT_FINE,
        false => FINE,
    })
}
