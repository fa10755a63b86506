//! Images compressed anew, against those that `fatbinary` compresses, and against what `cuobjdump` reads.

use std::path::Path;

use crate::space::cuobjdump::{assert_same_images, assert_same_list};
use crate::space::{Toolkit, folder, listed, open, run};
use warpcc_fatbin::{
    Binary, CompressMode, Depth, ImageKind, Keep, ReadLimits, Refusal, Thinned, thin,
};

const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";

fn recompressed(path: &Path, mode: CompressMode) -> Result<Thinned, Refusal> {
    let everything = Keep::everything();
    thin(&open(path), &everything, Some(mode), &ReadLimits::default())
}

/// Each image's kind, its flags with the compression, its payload as stored without padding, and unpacked.
fn images(binary: &Binary) -> Vec<(ImageKind, u64, Vec<u8>, Vec<u8>)> {
    let found = binary.contents(&ReadLimits::default());
    assert_eq!(found.problems, []);
    let images = found.containers.iter().flat_map(|c| &c.images);
    images
        .map(|image| {
            let stored = image.stored.get();
            let exact = match image.compressed_size {
                0 => stored.len(),
                size => size as usize,
            };
            let payload = image.payload(&ReadLimits::default()).expect("it unpacks");
            (
                image.kind,
                image.flags.0,
                stored[..exact].to_vec(),
                payload.into_owned(),
            )
        })
        .collect()
}

/// From each mode to each: the same images as `fatbinary` makes, with the same flags; PTX byte for byte.
#[test]
fn every_mode_is_made_of_every_other_as_fatbinary_makes_it() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    // One that is loaded, one that is linked later, and one for a debugger.
    for (name, options) in [("loaded", ""), ("linked", "-rdc=true"), ("debug", "-G")] {
        for mode in CompressMode::ALL {
            let words = format!(
                "-fatbin -compress-mode={mode} a.cu {TWO} {options} -o {name}-{mode}.fatbin"
            );
            toolkit.compile(at, &words);
        }
        for from in CompressMode::ALL {
            for to in CompressMode::ALL {
                let file = at.join(format!("{name}-{from}.fatbin"));
                let made = recompressed(&file, to).expect("compressed anew");
                let new = at.join("new.fatbin");
                std::fs::write(&new, &made.bytes).expect("written");
                let said = format!("{name} from {from} to {to}");
                let theirs = open(&at.join(format!("{name}-{to}.fatbin")));
                let (ours, theirs) = (images(&open(&new)), images(&theirs));
                let source = images(&open(&file));
                assert_eq!(
                    (ours.len(), source.len()),
                    (theirs.len(), theirs.len()),
                    "{said}"
                );
                for ((ours, theirs), source) in ours.iter().zip(&theirs).zip(&source) {
                    assert!(ours.3 == source.3, "{said}: another content");
                    // Two debug builds have different names of temporary files in them.
                    assert!(ours.3 == theirs.3 || name == "debug", "{said}");
                    // An image that is denser already stays as it is.
                    let denser = from == CompressMode::Size && to == CompressMode::Balance;
                    if ours.0 == ImageKind::Ptx && !denser && name != "debug" {
                        assert!(ours.2 == theirs.2, "{said}: another text");
                    }
                    assert_eq!(ours.1, theirs.1, "{said}: other flags");
                }
                assert_same_list(&new);
                // cuobjdump names the images of a debug build by their source, so that they replace each other.
                if name != "debug" {
                    assert_same_images(&new);
                }
            }
        }
    }
}

#[test]
fn a_library_gets_smaller_and_is_still_one() {
    let folder = folder();
    let at = folder.path();
    let toolkit = Toolkit::newest();
    let mut source = String::new();
    for number in 0..60 {
        source += &format!("__global__ void k{number}(float *p) {{ *p = sinf(*p + {number}); }}\n");
    }
    source += "extern \"C\" int answer() { k0<<<1, 1>>>(nullptr); return 42; }\n";
    std::fs::write(at.join("l.cu"), source).expect("written");
    toolkit.compile(
        at,
        &format!("-shared -Xcompiler -fPIC l.cu {TWO} -o libl.so"),
    );
    let library = at.join("libl.so");
    let made = recompressed(&library, CompressMode::Size).expect("compressed anew");
    // The machine code for two architectures; PTX is denser than before.
    assert!(made.recompressed >= 3 && made.images.0 == made.images.1);
    let before = library.metadata().expect("a file").len();
    assert!(
        (made.bytes.len() as u64) < before - 100_000,
        "{} of {before}",
        made.bytes.len()
    );
    let new = at.join("new.so");
    std::fs::write(&new, &made.bytes).expect("written");
    assert_eq!(
        assert_same_list(&new),
        listed(&library, Depth::Headers).rows.len()
    );
    assert_same_images(&new);
    let (old_images, new_images) = (open(&library), open(&new));
    for (old, new) in images(&old_images).iter().zip(&images(&new_images)) {
        assert!(old.3 == new.3);
    }
    let ask = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).answer() - 42)";
    run(std::process::Command::new("python3")
        .args(["-c", ask])
        .arg(&new));
    // Nothing can grow in place.
    let refused = recompressed(&new, CompressMode::None).expect_err("it would grow");
    assert!(matches!(refused, Refusal::Grows { .. }), "{refused}");
    assert!(
        made.notes.iter().any(|note| note.contains("12.4")),
        "{:?}",
        made.notes
    );
}
