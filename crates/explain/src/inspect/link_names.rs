//! The registration file of a device link: the objects whose device code was linked.

use crate::block::Block;

/// Summarises the output of `nvlink --register-link-binaries`.
pub fn blocks(text: &str) -> Vec<Block> {
    let ids = text
        .match_indices("DEFINE_REGISTER_FUNC(")
        .filter_map(|(at, head)| {
            let rest = &text[at + head.len()..];
            Some(rest.split_once(')')?.0.trim())
        });
    let rows: Vec<Vec<String>> = ids
        .enumerate()
        .map(|(at, id)| {
            vec![
                (at + 1).to_string(),
                id.to_owned(),
                format!("__cudaRegisterLinkedBinary{id}"),
                format!("__fatbinwrap{id}"),
            ]
        })
        .collect();
    let count = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("#define NUM_PRELINKED_OBJECTS "))
        .map_or_else(|| rows.len().to_string(), |n| n.trim().to_owned());
    vec![
        Block::text(format!(
            "Prelinked objects: {count}. For each of them the link stub defines the function that the \
             object's own constructor calls. The last call of them registers the one linked fat \
             binary, and then the kernels and variables of all objects with it."
        )),
        Block::table(
            "Objects that were linked on the device",
            &[
                "",
                "module id",
                "function defined by the stub",
                "prelinked wrapper in the object",
            ],
            rows,
        ),
        Block::excerpt("The file", text.lines().take(20)),
    ]
}
