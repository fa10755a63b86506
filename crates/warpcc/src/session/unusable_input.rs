//! Finds an input of a call that is missing, or not a regular file.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;

use crate::request::Request;

/// An input that does not exist.
pub(super) fn missing_input(request: &Request) -> Option<&String> {
    let mut inputs = request.invocation.inputs.iter();
    inputs.find(|input| {
        let found = std::fs::metadata(request.absolute(input));
        found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    })
}

/// An input that is not a regular file, such as `/dev/stdin`, or a pipe in an option, such as the shell's `-include <(…)`.
/// Such a file can be read only once, and which step reads it depends on the order of the steps.
pub(super) fn irregular_input(request: &Request, args: &[OsString]) -> Option<String> {
    let kind = |path: &str| {
        let found = std::fs::metadata(request.absolute(path));
        found.ok().map(|found| found.file_type())
    };
    let invocation = &request.invocation;
    let inputs = invocation
        .inputs
        .iter()
        .chain(&invocation.host_options_files);
    let mut irregular = inputs.filter(|input| kind(input).is_some_and(|kind| !kind.is_file()));
    let words = args.iter().filter_map(|word| word.to_str());
    let values = words.map(|word| word.split_once('=').map_or(word, |(_, value)| value));
    let outputs = request.invocation.outputs();
    let is_output = |word: &str| outputs.iter().any(|output| output.path == *word);
    let is_pipe = |word: &&str| kind(word).is_some_and(|kind| kind.is_fifo()) && !is_output(word);
    irregular.next().cloned().or_else(|| {
        values
            .filter(|word| !word.starts_with('-'))
            .find(is_pipe)
            .map(str::to_owned)
    })
}
