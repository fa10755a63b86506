//! The names of GPUs that people know, with their compute capabilities.
//!
//! From NVIDIA's lists of CUDA GPUs (developer.nvidia.com/cuda-gpus, and cuda-legacy-gpus). A name that is not here is not
//! guessed.

/// Names without *NVIDIA*, *GeForce*, *Tesla* and *Quadro*, in small letters, without blanks and dashes.
const NAMES: [(&str, u32); 95] = [
    ("p100", 60),
    ("p4", 61),
    ("p40", 61),
    ("gtx1050", 61),
    ("gtx1060", 61),
    ("gtx1070", 61),
    ("gtx1080", 61),
    ("gtx1080ti", 61),
    ("titanxp", 61),
    ("v100", 70),
    ("titanv", 70),
    ("xavier", 72),
    ("t4", 75),
    ("gtx1650", 75),
    ("gtx1660", 75),
    ("gtx1660ti", 75),
    ("rtx2060", 75),
    ("rtx2070", 75),
    ("rtx2080", 75),
    ("rtx2080ti", 75),
    ("titanrtx", 75),
    ("rtx4000", 75),
    ("rtx5000", 75),
    ("rtx6000", 75),
    ("rtx8000", 75),
    ("a100", 80),
    ("a30", 80),
    ("a2", 86),
    ("a10", 86),
    ("a10g", 86),
    ("a16", 86),
    ("a40", 86),
    ("rtxa2000", 86),
    ("rtxa3000", 86),
    ("rtxa4000", 86),
    ("rtxa5000", 86),
    ("rtxa6000", 86),
    ("rtx3050", 86),
    ("rtx3050ti", 86),
    ("rtx3060", 86),
    ("rtx3060ti", 86),
    ("rtx3070", 86),
    ("rtx3070ti", 86),
    ("rtx3080", 86),
    ("rtx3080ti", 86),
    ("rtx3090", 86),
    ("rtx3090ti", 86),
    ("orin", 87),
    ("agxorin", 87),
    ("orinnano", 87),
    ("orinnx", 87),
    ("l4", 89),
    ("l40", 89),
    ("l40s", 89),
    ("rtx4050", 89),
    ("rtx4060", 89),
    ("rtx4060ti", 89),
    ("rtx4070", 89),
    ("rtx4070ti", 89),
    ("rtx4070super", 89),
    ("rtx4080", 89),
    ("rtx4080super", 89),
    ("rtx4090", 89),
    ("rtx2000ada", 89),
    ("rtx4000ada", 89),
    ("rtx4000sffada", 89),
    ("rtx4500ada", 89),
    ("rtx5000ada", 89),
    ("rtx6000ada", 89),
    ("h100", 90),
    ("h200", 90),
    ("h20", 90),
    ("h800", 90),
    ("gh200", 90),
    ("b100", 100),
    ("b200", 100),
    ("gb200", 100),
    ("b300", 103),
    ("gb300", 103),
    ("thor", 110),
    ("t4000", 110),
    ("t5000", 110),
    ("rtx5050", 120),
    ("rtx5060", 120),
    ("rtx5060ti", 120),
    ("rtx5070", 120),
    ("rtx5070ti", 120),
    ("rtx5080", 120),
    ("rtx5090", 120),
    ("rtxpro2000", 120),
    ("rtxpro4000", 120),
    ("rtxpro4500", 120),
    ("rtxpro5000", 120),
    ("rtxpro6000", 120),
    ("gb10", 121),
];

/// Words of a name that do not tell GPUs apart.
const MAKERS: [&str; 15] = [
    "nvidia",
    "geforce",
    "tesla",
    "quadro",
    "jetson",
    // As nvidia-smi goes on.
    "blackwell",
    "generation",
    "server",
    "workstation",
    "edition",
    "laptop",
    "gpu",
    "pcie",
    "nvl",
    "hbm3",
];

/// The compute capability, times ten, of the GPU with this name: 90 of `H100`, 89 of `RTX 4090`.
pub fn gpu_named(name: &str) -> Option<u32> {
    let small = name.to_ascii_lowercase();
    let words = small
        .split([' ', '-', '_'])
        .filter(|word| !MAKERS.contains(word) && !is_form(word));
    let short: String = words.collect();
    let found = NAMES.iter().find(|(known, _)| *known == short);
    found.map(|(_, number)| *number)
}

/// `80GB`, `SXM4`: the same GPU in another form.
fn is_form(word: &str) -> bool {
    let number = word.strip_prefix("sxm").or(word.strip_suffix("gb"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{NAMES, gpu_named};

    #[test]
    fn names_are_found_as_people_write_them() {
        for (name, number) in [
            ("H100", 90),
            ("NVIDIA GeForce RTX 4090", 89),
            ("rtx-3080-ti", 86),
            ("Tesla T4", 75),
            ("GB200", 100),
            ("NVIDIA H100 80GB HBM3", 90),
            ("NVIDIA A100-SXM4-80GB", 80),
            ("Tesla V100-SXM2-16GB", 70),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 120),
            ("NVIDIA RTX 6000 Ada Generation", 89),
            ("NVIDIA GeForce RTX 4090 Laptop GPU", 89),
        ] {
            assert_eq!(gpu_named(name), Some(number), "{name}");
        }
        // Not guessed from a part of it.
        assert_eq!(gpu_named("RTX 9999"), None);
        assert_eq!(gpu_named(""), None);
        assert_eq!(gpu_named("NVIDIA 80GB"), None);
        let mut names: Vec<_> = NAMES.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
    }
}
