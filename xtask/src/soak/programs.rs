//! Changes of programs: toolkits, host compilers, wrappers, scripts.

use super::history::Step;
use super::random::Random;
use super::wrappers;

/// A host compiler's wrapper. Most only find the compiler behind it, by PATH, by a variable or by a file.
pub fn wrapper(random: &mut Random, path: &str) -> Step {
    if random.chance(40) {
        return wrappers::wild(random, path);
    }
    let body = match random.below(5) {
        0 => "exec g++ \"$@\"",
        1 => "exec ${SPACK_CXX:-g++} \"$@\"",
        2 => "exec g++ -DWRAPPED=$MAKELEVEL \"$@\"",
        3 => "exec $(cat {root}/w/data/compiler 2>/dev/null || echo g++) \"$@\"",
        _ => "exec {root}/host/g++ -DWRAPPED=2 \"$@\"",
    };
    Step::new(&["script", path, "#!/bin/sh", body])
}

/// A change to another toolkit, or to another release of a tool.
pub fn toolkits(random: &mut Random, fake: bool) -> Vec<Step> {
    let real = Step::new(&["use", "{tk}/bin/nvcc"]);
    let other = Step::new(&["use", "{root}/tk2/bin/nvcc"]);
    if !fake {
        let links = Step::new(&["toolkit", "{root}/tk2", "links"]);
        return match random.below(3) {
            0 => vec![real],
            1 => vec![Step::new(&["use", "{tk-other}/bin/nvcc"])],
            _ => vec![links, other],
        };
    }
    let tool = random.one(&[
        "bin/ptxas",
        "bin/cudafe++",
        "bin/fatbinary",
        "bin/nvlink",
        "nvvm/bin/cicc",
        "bin/nvcc",
        // This ptxas is found earlier than the one in `bin`.
        "nvvm/bin/ptxas",
        "nvvm/bin/fatbinary",
        "nvvm/bin/cudafe++",
    ]);
    let release = (2 + random.below(3)).to_string();
    match random.below(8) {
        0 => vec![real],
        1..=2 => vec![Step::new(&["toolkit", "{root}/tk2", "links"]), other],
        3 => vec![Step::new(&["toolkit", "{root}/tk2", "copy"]), other],
        4 => vec![other],
        5 => vec![Step::new(&[
            "tool",
            &format!("{{root}}/tk/{tool}"),
            &release,
        ])],
        6 => vec![Step::new(&[
            "tool",
            &format!("{{root}}/tk2/{tool}"),
            &release,
        ])],
        _ => {
            let line = random.one(&[
                "@nvcc env SK_A",
                "@nvcc read data/d1",
                "@nvcc exists data/d2",
                "plain",
            ]);
            vec![Step::new(&["write", "{root}/tk/bin/nvcc.profile", line])]
        }
    }
}

/// A change of the host's programs: other releases, or scripts in their place.
pub fn programs(random: &mut Random) -> Vec<Step> {
    let release = (2 + random.below(3)).to_string();
    let host = random.one(&["gcc", "g++", "as", "ld", "ar"]);
    match random.below(8) {
        0 => vec![Step::new(&[
            "tool",
            &format!("{{root}}/host/{host}"),
            &release,
        ])],
        1 => vec![
            Step::new(&["tool", &format!("{{root}}/host2/{host}"), &release]),
            Step::new(&["set", "PATH", "{root}/host2:{root}/host:/usr/bin:/bin"]),
        ],
        2 => vec![
            Step::new(&["unset", "PATH"]),
            Step::new(&["set", "PATH", "{root}/host:/usr/bin:/bin"]),
        ],
        3 => vec![
            Step::new(&[
                "script",
                "{root}/host2/asked",
                "#!/bin/sh",
                &format!("echo {release}"),
            ]),
            Step::new(&["set", "PATH", "{root}/host2:{root}/host:/usr/bin:/bin"]),
        ],
        4 => vec![Step::new(&[
            "script",
            "{root}/host/asked",
            "#!/bin/sh",
            "cat data/d1; echo $SK_A",
        ])],
        5 if random.chance(30) => vec![Step::new(&["static", "{root}/host/mpicxx"])],
        5 => vec![wrapper(random, "{root}/host/mpicxx")],
        6 => vec![
            Step::new(&["tool", "{root}/host2/g++", &release]),
            Step::new(&[
                "write",
                "data/compiler",
                random.one(&["{root}/host2/g++", "{root}/host/g++"]),
            ]),
        ],
        _ => vec![wrapper(random, "{root}/host2/mpicxx")],
    }
}
