//! Thinned wheels: pip installs them, their record is right, and all other members are as they were.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::space::{Toolkit, run};
use warpcc_fatbin::{
    Binary, BinaryInput, CompressMode, Keep, NotThinned, ReadLimits, find, thin_wheel,
};

const TWO: &str =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]";
const WHEEL: &str = "thing-1.0-py3-none-linux_x86_64.whl";

/// Writes a wheel with Python's own zip and hashes: libraries, a text, a file with a comma, and more members as given.
const MAKE: &str = r#"
import base64, hashlib, sys, zipfile
members = [("thing/__init__.py", b"import ctypes, os\ndef answer():\n    here = os.path.dirname(__file__)\n    return ctypes.CDLL(os.path.join(here, 'libthing.so')).answer()\n"),
    ("thing/libthing.so", open("libthing.so", "rb").read()),
    ("thing/with,comma.fatbin", open("a.fatbin", "rb").read()),
    ("thing/data.bin", bytes(range(256)) * 40),
    ("thing-1.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"),
    ("thing-1.0.dist-info/WHEEL", b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n")]
members += [(name, b"x") for name in sys.argv[2:]]
record = ""
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as wheel:
    wheel.comment = b"a comment"
    for number, (name, data) in enumerate(members):
        info = zipfile.ZipInfo(name, (2024, 2, 3, 4, 5, 6 + 2 * number))
        info.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
        info.compress_type = zipfile.ZIP_STORED if name.endswith(".bin") else zipfile.ZIP_DEFLATED
        wheel.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        shown = '"%s"' % name if "," in name else name
        record += "%s,sha256=%s,%d\r\n" % (shown, digest, len(data))
    record += "thing-1.0.dist-info/RECORD,,\r\n"
    wheel.writestr(zipfile.ZipInfo("thing-1.0.dist-info/RECORD", (2024, 2, 3, 4, 5, 6)), record)
"#;

/// Says of each member all that the directory has, and verifies the record as an installer does.
const READ: &str = r#"
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
for info in wheel.infolist():
    with open(sys.argv[1], "rb") as raw:
        raw.seek(info.header_offset + 26)
        skip = int.from_bytes(raw.read(2), "little") + int.from_bytes(raw.read(2), "little")
        raw.seek(skip, 1)
        packed = hashlib.sha256(raw.read(info.compress_size)).hexdigest()
    print(info.filename, info.date_time, oct(info.external_attr), info.compress_type, packed, sep="|")
print(wheel.comment)
rows = csv.reader(io.TextIOWrapper(wheel.open("thing-1.0.dist-info/RECORD"), newline=""))
seen = set()
for name, digest, size in rows:
    seen.add(name)
    if digest:
        kind, expected = digest.split("=", 1)
        data = wheel.read(name)
        found = base64.urlsafe_b64encode(hashlib.new(kind, data).digest()).rstrip(b"=").decode()
        assert found == expected and int(size) == len(data), name
assert seen == set(wheel.namelist())
"#;

fn python(at: &Path, script: &str, words: &[&str]) -> String {
    run(Command::new("python3")
        .current_dir(at)
        .args(["-c", script])
        .args(words))
}

fn folder_with_wheel() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut source = String::new();
    for number in 0..40 {
        source += &format!("__global__ void k{number}(float *p) {{ *p += {number}; }}\n");
    }
    source += "extern \"C\" int answer() { k0<<<1, 1>>>(nullptr); return 42; }\n";
    std::fs::write(at.join("a.cu"), source).expect("written");
    let toolkit = Toolkit::newest();
    toolkit.compile(
        at,
        &format!("-shared -Xcompiler -fPIC a.cu {TWO} -o libthing.so"),
    );
    toolkit.compile(at, &format!("-fatbin a.cu {TWO} -o a.fatbin"));
    python(at, MAKE, &[WHEEL]);
    folder
}

fn thinned(
    at: &Path,
    wheel: &str,
    keep: &Keep,
    mode: Option<CompressMode>,
) -> Result<Vec<u8>, NotThinned> {
    let out = at.join("out.zip");
    let file = File::create(&out).expect("a file");
    thin_wheel(&at.join(wheel), file, keep, mode, &ReadLimits::default())?;
    Ok(std::fs::read(out).expect("readable"))
}

#[test]
fn a_thinned_wheel_is_installed_and_its_record_is_right() {
    let folder = folder_with_wheel();
    let at = folder.path();
    let keep: Keep = "sm_90+ptx".parse().expect("a list");
    let bytes = thinned(at, WHEEL, &keep, Some(CompressMode::Size)).expect("thinned");
    // Nothing but the wheel and the request decides what is written.
    assert!(bytes == thinned(at, WHEEL, &keep, Some(CompressMode::Size)).expect("again"));
    std::fs::create_dir(at.join("new")).expect("made");
    let new = format!("new/{WHEEL}");
    std::fs::write(at.join(&new), &bytes).expect("written");
    assert!(bytes.len() as u64 <= at.join(WHEEL).metadata().expect("a file").len());

    let (before, after) = (python(at, READ, &[WHEEL]), python(at, READ, &[&new]));
    let changed: Vec<&str> = before
        .lines()
        .zip(after.lines())
        .filter(|(before, after)| before != after)
        .map(|(before, after)| {
            // Name, date, permissions and method stay.
            let head = |line: &str| line.rsplit_once('|').map(|(head, _)| head.to_owned());
            assert_eq!(head(before), head(after));
            before.split('|').next().unwrap_or_default()
        })
        .collect();
    let expected = [
        "thing/libthing.so",
        "thing/with,comma.fatbin",
        "thing-1.0.dist-info/RECORD",
    ];
    assert_eq!(changed, expected);
    assert_eq!(before.lines().count(), after.lines().count());

    run(Command::new("python3")
        .current_dir(at)
        .args(["-m", "venv", "env"]));
    let pip = at.join("env/bin/python");
    let words = [
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--disable-pip-version-check",
    ];
    run(Command::new(&pip).current_dir(at).args(words).arg(&new));
    run(Command::new(&pip)
        .current_dir(at)
        .args(["-m", "pip", "check"]));
    let ask = "import thing, sys; sys.exit(thing.answer() - 42)";
    run(Command::new(&pip).current_dir(at).args(["-c", ask]));
    // As installed: the images that were asked for.
    let (inputs, errors) = find(&[at.join("env/lib")]);
    assert!(errors.is_empty());
    let inputs: Vec<BinaryInput> = inputs
        .into_iter()
        .filter(|input| input.path.to_string_lossy().contains("thing/"))
        .collect();
    assert_eq!(inputs.len(), 2);
    for input in inputs {
        let binary = Binary::open(input, &ReadLimits::default()).expect("it opens");
        let found = binary.contents(&ReadLimits::default());
        let images = found.containers.iter().flat_map(|c| &c.images);
        let targets: Vec<String> = images.map(|image| image.target()).collect();
        assert!(targets.contains(&"compute_90".to_owned()), "{targets:?}");
        assert!(!targets.contains(&"sm_80".to_owned()), "{targets:?}");
    }
}

#[test]
fn a_wheel_that_would_be_wrong_afterwards_is_refused() {
    let folder = folder_with_wheel();
    let at = folder.path();
    let keep: Keep = "sm_90".parse().expect("a list");
    python(at, MAKE, &["signed.whl", "thing-1.0.dist-info/RECORD.jws"]);
    assert!(matches!(
        thinned(at, "signed.whl", &keep, None),
        Err(NotThinned::Signed(_))
    ));
    let other: Keep = "sm_75".parse().expect("a list");
    let nothing = thinned(at, WHEEL, &other, None).expect_err("no image is kept");
    assert!(nothing.to_string().contains("sm_75"), "{nothing}");
    let plain =
        "import sys, zipfile\nwith zipfile.ZipFile('plain.zip', 'w') as z: z.write('libthing.so')";
    python(at, plain, &[]);
    assert!(matches!(
        thinned(at, "plain.zip", &keep, None),
        Err(NotThinned::NoRecord)
    ));
    // The record leaves a library out.
    let forget = "import sys, zipfile\nold = zipfile.ZipFile(sys.argv[1])\nwith zipfile.ZipFile('bad.whl', 'w') as new:\n    for info in old.infolist():\n        data = old.read(info)\n        if info.filename.endswith('RECORD'): data = b'x,,\\n'\n        new.writestr(info, data)\n";
    python(at, forget, &[WHEEL]);
    let missing = thinned(at, "bad.whl", &keep, None).expect_err("not recorded");
    assert!(matches!(missing, NotThinned::NotRecorded(_)), "{missing}");
    // The library is not the one that was recorded: with a new hash it would look as if it were.
    let damage = "import sys, zipfile\nold = zipfile.ZipFile(sys.argv[1])\nwith zipfile.ZipFile('bad.whl', 'w') as new:\n    for info in old.infolist():\n        data = old.read(info)\n        if info.filename.endswith('thing.so'): data += b'x'\n        new.writestr(info, data)\n";
    python(at, damage, &[WHEEL]);
    let damaged = thinned(at, "bad.whl", &keep, None).expect_err("another library");
    assert!(matches!(damaged, NotThinned::NotAsRecorded(_)), "{damaged}");
}
