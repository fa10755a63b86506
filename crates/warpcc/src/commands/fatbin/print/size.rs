//! Prints the result of `warpcc fatbin size`: sums first, then what would make them smaller.

use std::io::{self, Write};

use serde::Serialize;
use warpcc_fatbin::{ContainerSize, FunctionSize, ImageKind, SizeReport};

use super::sums::bar;
use super::tables::versioned;
use crate::commands::plain_text::{count, plain, shortened};
use crate::config::format_bytes;

/// Characters of a name.
const NAME: usize = 90;

/// Writes one object.
pub fn write_json(sizes: &SizeReport, budget: Option<u64>, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct SizeDocument<'r> {
        budget: Option<u64>,
        within_budget: Option<bool>,
        #[serde(flatten)]
        sizes: &'r SizeReport,
    }
    let document = SizeDocument {
        budget,
        within_budget: budget.map(|budget| sizes.device_bytes <= budget),
        sizes,
    };
    serde_json::to_writer_pretty(&mut *out, &versioned(&document))?;
    writeln!(out)
}

/// Writes the sums, `top` lines of each long list.
pub fn write(
    sizes: &SizeReport,
    top: usize,
    budget: Option<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let with_code = sizes.files.iter().filter(|file| file.containers > 0);
    let files = with_code.clone().count();
    let bytes = with_code.clone().map(|file| file.bytes).sum();
    write!(
        out,
        "{} of device code in {} of {}, unpacked {}",
        format_bytes(sizes.device_bytes),
        count(files, "file"),
        format_bytes(bytes),
        format_bytes(sizes.unpacked_bytes)
    )?;
    match budget {
        Some(budget) => writeln!(out, "; budget {}", format_bytes(budget))?,
        None => writeln!(out)?,
    }
    if files > 1 {
        let mut largest: Vec<_> = with_code.collect();
        largest.sort_by_key(|file| std::cmp::Reverse(file.device_bytes));
        for file in largest.iter().take(top) {
            // The member of a wheel, or the file without its folders.
            let name = file.file.rsplit(['!', '/']).next().unwrap_or_default();
            let name = shortened(&plain(name), NAME);
            writeln!(out, "  {:>10}  {name}", format_bytes(file.device_bytes))?;
        }
        write_more(largest.len(), top, "file", out)?;
    }
    write_targets(sizes, out)?;
    let owned = sizes.unpacked_bytes.saturating_sub(sizes.shared_bytes);
    if owned > 0 {
        writeln!(
            out,
            "by template, unpacked ({} more belong to no single function):",
            format_bytes(sizes.shared_bytes)
        )?;
        write_functions(&sizes.families, top, "template", out)?;
        writeln!(out, "by kernel, unpacked, all architectures together:")?;
        write_functions(&sizes.functions, top, "kernel", out)?;
    }
    write_objects(&sizes.containers, top, out)?;
    write_duplicates(sizes, top, out)?;
    write_compression(sizes, out)
}

fn write_more(all: usize, top: usize, one: &str, out: &mut dyn Write) -> io::Result<()> {
    match all.checked_sub(top) {
        Some(more @ 1..) => writeln!(out, "  and {} more", count(more, one)),
        _ => Ok(()),
    }
}

fn write_targets(sizes: &SizeReport, out: &mut dyn Write) -> io::Result<()> {
    let Some(most) = sizes.targets.iter().map(|t| t.bytes).max() else {
        return Ok(());
    };
    writeln!(
        out,
        "  {:<13} {:>7} {:>10} {:>10} {:>10}  without it, its GPU",
        "", "images", "in file", "unpacked", "drop saves"
    )?;
    for target in &sizes.targets {
        let then = match target.kind {
            ImageKind::Cubin => then(target.then_run, target.then_compile, target.then_fail),
            _ => String::new(),
        };
        let line = format!(
            "  {:<13} {:>7} {:>10} {:>10} {:>10}  {then}",
            target.target,
            target.images,
            format_bytes(target.bytes),
            format_bytes(target.unpacked_bytes),
            format_bytes(target.drop_saves),
        );
        writeln!(out, "{}", line.trim_end())?;
        writeln!(out, "    {}", bar(target.bytes, most))?;
        if target.ptx_only_saves > 0 && target.ptx_only_saves < target.drop_saves {
            writeln!(
                out,
                "    {} of it where PTX takes over",
                format_bytes(target.ptx_only_saves)
            )?;
        }
    }
    if sizes.concatenated_bytes > 0 {
        writeln!(
            out,
            "  {:<13} {:>7} {:>10}",
            "concatenated",
            "",
            format_bytes(sizes.concatenated_bytes)
        )?;
    }
    Ok(())
}

