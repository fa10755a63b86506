//! Computes the key of an image.

use warpcc_cache::{Hashing, Key, KeySink};

use crate::compiler::Compiler;
use crate::linker::{LinkRequest, Linker};
use crate::request::CompileRequest;
use crate::seen_files::SeenFiles;
use crate::version::Version;

/// The version of keys and entries: it changes when their meaning changes.
const DOMAIN: &str = "warpcc kernel 1";
const LINK_DOMAIN: &str = "warpcc linked image 1";

/// The key of a program's image.
pub(crate) fn of_program(
    compiler: &Compiler,
    builds: &Builds<'_>,
    request: &CompileRequest,
    seen: &SeenFiles,
) -> Key {
    let mut hashing = Hashing::new(DOMAIN);
    program_parts(&mut hashing, compiler, builds, request, seen);
    hashing.finish()
}

/// The libraries that make an image.
pub(crate) struct Builds<'b> {
    /// The hashes of the compiler's files; empty if they cannot be read.
    pub compiler: &'b [[u8; 32]],
    /// The hash of nvJitLink's file, if the image is linked with embedded LTO-IR; empty if it cannot be read.
    pub linker: Option<&'b [[u8; 32]]>,
    /// nvJitLink's version, if its content is not known.
    pub version: Option<Version>,
}

/// Gives `hashing` all parts of a program's key.
pub(crate) fn program_parts(
    hashing: &mut impl KeySink,
    compiler: &Compiler,
    builds: &Builds<'_>,
    request: &CompileRequest,
    seen: &SeenFiles,
) {
    hashing.part("version", compiler.version().to_string().as_bytes());
    for build in builds.compiler {
        hashing.part("library", build);
    }
    for build in builds.linker.unwrap_or_default() {
        hashing.part("linker", build);
    }
    if let Some(version) = builds.version {
        hashing.part("linker's version", version.to_string().as_bytes());
    }
    hashing.part("target", request.target.to_string().as_bytes());
    let place = seen.included.shows_paths || request.keeps_paths();
    for option in compiler.options(request) {
        // The content of the folders counts, and their place only if the image may contain it.
        match option.starts_with(b"--include-path=") && !place {
            true => hashing.part("option", b"--include-path"),
            false => hashing.part("option", &option),
        }
    }
    if place {
        let directory = seen.directory.as_os_str();
        hashing.part("directory", directory.as_encoded_bytes());
    }
    hashing.part("name", request.plain_name().as_bytes());
    for part in &request.preamble {
        hashing.part("text name", part.name.as_bytes());
        hashing.part("text", part.text.as_bytes());
    }
    hashing.part("source", request.source.as_bytes());
    for name in &request.debug_names {
        hashing.part("debug name", name.as_bytes());
    }
    for header in &request.headers {
        hashing.part("header name", header.name.as_bytes());
        hashing.part("header", header.text.as_bytes());
    }
    for bundle in &request.bundles {
        hashing.part("bundle", bundle.digest());
    }
    for expression in &request.name_expressions {
        hashing.part("name expression", expression.as_bytes());
    }
    for (label, content) in &seen.included.files {
        hashing.part("file name", label.as_bytes());
        hashing.part("file", content);
    }
}

/// The key of a linked image.
pub(crate) fn of_link(linker: &Linker, builds: &[[u8; 32]], request: &LinkRequest) -> Key {
    let mut hashing = Hashing::new(LINK_DOMAIN);
    hashing.part("version", linker.version().to_string().as_bytes());
    for build in builds {
        hashing.part("library", build);
    }
    for option in linker.options(request) {
        hashing.part("option", option.as_bytes());
    }
    for piece in &request.pieces {
        hashing.part("name", piece.name.as_bytes());
        hashing.part("kind", piece.kind.word().as_bytes());
        hashing.part("bytes", &piece.bytes);
    }
    hashing.finish()
}

/// A value for images whose included files cannot be known.
pub(crate) fn unknown() -> Key {
    Hashing::new(DOMAIN).finish()
}
