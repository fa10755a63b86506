//! Tests an unknown host compiler, a script around gcc, that depends on more than the text of files: times, the names in a
//! folder, the working directory, a server, permissions.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::space::TestSpace;
use crate::{BY_WRAPPER, WRAPPED, rebuilt, set_mode, warm};

/// A space whose host compilers are this script.
fn wrapped(name: &str, script: &str) -> TestSpace {
    crate::wrapped(name, WRAPPED, script)
}

/// The same in Python; `text` sets `value`.
fn in_python(name: &str, text: &str) -> TestSpace {
    let script = format!(
        "#!/usr/bin/python3 -B\nimport os, stat, sys\n{text}\n\
         name = os.path.basename(sys.argv[0])\n\
         os.execvp(name, [name, '-DVALUE=%d' % value] + sys.argv[1:])\n"
    );
    wrapped(name, &script)
}

#[test]
fn a_file_that_a_script_only_looks_at_counts_with_size_and_time() {
    let text = "at = os.stat('notes')\nvalue = at.st_size * 1000000 + at.st_mtime_ns % 999983";
    let space = in_python("stat-only", text);
    space.write("notes", "one");
    warm(&space, BY_WRAPPER);
    space.write("notes", "other");
    rebuilt(&space, BY_WRAPPER);
    space.touch("notes");
    rebuilt(&space, BY_WRAPPER);
}

#[test]
fn a_compiled_module_of_a_script_is_as_old_as_its_source() {
    let space = wrapped(
        "pyc",
        "#!/usr/bin/python3\nimport os, sys\n\
         sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\nimport conf\n\
         name = os.path.basename(sys.argv[0])\n\
         os.execvp(name, [name, '-DVALUE=%d' % conf.value] + sys.argv[1:])\n",
    );
    space.write("bin/conf.py", "value = 1\n");
    // Only this run writes the compiled module.
    space.build(BY_WRAPPER);
    warm(&space, BY_WRAPPER);
    space.write("bin/conf.py", "value = 22\n");
    // nvcc must not run first: it would write the module again.
    space.build(BY_WRAPPER).demand_no_direct_hit();
    let object = space.read("out.o");
    space.agree(BY_WRAPPER);
    assert!(object == space.read("out.o"), "the old value is in out.o");
}

/// Files of procfs and sysfs that say the same for every process count by their text. Others are not stored.
#[test]
fn texts_of_the_kernel() {
    let script = "#!/bin/sh\nvalue=$(wc -c <notes)\nexec ${0##*/} -DVALUE=$value \"$@\"\n";
    let space = wrapped("kernel-texts", script);
    space.link("notes", "/proc/filesystems");
    warm(&space, BY_WRAPPER);
    for (target, is_stored) in [
        ("/proc/sys/kernel/osrelease", true),
        ("/sys/devices/system/cpu/possible", true),
        ("/proc/self/limits", false),
        ("/proc/filesystems", true),
    ] {
        space.link("notes", target);
        let changed = space.agree(BY_WRAPPER);
        if target != "/proc/filesystems" {
            changed.demand_no_direct_hit();
        }
        let again = space.agree(BY_WRAPPER);
        assert_eq!(again.stats.count("direct_hits") == 1, is_stored, "{target}");
    }
    space.remove("notes");
    space.write("notes", "an ordinary file");
    rebuilt(&space, BY_WRAPPER);
}

/// The text differs at each read, so no result has it as a condition.
#[test]
fn texts_of_the_kernel_that_pass() {
    for file in [
        "/proc/uptime",
        "/proc/sys/kernel/random/uuid",
        "/proc/self/stat",
    ] {
        let script = format!("#!/bin/sh\nread value <{file}\nexec ${{0##*/}} \"$@\"\n");
        let space = wrapped("kernel-texts-pass", &script);
        for _ in 0..3 {
            space.agree(BY_WRAPPER).demand_no_direct_hit();
        }
    }
}

#[test]
fn a_folder_listed_by_its_descriptor_counts_with_its_names() {
    let listed = "value = len(os.listdir(os.open('conf.d', os.O_RDONLY)))";
    let walked = "value = sum(len(names) for _, _, names, _ in os.fwalk('conf.d'))";
    for (name, text) in [("listdir-fd", listed), ("fwalk", walked)] {
        let space = in_python(name, text);
        space.write("conf.d/a", "");
        std::thread::sleep(Duration::from_millis(50));
        warm(&space, BY_WRAPPER);
        space.write("conf.d/b", "");
        rebuilt(&space, BY_WRAPPER);
    }
}

const ELSEWHERE: &str = "-c {work}/case.cu -o {work}/out.o -arch=sm_90";

