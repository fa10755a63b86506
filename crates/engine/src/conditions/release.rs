//! The releases of the tools with which the table of variables was compared ([`seen_in`](super::seen_in)).

use warpcc_plan::Tool;

/// The CUDA releases, major and minor. A test (`crates/warpcc/tests/soundness/variables.rs`) compares the table with the
/// installed ones.
const CUDA: [(u32, u32); 8] = [
    (11, 8),
    (12, 4),
    (13, 0),
    (13, 1),
    (13, 2),
    (13, 3),
    (13, 4),
    (13, 5),
];
const GCC: [u32; 2] = [11, 12];
const CLANG: [u32; 2] = [14, 19];

/// The releases of a plan's tools, from the arguments of its steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Release {
    cuda_major: Option<u32>,
    cuda_minor: Option<u32>,
    gcc: Option<u32>,
    clang: Option<u32>,
}

impl Release {
    /// Reads the releases from the arguments of all steps: nvcc gives its own version to the preprocessor, and the host
    /// compiler's to the front ends.
    pub fn from_arguments<'a>(arguments: impl Iterator<Item = &'a str>) -> Self {
        let mut release = Self::default();
        let value = |word: &str, name: &str| word.strip_prefix(name)?.parse::<u32>().ok();
        for word in arguments {
            for (name, place, unit) in [
                ("-D__CUDACC_VER_MAJOR__=", &mut release.cuda_major, 1),
                ("-D__CUDACC_VER_MINOR__=", &mut release.cuda_minor, 1),
                ("--gnu_version=", &mut release.gcc, 10_000),
                ("--clang_version=", &mut release.clang, 10_000),
            ] {
                if let Some(number) = value(word, name) {
                    *place = Some(number / unit);
                }
            }
        }
        release
    }

    /// Whether the tool's row was compared with this release. An unknown release was not.
    pub fn is_in_table(&self, tool: Tool) -> bool {
        if tool.is_of_toolkit() {
            let cuda = self.cuda_major.zip(self.cuda_minor);
            return cuda.is_some_and(|cuda| CUDA.contains(&cuda));
        }
        match self.clang {
            Some(clang) => CLANG.contains(&clang),
            None => self.gcc.is_some_and(|gcc| GCC.contains(&gcc)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn in_table(words: &str) -> [bool; 2] {
        let release = Release::from_arguments(words.split(' '));
        [Tool::Cicc, Tool::HostCompile].map(|tool| release.is_in_table(tool))
    }

    #[test]
    fn releases_are_read_from_the_plan() {
        let cuda = "-D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=5";
        assert_eq!(in_table(&format!("{cuda} --gnu_version=120200")), [true; 2]);
        assert_eq!(
            in_table(&format!("{cuda} --gnu_version=130100")),
            [true, false]
        );
        assert_eq!(
            in_table(&format!(
                "{cuda} --gnu_version=40201 --clang_version=190107"
            )),
            [true; 2]
        );
        let next = cuda.replace("=13", "=14");
        assert_eq!(
            in_table(&format!("{next} --gnu_version=110300")),
            [false, true]
        );
        assert_eq!(in_table("-D__CUDACC_VER_MAJOR__=13"), [false; 2]);
        assert_eq!(in_table(""), [false; 2]);
    }
}
