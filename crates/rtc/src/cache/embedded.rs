//! Kernels that are linked with LTO-IR that was embedded into the program: one image, one key, one look-up.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use warpcc_cache::Key;

use crate::call_limits::CallLimits;
use crate::compiler::Compiled;
use crate::error::Error;
use crate::keys::Builds;
use crate::linker::{LinkRequest, Linker, Piece, PieceKind};
use crate::request::CompileRequest;
use crate::target::Target;

use super::{KernelCache, Turn};

impl KernelCache {
    /// The libraries that decide the result of a request. nvJitLink is found for this, and not loaded: a hit needs no linker.
    pub(super) fn builds_of(&self, request: &CompileRequest) -> Result<Builds<'_>, Error> {
        let compiler = self.build(0, self.compiler.files());
        let linker = match request.linked_for() {
            None => None,
            Some(_) => Some(match self.linker_file() {
                Some(file) => self.build(2, [file].into_iter()),
                None => self.build(1, [self.linker()?.library()].into_iter()),
            }),
        };
        // Without its content, only its version can tell one library from another.
        let version = match linker {
            Some([]) => Some(self.linker()?.version()),
            _ => None,
        };
        Ok(Builds {
            compiler,
            linker,
            version,
        })
    }

    /// The file of nvJitLink that will be loaded, most likely.
    fn linker_file(&self) -> Option<&Path> {
        let found = self.linker_file.get_or_init(|| match self.linker.get() {
            Some(Ok(linker)) => Some(linker.library().to_path_buf()),
            Some(Err(_)) => None,
            None => Linker::locate(self.compiler.library().parent(), &self.environment),
        });
        let found = found.as_deref();
        found.filter(|path| !path.as_os_str().is_empty())
    }

    /// Compiles a program and links it, if there is something to link it with. Returns also whether the result may be kept.
    pub(super) fn compile(
        &self,
        request: &CompileRequest,
        key: Option<&Key>,
        limits: &CallLimits,
        turn: &mut Turn<'_>,
    ) -> Result<(Compiled, bool), Error> {
        let Some(arch) = request.linked_for() else {
            let compiled = self.compile_text(request, key, limits, turn)?;
            return Ok((compiled, true));
        };
        let mut pieces = request.fragments(arch)?;
        let linker = self.linker()?;
        let half = self.compile_text(&request.lto_half(arch), key, limits, turn)?;
        limits.check(&request.name)?;
        let own = Piece {
            name: request.name.clone(),
            kind: PieceKind::LtoIr,
            bytes: half.image,
        };
        pieces.insert(0, own);
        let link = LinkRequest {
            name: request.name.clone(),
            pieces,
            target: arch,
            options: request.options_of_link(),
        };
        let start = Instant::now();
        let linked = linker.link(&link);
        self.usage.spent(start.elapsed());
        let linked = linked?;
        let logs = [half.log, linked.log];
        let compiled = Compiled {
            target: Target::Cubin(arch),
            image: linked.image,
            lowered: half.lowered,
            log: logs.into_iter().filter(|log| !log.is_empty()).collect(),
        };
        // The key has the content of the file that was found, which need not be the one that could be loaded.
        let expected = self.linker_file().map(identity);
        let is_it = expected.is_none_or(|file| file == identity(linker.library()));
        Ok((compiled, is_it))
    }
}

/// What tells one file from another.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
