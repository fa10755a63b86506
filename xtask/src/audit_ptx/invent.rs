//! Makes up sources and options.

use super::edits::Pieces;
use super::source::Base;
use crate::repo;
use crate::soak::random::Random;

/// Architectures that 13.x knows.
const ARCHITECTURES: [&str; 9] = ["75", "80", "86", "89", "90", "90a", "100", "103a", "120"];

/// Options that change cicc's command, each with how often it is chosen, of 100. Without `-G`, with which warpcc does not
/// split cicc: there the halves and the whole were seen to write unlike PTX.
const OPTIONS: [(&str, usize); 10] = [
    ("-use_fast_math", 12),
    ("-fmad=false", 8),
    ("-ftz=true", 6),
    ("-prec-div=false", 6),
    ("-rdc=true", 30),
    ("-maxrregcount=40", 6),
    ("-lineinfo", 6),
    ("-O1", 4),
    ("-expt-relaxed-constexpr", 40),
    ("-DNDEBUG", 10),
];

/// The source of a seed.
pub fn invent(seed: u64, random: &mut Random) -> Base {
    let is_whole = random.chance(4);
    let mut options = vec![
        format!("-arch=compute_{}", random.one(&ARCHITECTURES)),
        format!("-std=c++{}", random.one(&["17", "17", "20"])),
        "-extended-lambda".to_owned(),
    ];
    for (option, percent) in OPTIONS {
        if random.chance(percent) {
            options.push(option.to_owned());
        }
    }
    if !is_whole {
        let small = repo::root().join("crates/warpcc/tests/space/small");
        options.push(format!("-I{}", small.display()));
    }
    Base {
        name: seed.to_string(),
        source: Box::new(Pieces::new(random, is_whole)),
        options,
    }
}
