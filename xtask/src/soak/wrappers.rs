//! Scripts in front of the host compiler that do more than start it: they keep notes, write files of their own, ask what
//! nobody expects, start the compiler in another way, or fail.

use super::history::Step;
use super::random::Random;

/// What a wrapper does before it starts the compiler. All of it stands being done twice at once, as under `make -j`.
const FIRST: [&str; 12] = [
    "echo called >> data/log",
    "echo called >> {root}/w/data/log",
    "echo stamp > data/stamp",
    "rm -f data/d1",
    // Two calls at once: another tool must not read it when it is empty.
    "echo made > made.$$; mv -fT made.$$ data/d2 2>/dev/null || rm -f made.$$",
    "echo said aloud >&2",
    "cat data/d1 >&2",
    "umask 077",
    "[ -e data/d2 ] && { echo refused >&2; exit 1; }",
    "mkdir -p data/made/deep",
    "ln -sf d1 data/linked",
    "export SK_A=wrapped CPATH=inc2",
];

/// What a wrapper asks; the answer becomes a macro.
const ASKED: [&str; 14] = [
    "ls data 2>/dev/null | wc -l",
    "ls -d inc* | wc -l",
    "readlink lnk",
    "readlink -f lnkdata",
    "umask",
    "ulimit -n",
    "pwd",
    "stat -c %s data/d1 2>/dev/null",
    "stat -c %a data/d1 2>/dev/null",
    "test -x data/d1 && echo yes",
    "test -L data/d1 && echo yes",
    "cksum < data/d1 2>/dev/null | cut -c1-5",
    "find src -name '*.cu' | wc -l",
    "command -v asked | wc -c",
];

/// How a wrapper starts the compiler.
const STARTED: [&str; 11] = [
    "exec g++ \"$@\"",
    "g++ \"$@\" & wait $!",
    "g++ \"$@\"; c=$?; echo done >> data/log; exit $c",
    "env -i PATH=\"$PATH\" g++ \"$@\"",
    "exec env -u LD_PRELOAD g++ \"$@\"",
    "exec sh -c 'exec g++ \"$@\"' sh \"$@\"",
    "exec nice g++ \"$@\"",
    "exec timeout 600 g++ \"$@\"",
    "exec setsid -w g++ \"$@\"",
    // A name that holds nothing of the output's. Two processes never have the same.
    "for w; do [ \"$last\" = -o ] && out=$w; last=$w; done; g++ \"$@\" || exit; \
     if [ -f \"$out\" ]; then cp \"$out\" $TMPDIR/fixed$$ && cat $TMPDIR/fixed$$ > \"$out\"; rm -f $TMPDIR/fixed$$; fi",
    // The compiler writes elsewhere, and the result is moved to its place.
    "for w; do [ \"$last\" = -o ] && out=$w; last=$w; done; g++ \"$@\" || exit; \
     if [ -f \"$out\" ]; then cp \"$out\" \"$out.new\" && mv \"$out.new\" \"$out\"; fi",
];

/// A wrapper at `path`.
pub fn wild(random: &mut Random, path: &str) -> Step {
    let mut words = vec!["script", path, "#!/bin/sh"];
    if random.chance(60) {
        words.push(random.one(&FIRST));
    }
    let started = random.one(&STARTED);
    let asked = random.one(&ASKED);
    let asking = started.replace("g++ ", &format!("g++ -DWRAPPED=\"$({asked})\" "));
    words.push(if random.chance(50) { &asking } else { started });
    Step::new(&words)
}
