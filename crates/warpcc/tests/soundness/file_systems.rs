//! Tests sources, temporary files, outputs and the cache on file systems of many kinds, as far as this machine can mount
//! them. The others are named in the test's output.

mod mounts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use warpcc_cache::{InputManifestBuilder, ManifestVerdict, Signature};

use crate::space::{Exactness, Program, TestSpace, make_dir};
use crate::{KERNEL, ONE};
use mounts::{IMAGES, MountKind, ONE_MODE, RELAYERED, WRITABLE, inside, say};

/// The kinds that are always tried. `WARPCC_TEST_FILE_SYSTEMS` names others; with `all`, the test takes ten minutes.
const USUAL: &str = "ext4-128 overlay bindfs squashfs ext4-image ext4-twin overlay-of-erofs";

/// One pass over the headers, and no host compiler.
const PTX: &str = "-ptx case.cu -o out.ptx -arch=sm_90";

/// A space for one kind of file system, not yet written to.
fn space(test: &str, kind: &str) -> TestSpace {
    TestSpace::new(&format!("{test}-{kind}"))
}

/// A time with a fraction of a second that every version of a file has, so that only the change time can differ.
fn set_time(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 500_000_000);
    std::fs::File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(time))
        .unwrap_or_else(|e| panic!("the time of {}: {e}", path.display()));
}

fn write_header(space: &TestSpace, name: &str, value: u32) {
    space.write(name, &format!("#define VALUE {value}\n"));
    set_time(&space.work().join(name));
}

/// Makes edits of every kind, in a folder on the file system. Gives the number of direct hits.
fn edit(space: &TestSpace) -> u32 {
    space.write("case.cu", &format!("#include <a.h>\n{KERNEL}"));
    make_dir(&space.work().join("first"));
    write_header(space, "second/a.h", 1);
    let line = &format!("{PTX} -Ifirst -Isecond");
    let compile = || {
        // Where times are whole seconds, an overwritten output looks like the old one.
        space.remove("out.ptx");
        space.agree(line)
    };
    let built = || {
        compile().demand_no_direct_hit();
        u32::from(compile().is_direct_hit())
    };
    // Where times are whole seconds, or multiples of two, a change may stay unseen as long.
    std::thread::sleep(Duration::from_millis(2100));
    let mut hits = built();
    // In place, with the size and the modification time of before.
    write_header(space, "second/a.h", 2);
    hits += built();
    // Another file of the same size and time.
    write_header(space, "second/new.h", 3);
    let header = |name: &str| space.work().join("second").join(name);
    std::fs::rename(header("new.h"), header("a.h")).expect("a renamed header");
    hits += built();
    // A header that is found earlier.
    write_header(space, "first/a.h", 4);
    hits += built();
    space.remove("first/a.h");
    hits + u32::from(compile().is_direct_hit())
}

/// Tries every kind, and fails when any failed.
fn each(test: &str, kinds: &[MountKind], try_one: impl Fn(&MountKind)) {
    if !inside(test) {
        return;
    }
    let only = std::env::var("WARPCC_TEST_FILE_SYSTEMS").unwrap_or_else(|_| USUAL.to_owned());
    let wanted = |kind: &&MountKind| only == "all" || only.split(' ').any(|name| name == kind.name);
    let failed = kinds.iter().filter(wanted).filter(|kind| {
        let tried = catch_unwind(AssertUnwindSafe(|| try_one(kind)));
        if tried.is_err() {
            say(&format!("{} FAILED", kind.name));
        }
        tried.is_err()
    });
    let failed: Vec<_> = failed.map(|kind| kind.name).collect();
    assert!(failed.is_empty(), "wrong on {failed:?}");
}

#[test]
fn a_project_on_any_file_system() {
    let test = "file_systems::a_project_on_any_file_system";
    each(test, WRITABLE, |kind| {
        let space = space("project", kind.name);
        let own = space.beside("own");
        if let Some(_mounted) = kind.mount(&space.work(), &own, Path::new("/")) {
            let hits = edit(&space);
            say(&format!("{}: a project, {hits} hits", kind.name));
        }
    });
}