/// Builds in one folder, with absolute names only, then in another one. make leaves `PWD` as it was, a shell sets it.
fn move_to_another_folder(space: &mut TestSpace, line: &str) {
    for folder in ["one", "three"] {
        space.write(&format!("{folder}/there"), "");
    }
    space.stand_in = "one".into();
    space.set_env("PWD", "{work}/one");
    warm(space, line);
    space.stand_in = "three".into();
}

#[test]
fn the_working_directory_counts_where_debug_information_holds_it() {
    // nvcc's own objects name its temporary files then, so only the folder is compared.
    let script = "#!/bin/sh\nexec ${0##*/} -g \"$@\"\n";
    let mut space = wrapped("hidden-debug-options", script);
    space.write("opts", "-g\n");
    for more in [
        "-ccbin {work}/bin",
        "-Xcompiler --debug",
        "-Xcompiler @{work}/opts",
    ] {
        let line = &format!("{ELSEWHERE} {more}");
        move_to_another_folder(&mut space, line);
        for pwd in ["one", "three"] {
            space.set_env("PWD", &format!("{{work}}/{pwd}"));
            space.build(line);
            let holds = |folder: &str| {
                let name = format!("{}\0", space.work().join(folder).display());
                memchr::memmem::find(&space.read("out.o"), name.as_bytes()).is_some()
            };
            assert!(holds("three") && !holds("one"), "{more}, PWD is {pwd}");
        }
    }
}

#[test]
fn the_working_directory_counts_for_a_script_that_asks() {
    let line = &format!("{ELSEWHERE} -ccbin {{work}}/bin");
    let script = "#!/bin/sh\nexec ${0##*/} -DVALUE=${#PWD} \"$@\"\n";
    for mut space in [
        wrapped("script-pwd", script),
        in_python("script-getcwd", "value = len(os.getcwd())"),
    ] {
        move_to_another_folder(&mut space, line);
        space.agree(line).demand_no_direct_hit();
        space.set_env("PWD", "{work}/three");
        space.agree(line);
    }
}

#[test]
fn the_working_directory_does_not_count_for_who_does_not_ask() {
    let mut space = wrapped("nobody-asks", "#!/bin/sh\nexec ${0##*/} \"$@\"\n");
    for more in ["", "-rdc=true -lineinfo", "-ccbin {work}/bin"] {
        let line = &format!("{ELSEWHERE} {more}");
        move_to_another_folder(&mut space, line);
        space.agree(line).demand_direct_hit();
        space.set_env("PWD", "{work}/three");
        space.agree(line).demand_direct_hit();
    }
}

#[test]
fn results_with_an_answer_of_a_server_are_not_stored() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        // The thread ends with the test's process.
        for caller in listener.incoming() {
            let _ = caller.map(|mut caller| writeln!(caller, "7"));
        }
    });
    let script = format!(
        "#!/bin/bash\nexec 9<>/dev/tcp/127.0.0.1/{port}; read -u 9 value; exec 9>&-\n\
         exec ${{0##*/}} -DVALUE=$value \"$@\"\n"
    );
    let space = wrapped("server", &script);
    space.agree(BY_WRAPPER).demand_no_fallback();
    let again = space.agree(BY_WRAPPER);
    again.demand_no_direct_hit().demand_no_fallback();
    assert_eq!(again.stats.hit("host"), 0, "{:?}", again.stats);
}

#[test]
fn a_helper_that_may_no_longer_run() {
    let script = "#!/bin/sh\nexec {work}/real ${0##*/} \"$@\"\n";
    let space = TestSpace::new("chmod-helper");
    space.write("case.cu", WRAPPED);
    for compiler in ["gcc", "g++"] {
        space.script(&format!("bin/{compiler}"), &space.fill(script));
    }
    space.script("real", "#!/bin/sh\nexec \"$@\"\n");
    warm(&space, BY_WRAPPER);
    set_mode(&space, "real", 0o644);
    let refused = space.agree(BY_WRAPPER);
    refused.demand_no_direct_hit();
    assert_ne!(refused.outcome.code, 0);
    set_mode(&space, "real", 0o755);
    space.agree(BY_WRAPPER).demand_direct_hit();
}

#[test]
fn an_output_with_a_mode_of_its_own() {
    let script = "#!/bin/sh\n${0##*/} \"$@\" || exit\n\
                  for word; do case $before in -o) chmod 640 \"$word\";; esac; before=$word; done\n";
    let space = wrapped("output-mode", script);
    let mode = || {
        let found = fs::metadata(space.work().join("out.o")).expect("out.o");
        found.permissions().mode() & 0o7777
    };
    for _ in 0..2 {
        space.agree(BY_WRAPPER).demand_no_direct_hit();
        assert_eq!(mode(), 0o640);
        space.remove("out.o");
    }
}
