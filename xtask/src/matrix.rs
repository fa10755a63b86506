//! Tries warpcc with toolkits and host compilers: each call of a corpus is made by a fresh nvcc and by warpcc, and
//! docs/compatibility.md reports every difference.
//!
//! A row is a toolkit with a host compiler. A row that has been tried is remembered in `xtask/matrix/rows.jsonl`, and is
//! not tried again while warpcc and the corpus are the same.

mod corpus;
mod debian;
mod hosts;
mod page;
mod rows;
mod toolkits;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use sha2::{Digest, Sha256};

use crate::bench::machine_info;
use crate::{process, programs, repo};
use corpus::Scope;
use hosts::Host;
use rows::MatrixRow;
use toolkits::Toolkit;

/// The rows to try, and how.
#[derive(Args)]
pub struct MatrixOptions {
    /// Only this toolkit: 11.8, 13.5, …; may be given several times
    #[arg(long)]
    toolkit: Vec<String>,
    /// Only this host compiler: g++-12, clang++-14, ccache, …; may be given several times
    #[arg(long)]
    host: Vec<String>,
    /// Try only a handful of command lines of one row, and write nothing
    #[arg(long)]
    quick: bool,
    /// Try only the changes of every row, and the modes in which a host compiler takes part
    #[arg(long)]
    brief: bool,
    /// Try all cases with every host compiler, not only with the toolkit's usual one
    #[arg(long, conflicts_with_all = ["quick", "brief"])]
    whole: bool,
    /// Try only cases whose names contain this text, and write nothing
    #[arg(long)]
    case: Option<String>,
    /// Try rows again whose results are known
    #[arg(long)]
    again: bool,
    /// Write docs/compatibility.md from the known results, and try nothing
    #[arg(long)]
    page: bool,
    /// The warpcc to try; by default that of a release build
    #[arg(long)]
    warpcc: Option<PathBuf>,
    /// How many cases to run at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// A handful of command lines with one toolkit, for the test suite and for releases: with this warpcc, or with the one
/// that tests build.
pub fn quick(warpcc: Option<&Path>) -> Result<()> {
    let warpcc = match warpcc {
        Some(warpcc) => warpcc.to_owned(),
        None => {
            let build = ["--locked", "--workspace", "--bin=warpcc*", "--quiet"];
            process::run(process::cargo("build").args(build))?;
            repo::target_dir().join("debug/warpcc")
        }
    };
    main(&MatrixOptions {
        toolkit: Vec::new(),
        host: Vec::new(),
        quick: true,
        brief: false,
        whole: false,
        case: None,
        again: false,
        page: false,
        warpcc: Some(warpcc),
        jobs: 2,
    })
}

/// `cargo xtask matrix`.
pub fn main(options: &MatrixOptions) -> Result<()> {
    if options.page {
        return page::write(&rows::load()?);
    }
    let mut toolkits = chosen(&toolkits::ALL, &options.toolkit, |toolkit| toolkit.version)?;
    if options.quick && options.toolkit.is_empty() {
        toolkits = vec![toolkits::of_today()?];
    }
    let hosts = chosen(&hosts::ALL, &options.host, |host| host.name)?;
    let mut pairs = pairs(&toolkits, &hosts);
    if options.quick {
        pairs.truncate(1);
    }
    let warpcc = programs::launcher(options.warpcc.as_deref())?;
    let mut differing = 0;
    for (toolkit, host) in pairs {
        differing += usize::from(!one(options, &warpcc, toolkit, host)?);
    }
    if !options.quick && options.case.is_none() {
        page::write(&rows::load()?)?;
    }
    if differing > 0 {
        bail!("{differing} rows have calls with other results than nvcc's");
    }
    Ok(())
}

/// Tries one row, unless its result is known. True where all calls were the same as with nvcc.
fn one(options: &MatrixOptions, warpcc: &Path, toolkit: &Toolkit, host: &Host) -> Result<bool> {
    let names = format!("{} with {}", toolkit.version, host.name);
    let Some(host) = host.prepare()? else {
        println!("{names}: the compiler is not here, and cannot be installed");
        return Ok(true);
    };
    let scope = match () {
        () if options.quick => Scope::Quick,
        () if options.whole => Scope::Whole,
        () if toolkit.main_host == host.name && !options.brief => Scope::Whole,
        () => Scope::Host,
    };
    let mut cases = corpus::cases(scope, &host)?;
    if let Some(text) = &options.case {
        cases.retain(|case| case.name.contains(text.as_str()));
    }
    let is_kept = !options.quick && options.case.is_none();
    let tried = digest(warpcc, &cases)?;
    if let Some(row) = rows::find(toolkit.version, host.name, &tried)?
        && is_kept
        && !options.again
    {
        println!("{names}: tried before");
        return Ok(row.differences.is_empty());
    }
    let top = toolkit.install()?;
    let mut row = MatrixRow {
        toolkit: toolkit.version.to_owned(),
        release: machine_info::toolkit(&top.join("bin/nvcc"))?,
        host: host.name.to_owned(),
        host_version: host.version.clone(),
        date: machine_info::date()?,
        commit: commit()?,
        tried,
        ..MatrixRow::default()
    };
    println!("{names}: {} cases", cases.len());
    trial::run(&mut row, &cases, &top, &host, warpcc, options.jobs)?;
    row.print();
    if is_kept {
        rows::add(&row)?;
        if host.name == toolkit.main_host {
            toolkits::record(toolkit.version, &top)?;
        }
    }
    Ok(row.differences.is_empty())
}

/// Each toolkit with its main compiler first: if time ends, every toolkit has a row.
fn pairs<'a>(toolkits: &[&'a Toolkit], hosts: &[&'a Host]) -> Vec<(&'a Toolkit, &'a Host)> {
    let all = toolkits
        .iter()
        .flat_map(|&toolkit| hosts.iter().map(move |&host| (toolkit, host)));
    let (mut first, others): (Vec<_>, Vec<_>) =
        all.partition(|(toolkit, host)| toolkit.main_host == host.name);
    first.extend(others);
    first
}

fn chosen<'a, T>(all: &'a [T], names: &[String], name: fn(&T) -> &str) -> Result<Vec<&'a T>> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |wanted: &String| {
        let found = all.iter().find(|one| name(one) == wanted);
        found.with_context(|| {
            let known: Vec<&str> = all.iter().map(name).collect();
            format!("there is no `{wanted}`; the names are {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// A digest of the program and the cases that were tried, in hexadecimal.
fn digest(warpcc: &Path, cases: &[corpus::Case]) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(fs::read(warpcc).with_context(|| warpcc.display().to_string())?);
    for case in cases {
        hash.update(case.history.to_string());
    }
    let digest = hash.finalize();
    Ok(digest[..8].iter().map(|b| format!("{b:02x}")).collect())
}

fn commit() -> Result<String> {
    let mut git = std::process::Command::new("git");
    git.current_dir(repo::root());
    let text = process::output(git.args(["rev-parse", "--short=7", "HEAD"]))?;
    Ok(text.trim().to_owned())
}
