//! Options of the host compiler with which a call is bypassed.

/// The reason to bypass a call with this option of the host compiler: it writes a file next to the object, or reads files in
/// a way that is not visible, or takes relative names, the object's among them, from another folder.
pub fn host_side_file(option: &str) -> Option<&'static str> {
    const PREFIXES: &[(&str, &str)] = &[
        ("-fprofile", "host option -fprofile"),
        ("--coverage", "host option --coverage"),
        ("-coverage", "host option --coverage"),
        ("-ftest-coverage", "host option --coverage"),
        ("-fauto-profile", "host option -fprofile"),
        ("-fbranch-probabilities", "host option -fprofile"),
        ("-gsplit-dwarf", "host option -gsplit-dwarf"),
        ("-save-temps", "host option -save-temps"),
        ("--save-temps", "host option -save-temps"),
        // They name a file after the intermediate source, or append to one with each command.
        ("-save-stats", "host option -save-stats"),
        ("-fproc-stat-report=", "host option -fproc-stat-report"),
        ("-fdump", "host option -fdump"),
        ("-fstack-usage", "host option -fstack-usage"),
        ("-fcallgraph-info", "host option -fcallgraph-info"),
        ("-fplugin", "host option -fplugin"),
        ("-fopt-info", "host option -fopt-info"),
        (
            "-fsave-optimization-record",
            "host option -fsave-optimization-record",
        ),
        ("-fcompare-debug", "host option -fcompare-debug"),
        ("-fmodules", "host option -fmodules"),
        ("-specs", "host option -specs"),
        ("--specs", "host option -specs"),
        ("-aux-info", "host option -aux-info"),
        ("-dumpbase", "host option -dumpbase"),
        ("-dumpdir", "host option -dumpbase"),
        ("-time", "host option -time"),
        ("-ftime-report", "host option -time"),
        ("-fmem-report", "host option -time"),
        ("-Wa,-a", "host option -Wa,-a"),
        ("-Wl,-Map", "host option -Wl,-Map"),
        ("-Wl,--Map", "host option -Wl,-Map"),
        ("-Wl,--out-implib", "host option -Wl,--out-implib"),
        ("-Wp,", "host option -Wp"),
        ("-wrapper", "host option -wrapper"),
        ("-header-include-file", "host option -header-include-file"),
        ("-working-directory", "host option -working-directory"),
        ("--working-directory", "host option -working-directory"),
        ("-MD", "host option -MD"),
        ("-MMD", "host option -MD"),
        ("-MF", "host option -MD"),
        ("-fpreprocessed", "host option -fpreprocessed"),
        ("-fdirectives-only", "host option -fdirectives-only"),
        ("-traditional", "host option -traditional"),
        ("-dM", "host option -d"),
        ("-dD", "host option -d"),
        ("-dI", "host option -d"),
        ("-dU", "host option -d"),
        ("-dN", "host option -d"),
        ("-o", "host option -o"),
        ("-E", "host option -E"),
        ("-###", "host option -###"),
    ];
    // -P drops the line markers from which the dependency rule is made.
    const EXACT: &[(&str, &str)] = &[
        ("-P", "host option -P"),
        ("-v", "host option -v"),
        ("-", "standard input"),
    ];
    if only_defines(option) {
        return None;
    }
    PREFIXES
        .iter()
        .find(|(p, _)| option.starts_with(p))
        .or_else(|| EXACT.iter().find(|(e, _)| option == *e))
        .map(|(_, reason)| *reason)
}

/// Whether an option gives the preprocessor nothing but macros, as the compiler flags of Fedora and Arch do:
/// `-Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3`. The words are in every command, and so in every key.
fn only_defines(option: &str) -> bool {
    let names_macro = |word: &str| {
        let name = word.strip_prefix("-D").or_else(|| word.strip_prefix("-U"));
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
    };
    let words = option.strip_prefix("-Wp,");
    words.is_some_and(|words| words.split(',').all(names_macro))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_options_that_leave_files() {
        for option in [
            "-fprofile-generate",
            "--coverage",
            "-gsplit-dwarf",
            "-Wp,-MD,x.d",
            "-Wp,-DX,-MD,x.d",
            "-Wp,-D,X",
            "-Wp,",
            "-P",
            "-save-stats=cwd",
            "-fproc-stat-report=x",
        ] {
            assert!(host_side_file(option).is_some(), "{option}");
        }
        for option in [
            "-fPIC",
            "-Wall",
            "-O2",
            "-g",
            "-fopenmp",
            "-Wa,--noexecstack",
            "-Wl,-rpath,/x",
            "-Wp,-D_GLIBCXX_ASSERTIONS",
            "-Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3",
            "-march=native",
        ] {
            assert!(host_side_file(option).is_none(), "{option}");
        }
    }
}