/// `runs other code in 3, compiles PTX in 2, finds nothing in 1 container`.
fn then(run: u64, compile: u64, fail: u64) -> String {
    let parts = [
        (run, "runs other code in"),
        (compile, "compiles PTX in"),
        (fail, "finds nothing in"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let mut words: Vec<String> = parts
        .map(|(number, what)| format!("{what} {number}"))
        .collect();
    if let Some(last) = words.last_mut() {
        let plural = last.ends_with(" 1");
        last.push_str(if plural { " container" } else { " containers" });
    }
    words.join(", ")
}

fn write_functions(
    functions: &[FunctionSize],
    top: usize,
    one: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    for function in functions.iter().take(top) {
        let times = match function.copies {
            1 => String::new(),
            copies => format!("{copies}x"),
        };
        let what = if function.is_kernel {
            ""
        } else {
            "device function "
        };
        writeln!(
            out,
            "  {:>10} {times:>7}  {what}{}",
            format_bytes(function.bytes),
            shortened(&plain(&function.name), NAME)
        )?;
    }
    write_more(functions.len(), top, one, out)
}

fn write_objects(containers: &[ContainerSize], top: usize, out: &mut dyn Write) -> io::Result<()> {
    if containers.len() < 2 {
        return Ok(());
    }
    writeln!(out, "by container, with one of its kernels:")?;
    let mut largest: Vec<_> = containers.iter().collect();
    largest.sort_by_key(|container| std::cmp::Reverse(container.bytes));
    for container in largest.iter().take(top) {
        let member = container
            .member
            .as_deref()
            .map(|m| format!("({})", plain(m)));
        let kernel = container.kernel.as_deref().unwrap_or("no kernel");
        let file = container.file.rsplit('/').next().unwrap_or_default();
        writeln!(
            out,
            "  {:>10}  {}{} {}  {}",
            format_bytes(container.bytes),
            plain(file),
            member.unwrap_or_default(),
            container.container,
            shortened(&plain(kernel), NAME)
        )?;
    }
    write_more(containers.len(), top, "container", out)
}

fn write_duplicates(sizes: &SizeReport, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let Some(found) = &sizes.duplicates else {
        return Ok(());
    };
    writeln!(
        out,
        "equal in several containers: {} of kernels, unpacked; {} that take {} in the files",
        format_bytes(found.function_bytes),
        count(
            usize::try_from(found.images).unwrap_or(usize::MAX),
            "whole image"
        ),
        format_bytes(found.image_bytes)
    )?;
    for same in found.functions.iter().take(top) {
        writeln!(
            out,
            "  {:>10} {:>7}  {} {}",
            format_bytes(same.saves),
            format!("{}x", same.copies),
            same.target,
            shortened(&plain(&same.name), NAME)
        )?;
    }
    write_more(found.functions.len(), top, "kernel", out)
}

fn write_compression(sizes: &SizeReport, out: &mut dyn Write) -> io::Result<()> {
    let Some(modes) = &sizes.compression else {
        return Ok(());
    };
    writeln!(out, "device code with another compression, measured:")?;
    for mode in modes {
        let change = match mode.bytes.cmp(&sizes.device_bytes) {
            std::cmp::Ordering::Less => {
                format!("saves {}", format_bytes(sizes.device_bytes - mode.bytes))
            }
            std::cmp::Ordering::Equal => "as it is".to_owned(),
            std::cmp::Ordering::Greater => {
                format!("{} more", format_bytes(mode.bytes - sizes.device_bytes))
            }
        };
        writeln!(
            out,
            "  {:<8} {:>10}  {change}",
            mode.mode.name(),
            format_bytes(mode.bytes)
        )?;
    }
    Ok(())
}
