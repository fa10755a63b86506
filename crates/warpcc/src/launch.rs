//! Launcher and masquerade: runs in the compiler's place, and behaves like the compiler.
//!
//! After any failure, the user's own command runs with the real compiler, and the reason is counted.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::bypass::Bypass;
use crate::call_record::CallRecorder;
use crate::config::Config;
use crate::log::Log;
use crate::process_context::ProcessContext;
use crate::resources::Lineage;
use crate::session::{Call, Session, Wishes};
use crate::store::open_store;
use crate::{fallback, locate, outputs, subcommand_words};

/// Runs `compiler` with `args`. Gives the exit code, or does not return.
pub fn launch(compiler: &OsStr, args: &[OsString], around: ProcessContext) -> i32 {
    let path = around
        .environment
        .iter()
        .find(|(n, _)| n == "PATH")
        .map(|(_, v)| v.as_os_str());
    // `warpcc warpcc nvcc …`, as two build systems that both add a launcher write it.
    if let ([inner, rest @ ..], true) = (
        args,
        locate::is_ourselves(Path::new(compiler), &around.ourselves),
    ) && !locate::is_nvcc(compiler)
    {
        let inner = inner.clone();
        return launch(&inner, rest, around);
    }
    let config = Config::load(crate::config::variable);
    let chosen = config.as_ref().ok().and_then(|c| c.nvcc.value.clone());
    let bare = !compiler.as_encoded_bytes().contains(&b'/')
        || locate::is_ourselves(Path::new(compiler), &around.ourselves);
    let named = match chosen {
        Some(nvcc) if locate::is_nvcc(compiler) && bare => {
            locate::compiler(nvcc.as_os_str(), path, &around.ourselves)
        }
        _ => locate::compiler(compiler, path, &around.ourselves),
    };
    let mut named_by = None;
    let named = named.or_else(|| {
        // PyTorch is given "warpcc nvcc", and knows its toolkit by a variable.
        let wanted = locate::is_nvcc(compiler) && bare;
        let name = wanted.then(|| Path::new(compiler).file_name())??;
        let (file, by) = locate::in_toolkit(name, &around.environment, &around.ourselves)?;
        named_by = Some(by);
        Some(file)
    });
    let Some(file) = named else {
        crate::log::fail(&format!(
            "{} is not in PATH; {}",
            compiler.display(),
            hint(compiler)
        ));
        return 127;
    };
    if bare && !locate::is_nvcc(compiler) {
        hint_at_command(compiler, args, &file);
    }
    let config = match config {
        // Behind another warpcc there is nothing left to do, or to count.
        Ok(config)
            if locate::is_nvcc(compiler)
                && !config.disable.value
                && around.ourselves.len() == 1 =>
        {
            config
        }
        Ok(_) => return become_compiler(&file, args, &around),
        Err(error) => {
            crate::log::warn(&format!("{error}; running nvcc without warpcc"));
            return become_compiler(&file, args, &around);
        }
    };
    let log = Log::new(config.log.value.clone());
    if outputs::are_closed_to_their_owner() {
        // Not counted: nothing of ours may be made.
        log.line(|| "running nvcc: the umask takes rights from the user itself".to_owned());
        return become_compiler(&file, args, &around);
    }
    if log.is_on() {
        let environment = &around.environment;
        locate::log_choice(&file, named_by, environment, &around.ourselves, &log);
    }
    let store = open_store(&config);
    let lineage = Lineage::find(&config);
    let account = CallRecorder::new(&file, args, &around, store.as_ref(), &config, &lineage);
    match cached(&file, args, &around, &account, &log) {
        Ok(code) => code,
        Err(bypass) => {
            bypass.count_and_make_room(&account, &log);
            // The account writes its last counts when it is dropped, and nothing is dropped when nvcc replaces this process.
            drop(account);
            drop(store);
            become_compiler(&file, args, &around)
        }
    }
}

fn cached(
    nvcc: &Path,
    args: &[OsString],
    around: &ProcessContext,
    account: &CallRecorder<'_>,
    log: &Log,
) -> Result<i32, Bypass> {
    let base_dirs = &account.config.base_dir.value;
    let call = Call {
        around,
        account,
        log,
    };
    let session = Session::prepare(nvcc, args, base_dirs, call)?;
    session.complete(&Wishes::of_launcher(), |_, _| {})
}

fn become_compiler(file: &Path, args: &[OsString], around: &ProcessContext) -> i32 {
    let error = fallback::become_compiler(file, args, &around.ourselves);
    crate::log::fail(&error.to_string());
    if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    }
}

fn hint(compiler: &OsStr) -> String {
    let word = compiler.to_str().unwrap_or_default();
    if let Some(ours) = subcommand_words::meant_by(word) {
        return format!("did you mean `{ours}`?");
    }
    match subcommand_words::nearest_subcommand(word) {
        Some(near) => format!("did you mean `warpcc {near}`?"),
        None => "name a compiler or see `warpcc --help`".to_owned(),
    }
}

/// Names the command that was probably meant where another program has a similar name: `warpcc stat`. The program still
/// runs, because it may be a compiler.
fn hint_at_command(compiler: &OsStr, args: &[OsString], file: &Path) {
    let Some(near) = compiler
        .to_str()
        .and_then(subcommand_words::nearest_subcommand)
    else {
        return;
    };
    // Arguments that the command would refuse were not meant for it.
    if crate::cli::takes(near, args) {
        crate::log::warn(&format!(
            "{} is not a warpcc command, so warpcc runs {}; did you mean `warpcc {near}`?",
            compiler.display(),
            file.display()
        ));
    }
}
