//! Bundles in a request: their headers for NVRTC, their LTO-IR for nvJitLink.
//!
//! The key has a bundle's digest. It is decompressed when something is compiled, or when include folders make it necessary
//! to search its headers for names of files.

use std::collections::HashMap;
use std::sync::Arc;

use warpcc_fatbin::{Arch, Format, ImageKind, ReadLimits, Suffix, read};
use warpcc_rtc_bundle::{Bundle, BundleError, Content, ItemKind};

use crate::error::Error;
use crate::linker::{Piece, PieceKind};
use crate::option_rules::link_options;
use crate::request::{CompileRequest, Text};
use crate::target::{RealArch, Target, VirtualArch};

/// The beginning of a fat binary.
const FATBIN: &[u8] = b"\x50\xed\x55\xba";

impl CompileRequest {
    /// The architecture for which the result is linked with LTO-IR, if it is.
    pub(crate) fn linked_for(&self) -> Option<RealArch> {
        match self.target {
            Target::Cubin(arch) if self.has_fragments() => Some(arch),
            _ => None,
        }
    }

    fn has_fragments(&self) -> bool {
        self.bundles
            .iter()
            .any(|bundle| bundle.has(ItemKind::Fragment))
    }

    /// Refuses bundles whose headers contradict each other or the headers given as text.
    pub(crate) fn check_bundles(&self) -> Result<(), Error> {
        if self.bundles.is_empty() {
            return Ok(());
        }
        if self.has_fragments() && matches!(self.target, Target::Ptx(_)) {
            return Err(Error::invalid(
                format!("target {}", self.target),
                "embedded LTO-IR is linked to machine code: ask for a cubin (sm_90)",
            ));
        }
        let mut known: HashMap<&str, Option<&[u8; 32]>> = HashMap::new();
        for header in &self.headers {
            known.insert(&header.name, None);
        }
        for (kind, name, hash) in self.bundles.iter().flat_map(Bundle::items) {
            if kind != ItemKind::Header {
                continue;
            }
            if let Some(other) = known.insert(name, Some(hash))
                && other != Some(hash)
            {
                return Err(Error::invalid(
                    format!("header {name:?}"),
                    "two bundles, or a bundle and a header given as text, have different headers of this name",
                ));
            }
        }
        Ok(())
    }

    /// Refuses what NVRTC alone cannot make: only a cache has a linker.
    pub(crate) fn can_be_compiled_alone(&self) -> Result<(), Error> {
        match self.linked_for() {
            None => Ok(()),
            Some(arch) => Err(Error::invalid(
                format!("target {}", self.target),
                format!(
                    "a bundle has LTO-IR to link: use KernelCache, or compile for lto_{} and use Linker",
                    arch.0
                ),
            )),
        }
    }

    /// Puts the headers of the bundles among those that are given as text.
    pub(crate) fn unpack_bundles(&mut self) -> Result<(), Error> {
        let mut known: HashMap<Arc<str>, ()> = HashMap::new();
        for bundle in std::mem::take(&mut self.bundles) {
            for header in contents(&bundle)? {
                if header.kind != ItemKind::Header
                    || known.insert(header.name.clone(), ()).is_some()
                {
                    continue;
                }
                let text = str::from_utf8(&header.bytes);
                let text = text.map_err(|error| damaged(&error.to_string()))?;
                self.headers.push(Text::new(header.name.clone(), text));
            }
        }
        Ok(())
    }

    /// The LTO-IR of all bundles, each piece once.
    ///
    /// # Errors
    /// A bundle is damaged, or has nothing for the architecture.
    pub(crate) fn fragments(&self, target: RealArch) -> Result<Vec<Piece>, Error> {
        let mut pieces: Vec<Piece> = Vec::new();
        for bundle in &self.bundles {
            let fragments = contents(bundle)?.iter();
            for fragment in fragments.filter(|one| one.kind == ItemKind::Fragment) {
                if pieces.iter().any(|piece| piece.bytes == fragment.bytes) {
                    continue;
                }
                pieces.push(Piece {
                    name: fragment.name.clone(),
                    kind: kind_for(fragment, target)?,
                    bytes: fragment.bytes.clone(),
                });
            }
        }
        Ok(pieces)
    }

    /// The request for the LTO-IR of this program itself.
    pub(crate) fn lto_half(&self, arch: RealArch) -> Self {
        let mut half = self.clone();
        half.target = Target::LtoIr(VirtualArch(arch.0));
        let relocatable = |option: &Arc<str>| {
            let word = option.trim_start_matches('-');
            ["rdc", "relocatable-device-code", "dc", "device-c"]
                .iter()
                .any(|own| word == *own || word.starts_with(&format!("{own}=")))
        };
        if !half.options.iter().any(relocatable) {
            half.options.push("--relocatable-device-code=true".into());
        }
        half
    }

