//! Advice on calls that are bypassed, miss or are not stored, by the reason: for `warpcc stats`, `doctor` and `why`.
//!
//! The long form is the table in docs/troubleshooting.md.

use warpcc_cache::{ANY_VARIABLE, Difference, WORKING_DIRECTORY};

const REPORT: &str =
    "a plan not seen before: please report it, with `nvcc --version` and `nvcc --dryrun ARGS`";
const AS_NVCC: &str = "fix the command line; nvcc complains as well";

const TABLE: &[(&str, &str)] = &[
    (
        "unknown option",
        "a host compiler's option: put -Xcompiler before it; a new option of nvcc: please report it",
    ),
    ("an option without its value", AS_NVCC),
    ("an unclosed quote in flags", AS_NVCC),
    ("a comment in flags", AS_NVCC),
    (
        "a quote or a backslash in a name of the dependency file",
        "a folder or a header without such a character in its name",
    ),
    (
        "a preprocessed text that does not name its source",
        "leave out the host compiler's option that drops line markers, such as `-P`",
    ),
    (
        "a line marker after blanks",
        "write the raw string that has such a line in another way",
    ),
    (
        "a line marker without an end",
        "write the raw string that has such a line in another way",
    ),
    (
        "a quote or a backslash in flags",
        "put the value on the command line or into a header",
    ),
    ("options files nested too deeply", AS_NVCC),
    ("an options file that cannot be read", AS_NVCC),
    (
        "nvc++ as host compiler",
        "name g++ or clang++ with -ccbin; with nvc++, nvcc runs alone",
    ),
    ("several -MT", "give one dependency target"),
    (
        "an argument that is not UTF-8",
        "rename the path or the macro",
    ),
    (
        "shell syntax in the dry run",
        "quote $, ` and * for nvcc's own shell too, or put the value into a header",
    ),
    (
        "a failing build with --threads",
        "nothing: it happens only when a compile fails",
    ),
    (
        "a failing step looks for its old output",
        "nothing: it happens only when a compile fails",
    ),
    (
        "a failing step uses files next to its output",
        "nothing: it happens only when a compile fails",
    ),
    (
        "a failing device link with -dlto",
        "nothing if nvcc fails too; else a TMPDIR with a shorter name",
    ),
    (
        crate::build::WITHOUT_A_PLACE,
        "nothing if nvcc fails too; else please report it",
    ),
    (
        crate::build::UNTRIED_RELEASE,
        "nothing: it happens only when a compile fails",
    ),
    (
        crate::temporary_folder::NO_TEMPORARY_FOLDER,
        "set TMPDIR to a folder that you may write to",
    ),
    (
        crate::temporary_folder::EMPTY_TMPDIR,
        "set TMPDIR to a folder that you may write to",
    ),
    (
        "no private folder",
        "correct owner and mode of $TMPDIR/warpcc-UID-builds: only you may access it",
    ),
    (
        "the private folder is in use",
        "end or resume the stopped process that runs the same command; WARPCC_LOG names it",
    ),
    (
        "a step hung",
        "run the tool that the warning names by hand; `warpcc doctor` tries each one",
    ),
    (
        "a command ended abnormally",
        "often out of memory: lower WARPCC_JOBS or WARPCC_MEMORY",
    ),
    (
        warpcc_engine::prefix_map::NO_PREFIX_MAP,
        "a newer host compiler (gcc 8, clang 10), or no WARPCC_BASE_DIR",
    ),
    (
        "an output cannot be written",
        "check free space and permissions of the output's folder",
    ),
    (
        crate::outputs::NOT_A_PLAIN_FILE,
        "nvcc writes through links and into old files: remove the file, or name a new one",
    ),
    (
        warpcc_engine::room::NO_ROOM,
        "free some space in $TMPDIR, or allow more processes",
    ),
    (
        warpcc_engine::room::READS_INPUT,
        "end the command line with </dev/null where the tool needs no input",
    ),
    (
        crate::resources::LITTLE_MEMORY,
        "raise or remove the memory limit (`ulimit -v`)",
    ),
    (
        crate::standard_streams::CLOSED,
        "open it: `</dev/null`, `2>/dev/null`",
    ),
    (
        crate::standard_streams::MIXED,
        "give standard output and standard error files of their own",
    ),
    (
        warpcc_engine::compiler_cache::CHOOSES,
        "name the compiler with -ccbin, or leave the setting out",
    ),
    (
        crate::build::CHANGES_OTHER_FILES,
        "leave --threads out: warpcc then caches the commands that change nothing else",
    ),
    (
        crate::build::USES_SIDE_FILES,
        "nothing: warpcc remembers such a call for a day, and does not build it twice",
    ),
    (
        "an input is not a regular file",
        "nothing: a pipe or a device can be read only once",
    ),
    (
        "an intermediate file outside the private folder",
        "leave --objdir-as-tempdir out",
    ),
    (
        crate::fetched_results::FETCHED_RESULT_FAILS,
        "nothing: warpcc has removed the results that it had fetched for this call",
    ),
    (
        crate::session::REPEATED_VARIABLE,
        "start the build from a shell: the program that started it names a variable twice",
    ),
    (
        crate::session::DIRECTORY_GONE,
        "change to a folder that exists",
    ),
    (
        crate::session::DIRECTORY_HIDDEN,
        "leave the folder and enter it again by its name",
    ),
    (
        "nvcc cannot be started",
        "check the path of nvcc with `warpcc doctor`",
    ),
];

