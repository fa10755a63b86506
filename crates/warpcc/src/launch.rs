//! Runs in place of a compiler: as a launcher (`warpcc nvcc …`), or under the compiler's name.
//!
//! If warpcc does not support a call, this process becomes the real compiler with the user's own command, and the reason is
//! counted.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::bypass::Bypass;
use crate::call_record::CallRecorder;
use crate::config::Config;
use crate::log::Log;
use crate::process_context::ProcessContext;
use crate::resources::CallId;
use crate::session::{Call, CallOptions, Session};
use crate::store::open_store;
use crate::{fallback, locate, outputs, subcommand_words};

/// Runs `compiler` with `args`. Gives the exit code, or does not return because this process becomes the compiler.
pub fn launch(compiler: &OsStr, args: &[OsString], context: ProcessContext) -> i32 {
    // Two build systems that both add a launcher make `warpcc warpcc nvcc …`.
    if let ([inner, rest @ ..], true) = (
        args,
        locate::is_ourselves(Path::new(compiler), &context.ourselves),
    ) && !locate::is_nvcc(compiler)
    {
        let inner = inner.clone();
        return launch(&inner, rest, context);
    }
    let config = Config::load(crate::config::variable);
    let is_bare = !compiler.as_encoded_bytes().contains(&b'/')
        || locate::is_ourselves(Path::new(compiler), &context.ourselves);
    let setting = config.as_ref().ok().and_then(|c| c.nvcc.value.as_deref());
    let found = find_compiler(compiler, setting, is_bare, &context);
    let Some((file, named_by)) = found else {
        crate::log::fail(&format!(
            "{} is not in PATH; {}",
            compiler.display(),
            hint(compiler)
        ));
        return 127;
    };
    if is_bare && !locate::is_nvcc(compiler) && !locate::is_clang(compiler) {
        hint_at_command(compiler, args, &file);
    }
    let config = match config {
        // If another warpcc started this one, that one caches and counts the call.
        Ok(config)
            if (locate::is_nvcc(compiler) || is_clang_for_cuda(compiler, args))
                && !config.disable.value
                && context.ourselves.len() == 1 =>
        {
            config
        }
        Ok(_) => return become_compiler(&file, args, &context),
        Err(error) => {
            crate::log::warn(&format!("{error}; running nvcc without warpcc"));
            return become_compiler(&file, args, &context);
        }
    };
    let log = Log::new(config.log.value.clone());
    // Or somebody removed warpcc's file. Without /proc, warpcc sees neither its tools' files nor which processes have ended.
    if !context.has_proc {
        crate::log::warn(
            "/proc does not say where warpcc's own file is; is it mounted? Running nvcc without warpcc",
        );
        return become_compiler(&file, args, &context);
    }
    if outputs::umask_locks_out_owner() {
        // The call is not counted, because that would make files in the cache.
        log.line(|| "running nvcc: the umask takes rights from the user itself".to_owned());
        return become_compiler(&file, args, &context);
    }
    if log.is_on() {
        let environment = &context.environment;
        locate::log_choice(&file, named_by, environment, &context.ourselves, &log);
    }
    let store = open_store(&config);
    let call_id = CallId::find(&config);
    let recorder = CallRecorder::new(&file, args, &context, store.as_ref(), &config, &call_id);
    match cached(&file, args, &context, &recorder, &log) {
        Ok(code) => code,
        Err(bypass) => {
            bypass.count_and_make_room(&recorder, &log);
            // The store writes its last counts when it is dropped. When nvcc replaces this process, nothing is dropped.
            drop(recorder);
            drop(store);
            become_compiler(&file, args, &context)
        }
    }
}

/// Whether clang is called to compile CUDA. Its other calls are for a cache of C++.
fn is_clang_for_cuda(compiler: &OsStr, args: &[OsString]) -> bool {
    let words = || {
        args.iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    locate::is_clang(compiler) && warpcc_plan::clang_driver::compiles_cuda(&words())
}

/// The file that `compiler` means, and the variable that led to it, if one did.
fn find_compiler(
    compiler: &OsStr,
    setting: Option<&Path>,
    is_bare: bool,
    context: &ProcessContext,
) -> Option<(PathBuf, Option<&'static str>)> {
    let path = context
        .environment
        .iter()
        .find(|(n, _)| n == "PATH")
        .map(|(_, v)| v.as_os_str());
    let may_search = locate::is_nvcc(compiler) && is_bare;
    let name = setting
        .filter(|_| may_search)
        .map_or(compiler, Path::as_os_str);
    if let Some(file) = locate::compiler(name, path, &context.ourselves) {
        return Some((file, None));
    }
    // PyTorch runs "warpcc nvcc" and finds its toolkit through a variable, without PATH.
    let name = may_search.then(|| Path::new(compiler).file_name())??;
    let (file, by) = locate::in_toolkit(name, &context.environment, &context.ourselves)?;
    Some((file, Some(by)))
}

fn cached(
    nvcc: &Path,
    args: &[OsString],
    context: &ProcessContext,
    recorder: &CallRecorder<'_>,
    log: &Log,
) -> Result<i32, Bypass> {
    let base_dirs = &recorder.config.base_dir.value;
    let call = Call {
        context,
        recorder,
        log,
    };
    let session = Session::prepare(nvcc, args, base_dirs, call)?;
    session.complete(&CallOptions::for_launcher(), |_, _| {})
}

fn become_compiler(file: &Path, args: &[OsString], context: &ProcessContext) -> i32 {
    let error = fallback::become_compiler(file, args, &context.ourselves);
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

/// Prints a hint where the user ran another program with a name like a warpcc command, such as `warpcc stat`. The program
/// still runs, because it may be a compiler.
fn hint_at_command(compiler: &OsStr, args: &[OsString], file: &Path) {
    let Some(near) = compiler
        .to_str()
        .and_then(subcommand_words::nearest_subcommand)
    else {
        return;
    };
    // Without arguments that the command takes, the user did not mean the command.
    if crate::cli::takes(near, args) {
        crate::log::warn(&format!(
            "{} is not a warpcc command, so warpcc runs {}; did you mean `warpcc {near}`?",
            compiler.display(),
            file.display()
        ));
    }
}