    /// The options for nvJitLink that mean what this program's options mean for NVRTC.
    pub(crate) fn options_of_link(&self) -> Vec<Arc<str>> {
        let options = self.options.iter();
        options.flat_map(|option| link_options(option)).collect()
    }
}

fn contents(bundle: &Bundle) -> Result<&[Content], Error> {
    let contents = bundle.contents();
    contents.map_err(|BundleError(why)| damaged(&why))
}

fn damaged(why: &str) -> Error {
    Error::invalid("an embedded bundle", why)
}

/// How a fragment is given to the linker, if it has code for the target.
fn kind_for(fragment: &Content, target: RealArch) -> Result<PieceKind, Error> {
    if !fragment.bytes.starts_with(FATBIN) {
        return Ok(PieceKind::LtoIr);
    }
    let found = read(&fragment.bytes, Format::Fatbin, &ReadLimits::default());
    let images = found.containers.iter().flat_map(|one| &one.images);
    let images = images.filter(|image| image.kind == ImageKind::LtoIr);
    let mut archs: Vec<Arch> = images.map(|image| image.arch).collect();
    archs.sort_unstable();
    archs.dedup();
    if archs.iter().any(|arch| links_for(*arch, target.0)) {
        return Ok(PieceKind::Fatbin);
    }
    let there = match archs.as_slice() {
        [] => "no LTO-IR".to_owned(),
        some => {
            let some: Vec<_> = some.iter().map(|arch| format!("lto_{arch}")).collect();
            format!("LTO-IR for {} only", some.join(", "))
        }
    };
    Err(Error::invalid(
        format!("fragment {:?}", fragment.name),
        format!(
            "it has {there}, and nothing that links for {target}: embed it for {} too",
            target.0
        ),
    ))
}

/// Whether nvJitLink links LTO-IR of `arch` for `target`.
fn links_for(arch: Arch, target: Arch) -> bool {
    match arch.suffix {
        Suffix::None => arch.number <= target.number,
        Suffix::Family => arch.family_reaches(target.number),
        Suffix::Exact => arch == target,
    }
}

#[cfg(test)]
mod tests {
    use warpcc_rtc_bundle::BundleMaker;

    use super::*;

    fn bundle(items: &[(&str, &str)], fragment: Option<&[u8]>) -> Bundle {
        let mut maker = BundleMaker::new();
        for (name, text) in items {
            maker.header(name, text.as_bytes()).expect("added");
        }
        if let Some(bytes) = fragment {
            maker.fragment("f", bytes).expect("added");
        }
        Bundle::open(maker.finish().expect("made")).expect("a bundle")
    }

    fn request(target: &str, bundles: Vec<Bundle>) -> CompileRequest {
        let mut one = CompileRequest::new("k", "", target.parse().expect("a target"));
        one.bundles = bundles;
        one
    }

    #[test]
    fn a_header_of_two_bundles_must_be_the_same() {
        let (one, same) = (
            bundle(&[("a", "1")], None),
            bundle(&[("a", "1"), ("b", "")], None),
        );
        let mut both = request("sm_90", vec![one.clone(), same]);
        both.check().expect("the same header twice");
        both.unpack_bundles().expect("whole");
        assert_eq!(both.headers.len(), 2);
        let other = request("sm_90", vec![one.clone(), bundle(&[("a", "2")], None)]);
        let error = other.check().expect_err("two headers").to_string();
        assert!(
            error.contains("\"a\"") && error.contains("different"),
            "{error}"
        );
        let mut text = request("sm_90", vec![one]);
        text.headers.push(Text::new("a", "1"));
        assert!(text.check().is_err());
    }

    #[test]
    fn only_machine_code_is_linked() {
        let with = |target: &str| request(target, vec![bundle(&[], Some(b"LTO-IR"))]);
        assert!(with("compute_90").check().is_err());
        assert!(with("lto_90").linked_for().is_none());
        with("lto_90").can_be_compiled_alone().expect("LTO-IR");
        let error = with("sm_90a")
            .can_be_compiled_alone()
            .expect_err("no linker");
        assert!(error.to_string().contains("lto_90a"), "{error}");
        let mut given = with("sm_90");
        given.options.push("-rdc=true".into());
        assert_eq!(given.lto_half(RealArch::new(90)).options.len(), 1);
    }

    #[test]
    fn newer_gpus_take_older_lto_ir_and_letters_only_their_own() {
        let arch = |text: &str| text.parse::<Arch>().expect("an architecture");
        for (have, target, links) in [
            ("80", "86", true),
            ("80", "90a", true),
            ("90", "80", false),
            ("90a", "90a", true),
            ("90a", "90", false),
            ("90a", "100", false),
            ("100f", "103", true),
            ("100f", "120", false),
        ] {
            assert_eq!(
                links_for(arch(have), arch(target)),
                links,
                "{have} {target}"
            );
        }
    }
}