/// Advice on a call that is bypassed for `reason`, in one line.
pub fn advice(reason: &str) -> &'static str {
    TABLE
        .iter()
        .find(|(known, _)| *known == reason)
        .map_or(REPORT, |(_, what)| what)
}

/// A changed condition as a sentence, where its name is no variable's name but stands for more.
pub fn changed_condition(kind: &str, name: &str) -> Option<String> {
    let has_no_name = kind == "variable" && [ANY_VARIABLE, WORKING_DIRECTORY].contains(&name);
    has_no_name.then(|| {
        let name = name.to_owned();
        Difference::VariableChanged { name }.to_string()
    })
}

/// Advice on a miss, by the part of the key or the condition that differs from the remembered one.
pub fn cure(kind: &str, name: &str) -> &'static str {
    match kind {
        "option" | "argument" => {
            "give it the same value in every build: no build number, time or random folder in a flag"
        }
        "variable" if name == ANY_VARIABLE => {
            "compare `env` of two builds, and give every variable the same value in both"
        }
        "variable" if name == WORKING_DIRECTORY => "build in the same folder",
        "variable" | "environment" => {
            "set that variable to the same value in every build, or unset it"
        }
        "working" | "scratch" => {
            "build in the same folder, or with absolute paths and without -g and -G"
        }
        "program" | "nvcc" | "host compiler" => "use one PATH, so that the same compiler is found",
        "header" | "source" => {
            "if nobody edits it, let what generates it write only when its content changes"
        }
        _ => "`warpcc why -- ARGS` in the folder of the build names what differs",
    }
}

/// Advice on results that are not stored, by words of the reason.
const NOT_STORED: &[(&str, &str)] = &[
    (
        crate::direct::DATE_MACRO,
        "keep __DATE__ and __TIME__ in one small file",
    ),
    (
        crate::direct::NATIVE,
        "name the architecture, as in -arch=sm_90: another machine may have another GPU",
    ),
    (
        "changed while it was in use",
        "generate files before the build, and write only when the content changes",
    ),
    (
        "appeared meanwhile",
        "generate files before the build, and write only when the content changes",
    ),
    (
        "is gone",
        "generate files before the build, and write only when the content changes",
    ),
    (
        "#pragma GCC dependency",
        "compare the files in the build system: it knows what generates them",
    ),
    ("watch library", "another folder for the cache: WARPCC_DIR"),
    (
        "could not be watched",
        "name the real compiler with -ccbin: a static or set-uid program cannot be watched",
    ),
];

/// Advice on a result that is not stored for `reason`; `None` for most reasons.
pub fn advice_not_stored(reason: &str) -> Option<&'static str> {
    let known = NOT_STORED.iter().find(|(known, _)| reason.contains(known));
    known.map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_reason_why_nothing_is_kept() {
        let long = include_str!("../../../../docs/troubleshooting.md");
        for (reason, _) in NOT_STORED {
            assert!(long.contains(reason), "{reason}");
            assert!(advice_not_stored(&format!("a/b.h {reason} today")).is_some());
        }
        assert_eq!(advice_not_stored("something else"), None);
    }

    #[test]
    fn only_what_is_to_be_reported_has_no_advice() {
        let page = include_str!("../../../../docs/troubleshooting.md");
        let (_, section) = page.split_once("## Bypassed calls").expect("a section");
        let (section, _) = section.split_once("\n## ").expect("its end");
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let mut count = 0;
        for row in rows {
            let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
            let [reasons, _, what] = cells[..] else {
                panic!("three cells: {row}");
            };
            for reason in reasons.split('`').skip(1).step_by(2) {
                let is_reported = what.starts_with("please report it");
                assert_eq!(advice(reason) == REPORT, is_reported, "{reason}");
                count += 1;
            }
        }
        assert!(count > TABLE.len(), "{count}");
    }

    #[test]
    fn the_documentation_has_every_reason_of_the_table() {
        let long = include_str!("../../../../docs/troubleshooting.md");
        for (reason, what) in TABLE {
            assert!(long.contains(&format!("`{reason}`")), "{reason}");
            assert!(!what.ends_with('.') && what.len() < 100, "{what}");
        }
        assert_eq!(advice("two commands write the same file"), REPORT);
    }
}
