//! Environments that were not made by pip alone: other lists of files, none, links, folders twice, and damage. Nothing of these
//! stops the rest, and what was not looked at is said.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{PLACE, code, package, why_gpu};

/// A root with one package of pip's, `native`, whose library is taken for others.
fn root() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.cu"), crate::SOURCE).expect("written");
    package(folder.path(), "native", &["arch=compute_90,code=sm_90"]);
    folder
}

fn write(at: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = at.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn library(at: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("made");
    fs::copy(at.join(PLACE).join("native/libnative.so"), to).expect("copied");
}

fn about(name: &str) -> String {
    format!("Metadata-Version: 2.1\r\nName: {name}\r\nVersion: 2.0\r\n\r\ntext\r\n")
}

/// The packages that run as they are, and what was skipped.
fn said(at: &Path, words: &str) -> (Vec<String>, Vec<String>) {
    let output = why_gpu(at, &format!("--json --gpu sm_90 {words}"));
    let said: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let list = |name: &str| said[name].as_array().expect("a list").clone();
    let native = list("packages");
    let native = native.iter().filter(|p| p["answer"] == "native");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (
        native.map(|p| text(&p["package"])).collect(),
        list("skipped").iter().map(text).collect(),
    )
}

/// Packages that cannot be understood, or have less than they say.
fn say_nothing(site: &Path) {
    // Nothing that says what it is.
    write(site, "empty-1.dist-info/x", "");
    write(
        site,
        "nameless-1.dist-info/METADATA",
        "Version: 1\n\nName: x\n",
    );
    write(site, "nowhere-1.dist-info/METADATA", about("nowhere"));
    write(site, "lost-1.dist-info/METADATA", about("lost"));
    write(
        site,
        "lost-1.dist-info/RECORD",
        "lost/lib.so,,\n/etc/x.so,,\n../../../../../etc/x.so,,\n",
    );
    write(site, "alone-1.dist-info/METADATA", about("alone"));
    write(site, "alone.py", "");
}

/// Packages with each kind of list, and with none.
fn packages(at: &Path, site: &Path) {
    // A list with quotes and the line ends of another system.
    write(site, "quoted-2.dist-info/METADATA", about("quoted"));
    write(
        site,
        "quoted-2.dist-info/RECORD",
        "\"quoted/a,\"\"b\"\".so\",sha256=x,\"1\"\r\nquoted/x.py,,\r\n",
    );
    library(at, &site.join("quoted/a,\"b\".so"));
    // No list, but a folder of its name, or one that it names.
    write(site, "no_record-2.dist-info/METADATA", about("no-record"));
    library(at, &site.join("no_record/deep/er/lib.so.2"));
    write(site, "odd-2.egg-info/PKG-INFO", about("odd"));
    write(
        site,
        "odd-2.egg-info/top_level.txt",
        "elsewhere\n../../..\n\n",
    );
    library(at, &site.join("elsewhere/lib.so"));
    // setuptools' list, and distutils' file.
    write(site, "listed-2.egg-info/PKG-INFO", about("listed"));
    write(
        site,
        "listed-2.egg-info/installed-files.txt",
        "../listed_files/lib.so\nPKG-INFO\n",
    );
    library(at, &site.join("listed_files/lib.so"));
    write(site, "distutils_one-2.egg-info", about("distutils-one"));
    library(at, &site.join("distutils_one/lib.so"));
    // An egg.
    write(
        site,
        "egg-2-py3.12.egg/EGG-INFO/PKG-INFO",
        about("inside-an-egg"),
    );
    write(
        site,
        "egg-2-py3.12.egg/EGG-INFO/installed-files.txt",
        "../lib.so\n",
    );
    library(at, &site.join("egg-2-py3.12.egg/lib.so"));
    // conda's list.
    let conda = site.ancestors().nth(3).expect("a prefix");
    write(site, "of_conda-2.dist-info/METADATA", about("of-conda"));
    write(
        conda,
        "conda-meta/of-conda-2.0-py312_0.json",
        r#"{"files": ["lib/libconda.so", 5, "bin/x"]}"#,
    );
    library(at, &conda.join("lib/libconda.so"));
    write(conda, "conda-meta/broken-2.0-0.json", "{");
    // A namespace that two packages share.
    for name in ["space-one", "space-two"] {
        write(site, &format!("{name}.dist-info/METADATA"), about(name));
        write(
            site,
            &format!("{name}.dist-info/RECORD"),
            format!("space/{name}/lib.so,,\n"),
        );
        library(at, &site.join(format!("space/{name}/lib.so")));
    }
}

#[test]
fn every_kind_of_list_is_read_and_none_is_said() {
    let folder = root();
    let at = folder.path();
    let site = at.join(PLACE);
    packages(at, &site);
    say_nothing(&site);
    let (native, skipped) = said(at, "--root root");
    assert_eq!(
        native,
        [
            "distutils-one",
            "inside-an-egg",
            "listed",
            "native",
            "no-record",
            "odd",
            "of-conda",
            "quoted",
            "space-one",
            "space-two"
        ]
    );
    let expected = [
        (
            "empty-1.dist-info",
            "neither METADATA nor PKG-INFO can be read",
        ),
        ("nameless-1.dist-info", "it has no name"),
        ("neither a list of files", "nowhere"),
        ("lost: lost/lib.so", "missing"),
    ];
    for (where_, why) in expected {
        let found = skipped
            .iter()
            .any(|text| text.contains(where_) && text.contains(why));
        assert!(found, "{where_}: {skipped:?}");
    }
    assert_eq!(skipped.len(), expected.len(), "{skipped:?}");
    let shown = why_gpu(at, "--root root --gpu sm_90");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("skipped   lost: "));
    assert_eq!(code(&shown), 0, "{shown:?}");
}

