//! Prints what happens to each package: the answer, the reason, how to fix it.

use std::io::{self, Write};

use serde::Serialize;

use super::judged::{Judged, PackageVerdict};
use super::target::Target;
use crate::commands::plain_text::{count, plain, shortened};

/// The version of the JSON: another one where a field changes its meaning or goes away.
const SCHEMA: u32 = 1;
/// Targets that are named in a line.
const NAMED: usize = 12;

/// Writes one object.
pub fn write_json(
    target: &Target,
    place: &str,
    (packages, skipped): (&[Judged], &[String]),
    out: &mut dyn Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct PackagesDocument<'d> {
        schema: u32,
        environment: &'d str,
        target: &'d Target,
        packages: &'d [Judged],
        skipped: &'d [String],
    }
    let document = PackagesDocument {
        schema: SCHEMA,
        environment: place,
        target,
        packages,
        skipped,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// Writes a paragraph for each package.
pub fn write(
    target: &Target,
    place: &str,
    (packages, skipped): (&[Judged], &[String]),
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = target
        .name
        .as_deref()
        .map(|name| format!(" ({})", plain(name)));
    let driver = match target.driver {
        Some(driver) => format!("a driver of CUDA {driver}"),
        None => "a driver that accepts every PTX version".to_owned(),
    };
    writeln!(
        out,
        "{}{}, {driver}; packages of {}",
        target.gpu,
        name.unwrap_or_default(),
        plain(place)
    )?;
    if packages.is_empty() {
        writeln!(out, "no package has code for a GPU")?;
    }
    for package in packages {
        write_package(package, out)?;
    }
    for text in skipped {
        writeln!(out, "skipped   {}", plain(text))?;
    }
    Ok(())
}

fn write_package(package: &Judged, out: &mut dyn Write) -> io::Result<()> {
    let answer = match package.answer {
        PackageVerdict::Native => "ok",
        PackageVerdict::Compiles => "compiles",
        PackageVerdict::Partly => "partly",
        PackageVerdict::Fails => "FAILS",
        PackageVerdict::NoDeviceCode => "no code",
        PackageVerdict::Unreadable => "damaged",
    };
    writeln!(
        out,
        "{answer:<9} {} {}: {}",
        plain(&package.package),
        plain(&package.version),
        containers(package)
    )?;
    if let Some(seconds) = package.compile_seconds {
        writeln!(
            out,
            "          compiling all of it takes about {} of one core, once for each cache; an estimate from its size, which is \
             between ten times too long and a little too short",
            duration(seconds)
        )?;
    }
    for failure in &package.failures {
        writeln!(
            out,
            "          {} ({}) in {}: {}",
            failure.name,
            failure.error,
            count(failure.containers, "container"),
            failure.why
        )?;
        if let Some(kernel) = &failure.kernel {
            writeln!(out, "          such as {}", shortened(&plain(kernel), 100))?;
        }
    }
    if package.answer == PackageVerdict::Partly {
        writeln!(
            out,
            "          packages that choose a library by the CUDA version, or kernels by the GPU, have code like this and never load it here; others fail when they call it"
        )?;
    }
    if !matches!(
        package.answer,
        PackageVerdict::Native | PackageVerdict::NoDeviceCode
    ) {
        let targets: Vec<String> = package.targets.iter().take(NAMED).cloned().collect();
        let more = if package.targets.len() > NAMED {
            ", …"
        } else {
            ""
        };
        let toolkit = package
            .toolkit
            .as_deref()
            .map(|t| format!(", made by CUDA {}", plain(t)));
        writeln!(
            out,
            "          has {}{more}{}",
            targets.join(", "),
            toolkit.unwrap_or_default()
        )?;
    }
    for advice in &package.mend {
        writeln!(out, "          -> {}", plain(advice))?;
    }
    for problem in &package.problems {
        writeln!(out, "          not read: {}", plain(problem))?;
    }
    Ok(())
}

fn containers(package: &Judged) -> String {
    let counts = package.containers;
    let parts = [
        (counts.run, "runs as it is", "run as they are"),
        (
            counts.compile,
            "is compiled at start",
            "are compiled at start",
        ),
        (counts.fail, "does not load", "do not load"),
    ];
    let parts = parts.iter().filter(|(number, ..)| *number > 0);
    let parts: Vec<String> = parts
        .map(|(number, one, many)| {
            let verb = if *number == 1 { one } else { many };
            format!("{} {verb}", count(*number, "container"))
        })
        .collect();
    match (parts.is_empty(), package.answer) {
        (false, _) => parts.join(", "),
        (true, PackageVerdict::NoDeviceCode) => {
            "nothing for a driver to load; it may compile kernels at run time".to_owned()
        }
        (true, _) => "nothing could be read".to_owned(),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "a second".to_owned(),
        s if s < 90.0 => format!("{s:.0} seconds"),
        s => format!("{:.0} minutes", s / 60.0),
    }
}
