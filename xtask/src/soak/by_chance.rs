//! Removes names that nvcc makes up by chance, or takes from its folder of kept files, so that results are compared
//! without them.

use std::path::Path;

/// A text without the folders of intermediate files, which stand in some errors and, with line tables, in the output of
/// `-cuda`, and without names that gcc and nvcc make up.
pub fn without_names(root: &Path, bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    // A wrapper that drops `TMPDIR` makes gcc use `/tmp`.
    let own = ["keep/", "tmp/", "tmp2/", "cache/"].map(|folder| root.join(folder));
    let own = own.map(|folder| folder.to_string_lossy().into_owned());
    for folder in own.into_iter().chain(["/tmp/cc".to_owned()]) {
        while let Some(at) = text.find(&folder) {
            let end = end_of_name(&text, at);
            let slash = text[at..end].rfind('/').map_or(at, |slash| at + slash);
            let name = plain_name(&text[slash + 1..end]);
            text.replace_range(at..end, &format!("<KEEP>/{name}"));
        }
    }
    without_times(without_made_names(without_names_in_memory(text)))
}

/// The same without nvcc's own names where they stand without a folder, as a dry run has them.
fn without_made_names(mut text: String) -> String {
    const MADE: &str = "tmpxft_";
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(MADE)) {
        let at = from + at;
        let end = end_of_name(&text, at);
        let plain = plain_name(&text[at..end]).to_owned();
        from = at + plain.len().max(1);
        text.replace_range(at..end, &plain);
    }
    text
}

/// The same without the milliseconds that `ptxas -v` prints.
fn without_times(text: String) -> String {
    const TIME: &str = "ompile time = ";
    if !text.contains(TIME) {
        return text;
    }
    let plain = |line: &str| match line.find(TIME) {
        Some(at) => line[..at + TIME.len()].to_owned() + "\n",
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(plain).collect()
}

/// The same where `TMPDIR` is the folder in `/dev/shm`, which also has headers in folders of their own.
fn without_names_in_memory(mut text: String) -> String {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(IN_MEMORY)) {
        let at = from + at;
        let end = end_of_name(&text, at);
        let inside = text[at + IN_MEMORY.len()..end].split_once('/');
        let inside = inside.map_or("", |(_, inside)| inside);
        let name = match inside.rsplit_once('/') {
            Some((folder, name)) if folder.starts_with("warpcc-") => plain_name(name),
            Some(_) => {
                from = end;
                continue;
            }
            None => plain_name(inside),
        };
        let plain = format!("<KEEP>/{name}");
        from = at + plain.len();
        text.replace_range(at..end, &plain);
    }
    text
}

/// The beginning of the path of [`super::space::Space`]'s folder there.
const IN_MEMORY: &str = "/dev/shm/warpcc-soak-";

fn end_of_name(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let end = rest.find(|c: char| c.is_whitespace() || "'\"`:,;()".contains(c));
    end.map_or(text.len(), |end| at + end)
}

/// A name without its random part: `tmpxft_<pid>_<number>-<number>_name` of an nvcc that keeps no files, or the assembly
/// that gcc passes to the assembler, which is `cc` and six letters, or the object's name where we run both.
fn plain_name(name: &str) -> &str {
    if let Some(rest) = name.strip_prefix("tmpxft_") {
        let of_call = rest.split_once('-').map(|(_, rest)| rest);
        return of_call
            .and_then(|rest| rest.split_once('_'))
            .map_or(name, |(_, plain)| plain);
    }
    let stem = name.strip_suffix(".s").unwrap_or_default();
    let is_gccs = stem.len() == 8 && stem.starts_with("cc");
    match is_gccs || stem.ends_with(".whole") {
        true => "<ASSEMBLY>",
        false => name,
    }
}

/// Whether two contents of a file are the same but for such names. Only for text, which `-cuda` and `-E` make.
pub fn same_but_for_names(path: &Path, root: &Path, a: &[u8], b: &[u8]) -> bool {
    path.extension().is_some_and(|ending| ending == "ii")
        && without_names(root, a) == without_names(root, b)
}

/// Whether a file is one that cicc 13.0 leaves in `TMPDIR`.
pub fn is_left_by_cicc(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".lgenfe.bc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_chance_are_alike() {
        let alike = |text: &str| without_names(Path::new("/r"), text.as_bytes());
        assert_eq!(
            alike("/r/keep/ccR1F5HU.s:58: Error"),
            alike("/r/tmp/warpcc-0-builds/00ff/k/s.cudafe1.whole.s:58: Error")
        );
        assert_eq!(
            alike("open /r/tmp/tmpxft_00003477_00000000-9_t.cpp1.ii"),
            alike("open /r/keep/t.cpp1.ii")
        );
        assert_eq!(
            alike("/dev/shm/warpcc-soak-4-soak-9/ccasYH0n.s:58: Error"),
            alike("/dev/shm/warpcc-soak-4-soak-9/warpcc-0-builds/0f/k/s.cudafe1.whole.s:58: Error")
        );
        let header = "/dev/shm/warpcc-soak-4-soak-9/inc/a.h";
        assert_eq!(alike(header), header);
        assert_ne!(alike("/r/keep/s.s:1: Error"), alike("/r/keep/t.s:1: Error"));
        assert_ne!(
            alike("/r/keep/s.ii:1: Error"),
            alike("/r/keep/s.ii:2: Error")
        );
        assert_eq!(
            alike("--stub_file_name \"tmpxft_00004704_00000000-6_a.stub.c\""),
            alike("--stub_file_name \"tmpxft_00000009_00000000-6_a.stub.c\"")
        );
        let said = "ptxas info    : Compile time = 3.117 ms\n";
        assert_eq!(alike(said), alike(&said.replace("3.117", "12.0")));
        assert_ne!(alike(said), alike(&said.replace("Compile", "Link")));
        let same = |name: &str, b: &[u8]| {
            let a = b"# 0 \"/r/keep/s.cudafe1.cpp\"\nint a;";
            same_but_for_names(Path::new(name), Path::new("/r"), a, b)
        };
        assert!(same(
            "a.cu.cpp.ii",
            b"# 0 \"/r/tmp/x/k/s.cudafe1.cpp\"\nint a;"
        ));
        assert!(!same(
            "a.cu.cpp.ii",
            b"# 0 \"/r/tmp/x/k/s.cudafe1.cpp\"\nint b;"
        ));
        assert!(!same("a.o", b"# 0 \"/r/tmp/x/k/s.cudafe1.cpp\"\nint a;"));
    }
}