#[test]
fn an_editable_install_is_looked_at_where_it_is() {
    let folder = root();
    let at = folder.path();
    let site = at.join(PLACE);
    write(&site, "mine-0.dist-info/METADATA", about("mine"));
    write(
        &site,
        "mine-0.dist-info/RECORD",
        "__editable__.mine-0.pth,,\n",
    );
    let url = r#"{"dir_info": {"editable": true}, "url": "file:///src/my%20project"}"#;
    write(&site, "mine-0.dist-info/direct_url.json", url);
    let project = at.join("root/src/my project");
    library(at, &project.join("src/mine/_C.so"));
    for skipped in ["build/lib/_C.so", ".git/_C.so"] {
        write(&project, skipped, "\x7fELF damaged");
    }
    // Round in a circle, and out of the root.
    symlink("..", project.join("src/round")).expect("linked");
    symlink("/../../../../etc", project.join("src/out")).expect("linked");
    let (native, skipped) = said(at, "mine --root root");
    assert_eq!((native, skipped), (vec!["mine".to_owned()], vec![]));
}

#[test]
fn links_of_a_root_lead_to_places_in_it() {
    let folder = root();
    let at = folder.path();
    let site = at.join(PLACE);
    // uv links the files of a package to its cache.
    library(at, &at.join("root/cache/lib.so"));
    write(&site, "linked-1.dist-info/METADATA", about("linked"));
    write(&site, "linked-1.dist-info/RECORD", "linked/lib.so,,\n");
    fs::create_dir_all(site.join("linked")).expect("made");
    symlink("/cache/lib.so", site.join("linked/lib.so")).expect("linked");
    // The folder itself is a link in a second place, and its parent in a third.
    let place = format!("/{}", PLACE.strip_prefix("root/").expect("in the root"));
    fs::create_dir_all(at.join("root/usr/lib/python3")).expect("made");
    symlink(&place, at.join("root/usr/lib/python3/dist-packages")).expect("linked");
    symlink("lib", at.join("root/opt/venv/lib64")).expect("linked");
    symlink(
        "/usr/lib/python3/dist-packages",
        at.join("root/usr/site-packages"),
    )
    .expect("linked");
    symlink("/nowhere", at.join("root/dist-packages")).expect("linked");
    let all = vec!["linked".to_owned(), "native".to_owned()];
    assert_eq!(said(at, "--root root"), (all.clone(), vec![]));
    // What is outside of the root is not there.
    assert_eq!(code(&why_gpu(at, "--root root/usr --gpu sm_90")), 2);
    // The root named by another way.
    symlink("root", at.join("other")).expect("linked");
    assert_eq!(said(at, "--root other/."), (all, vec![]));
}

#[test]
fn folders_twice_files_that_are_none_and_pipes_stop_nothing() {
    let folder = root();
    let at = folder.path();
    let site = at.join(PLACE);
    // It would wait for ever for somebody who writes.
    let pipes = [
        "pipe-1.dist-info/METADATA",
        "records-1.dist-info/RECORD",
        "lib-1.dist-info/pipe.so",
    ];
    for pipe in pipes {
        fs::create_dir_all(site.join(pipe).parent().expect("a folder")).expect("made");
        let made = Command::new("mkfifo").arg(site.join(pipe)).status();
        assert!(made.expect("mkfifo starts").success());
    }
    write(&site, "records-1.dist-info/METADATA", about("records"));
    write(&site, "lib-1.dist-info/METADATA", about("lib"));
    write(
        &site,
        "lib-1.dist-info/RECORD",
        "lib-1.dist-info/pipe.so,,\n",
    );
    write(&site, "a-file-where-a-folder-is.dist-info", "");
    let other = at.join("second");
    write(&other, "native-9.dist-info/METADATA", about("native"));
    write(&other, "more-9.dist-info/METADATA", about("more"));
    library(at, &other.join("more/lib.so"));
    let python = at.join("python");
    let script = format!(
        "#!/bin/sh\necho hello\necho '[\"{0}\", \"/nowhere\", \"{1}\", \"{0}/../site-packages\", [{2}], \"{3}\"]'\n",
        site.display(),
        other.display(),
        // A name that is no UTF-8.
        b"/tmp/\xff\xfe".map(|byte| byte.to_string()).join(", "),
        python.display()
    );
    fs::write(&python, script).expect("written");
    let set = Command::new("chmod").arg("+x").arg(&python).status();
    assert!(set.expect("chmod starts").success());
    let (native, skipped) = said(at, &format!("--python {}", python.display()));
    assert_eq!(native, ["more", "native"]);
    assert!(
        skipped.iter().any(|text| text.contains("pipe-1.dist-info")),
        "{skipped:?}"
    );
    assert!(
        skipped
            .iter()
            .any(|text| text.contains("pipe.so is not a regular file")),
        "{skipped:?}"
    );
}
