//! The tables of functions in docs/kernels.md are the library's.

/// The tables of docs/kernels.md, from what the library knows.
fn tables() -> String {
    use std::fmt::Write as _;
    use warpcc_kernels::functions::{ALL, Gives};
    let mut text = String::from("| function | takes | gives | formula |\n|---|---|---|---|\n");
    for each in ALL {
        let gives = match each.gives {
            Gives::Number => "number",
            Gives::Same => "same",
            Gives::Real => "real",
            Gives::Truth => "bool",
            Gives::First => "x's type",
            Gives::Second => "y's type",
            Gives::Bits => "same, no floats",
            Gives::Whole => "number, no floats",
            Gives::Chosen => "same, of y and z",
            Gives::RealOfTwo => "real, of g and x",
        };
        let takes = match (each.name.starts_with("backward_"), each.arity) {
            (true, 4) => "g, x, y, z",
            (true, _) if each.formula.contains("out") => "g, out",
            (true, _) => "g, x",
            (false, 1) => "x",
            (false, 2) => "x, y",
            (false, _) => "x, y, z",
        };
        let _ = writeln!(
            text,
            "| `{}` | {takes} | {gives} | {} |",
            each.name,
            each.formula.replace('|', "\\|")
        );
    }
    text += "\n| reduction | gives |\n|---|---|\n";
    for each in warpcc_kernels::reductions::ALL {
        let _ = writeln!(
            text,
            "| `{}` | {} |",
            each.name,
            each.formula.replace('|', "\\|")
        );
    }
    text
}

#[test]
fn the_documentation_has_every_function() {
    let tables = tables();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kernels.md");
    let held = std::fs::read_to_string(docs).unwrap();
    if !held.contains(&tables) {
        let wanted = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels-tables.md");
        std::fs::write(&wanted, &tables).unwrap();
        panic!(
            "docs/kernels.md has other tables than the library: {} has the library's",
            wanted.display()
        );
    }
}