#[test]
fn the_cache_or_temporary_files_on_any_file_system() {
    let test = "file_systems::the_cache_or_temporary_files_on_any_file_system";
    each(test, WRITABLE, |kind| {
        for place in ["cache", "tmp"] {
            let space = space(place, kind.name);
            let own = space.beside("own");
            let Some(_mounted) = kind.mount(&space.beside(place), &own, Path::new("/")) else {
                break;
            };
            // A file system puts this folder into its root.
            drop(std::fs::remove_dir(space.tmp().join("lost+found")));
            space.write("case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
            write_header(&space, "a.h", 1);
            let built = space.agree(ONE);
            let hit = space.again(ONE, &built).is_direct_hit();
            write_header(&space, "a.h", 2);
            let built = space.agree(ONE);
            built.demand_no_direct_hit();
            let hits = u32::from(hit) + u32::from(space.again(ONE, &built).is_direct_hit());
            say(&format!("{}: {place}, {hits} hits", kind.name));
        }
    });
}

/// Files that were made where each may be executed are put elsewhere: after the first call, and from the cache.
#[test]
fn temporary_files_with_one_mode() {
    if !inside("file_systems::temporary_files_with_one_mode") {
        return;
    }
    let mut space = space("tmp", ONE_MODE.name);
    space.write("case.cu", "__global__ void k(int *x) { *x = 1; }\n");
    {
        let own = space.beside("own");
        let Some(_mounted) = ONE_MODE.mount(&space.tmp(), &own, Path::new("/")) else {
            return;
        };
        let built = space.agree(ONE);
        space.again(ONE, &built).demand_direct_hit();
    }
    make_dir(&space.beside("other"));
    space.set_env("TMPDIR", "{beside}/other");
    let cubin = "-cubin case.cu -o out.cubin -arch=sm_90";
    space.agree(cubin).demand_hits_of(&["ptxas"]);
}

/// Apptainer, Nydus and their kin: images of one project, one after the other at one place.
#[test]
fn images_one_after_another_at_one_place() {
    let test = "file_systems::images_one_after_another_at_one_place";
    each(test, IMAGES, |kind| {
        let space = space("images", kind.name);
        space.write("case.cu", &format!("#include <a.h>\n{KERNEL}"));
        let (from, at) = (space.beside("from"), space.beside("at"));
        make_dir(&from);
        let line = &format!("{PTX} -I{{beside}}/at");
        let mut tried = false;
        let mut hits = 0;
        for value in [1, 2] {
            let header = from.join("a.h");
            std::fs::write(&header, format!("#define VALUE {value}\n")).expect("a header");
            set_time(&header);
            set_folder_time(&from);
            let Some(_mounted) = kind.mount(&at, &space.beside("own"), &from) else {
                break;
            };
            tried = true;
            space
                .agree(line)
                .demand_no_direct_hit()
                .demand_no_fallback();
            hits += u32::from(space.agree(line).is_direct_hit());
        }
        if tried {
            say(&format!("{}: images, {hits} hits", kind.name));
        }
    });
}

/// Change times in whole seconds identify content only while the file system stays mounted.
#[test]
fn whole_seconds_count_while_mounted() {
    let test = "file_systems::whole_seconds_count_while_mounted";
    each(test, IMAGES, |kind| {
        if kind.name != "ext4-image" {
            return;
        }
        let space = space("seconds", kind.name);
        let (from, at) = (space.beside("from"), space.beside("at"));
        make_dir(&from);
        let header = at.join("a.h");
        let mount = |value: u32| {
            std::fs::write(from.join("a.h"), format!("{value}\n")).expect("a header");
            kind.mount(&at, &space.beside("own"), &from)
        };
        let Some(mounted) = mount(1) else { return };
        let mut builder = InputManifestBuilder::new(SystemTime::now());
        builder.read(&header);
        builder.absent(&at.join("b.h"));
        let manifest = builder.finish().expect("nothing changes");
        let before = Signature::read(&header).expect("a header");
        assert_eq!(before.ctime_ns, 1_700_000_000_000_000_000);
        let verdict = manifest.check(&at);
        if kernel() >= (6, 8) {
            assert_eq!(verdict, ManifestVerdict::Holds);
        } else {
            say("whole seconds: this kernel has no number for a mount that comes only once");
            assert!(matches!(verdict, ManifestVerdict::HoldsAfterHashing(_)));
        }
        drop(mounted);
        let Some(_mounted) = mount(2) else { return };
        assert_eq!(Signature::read(&header).expect("a header"), before);
        let verdict = manifest.check(&at);
        assert!(
            matches!(verdict, ManifestVerdict::Differs(_)),
            "{verdict:?}"
        );
    });
}

/// The running kernel's first two numbers.
fn kernel() -> (u32, u32) {
    let name = rustix::system::uname();
    let text = name.release().to_string_lossy();
    let mut numbers = text.split(['.', '-']).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn set_folder_time(folder: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 500_000_000);
    std::fs::File::open(folder)
        .and_then(|open| open.set_modified(time))
        .expect("the time of a folder");
}

/// A container's own layer stays, and the image below it is replaced by a newer one.
#[test]
fn a_lower_layer_is_replaced() {
    if !inside("file_systems::a_lower_layer_is_replaced") {
        return;
    }
    let space = TestSpace::new("relayered");
    space.write("case.cu", &format!("#include <a.h>\n{KERNEL}"));
    let (own, at) = (space.beside("own"), space.beside("at"));
    for (layer, name, value) in [
        ("one", "first/b.h", 1),
        ("one", "second/a.h", 1),
        ("two", "first/a.h", 2),
        ("two", "second/a.h", 1),
    ] {
        let file = space.beside(layer).join(name);
        make_dir(file.parent().expect("a folder"));
        std::fs::write(&file, format!("#define VALUE {value}\n")).expect("a header");
        set_time(&file);
    }
    let line = &format!("{PTX} -I{{beside}}/at/first -I{{beside}}/at/second");
    for lower in ["one", "two"] {
        let Some(_mounted) = RELAYERED.mount(&at, &own, &space.beside(lower)) else {
            return;
        };
        if lower == "one" {
            // From now on the container's layer has this folder, too.
            std::fs::write(at.join("first/mine.h"), "").expect("a header of the container");
            std::thread::sleep(Duration::from_millis(100));
        }
        space.agree(line).demand_no_direct_hit();
        space.agree(line).demand_direct_hit();
    }
}

/// A folder is mounted over the working directory: its name leads to other files than relative paths.
#[test]
fn a_mount_hides_the_working_directory() {
    const UNDER_A_MOUNT: &str = "mount --bind \"$0\" . || exit 99
        \"$@\"; code=$?
        at=$PWD; cd /; umount \"$at\" || exit 98
        exit $code";
    if !inside("file_systems::a_mount_hides_the_working_directory") {
        return;
    }
    let space = TestSpace::new("hidden");
    let other = space.beside("other");
    make_dir(&other);
    space.write("case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
    std::fs::write(other.join("case.cu"), "int other;\n").expect("another source");
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let first = [
        "-uc".to_owned(),
        UNDER_A_MOUNT.to_owned(),
        path(&other),
        path(&TestSpace::warpcc()),
        path(&space.toolkit.nvcc),
    ];
    let hidden = Program::Other("sh".into(), first.to_vec());
    for value in [1, 2] {
        write_header(&space, "a.h", value);
        space.agree_as(&hidden, PTX, Exactness::Bytes);
        let names = std::fs::read_dir(&other).expect("a folder").count();
        assert_eq!(names, 1, "a file was written into the mounted folder");
    }
}
