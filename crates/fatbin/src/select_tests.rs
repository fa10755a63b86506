//! The rules of the choice, each with the smallest container that shows it.

use super::*;

const H100: Gpu = Gpu::Known(90);

fn images(words: &str) -> Vec<Candidate> {
    let one = |word: &str| {
        let (word, concatenated) = match word.strip_suffix('+') {
            Some(rest) => (rest, true),
            None => (word, false),
        };
        let (target, version) = word.split_once('@').unwrap_or((word, "8.0"));
        let (major, minor) = version.split_once('.').expect("a version");
        Candidate {
            kind: match target {
                t if t.starts_with("sm_") => ImageKind::Cubin,
                t if t.starts_with("lto_") => ImageKind::LtoIr,
                _ => ImageKind::Ptx,
            },
            arch: target.parse().expect("an architecture"),
            version: Some((
                major.parse().expect("a number"),
                minor.parse().expect("a number"),
            )),
            concatenated,
        }
    };
    words.split_whitespace().map(one).collect()
}

fn chosen(words: &str, gpu: Gpu) -> Selection {
    choose(&images(words), gpu, &Situation::default())
}

const NOTHING: Selection = Selection::Fail(CudaError::NoBinaryForGpu, None);

#[test]
fn a_usable_cubin_beats_ptx_in_any_order() {
    assert_eq!(chosen("compute_90 sm_90", H100), Selection::Run(1));
    assert_eq!(chosen("sm_90 compute_90a@9.9", H100), Selection::Run(0));
    assert_eq!(chosen("sm_80 compute_80", H100), Selection::Jit(1));
    assert_eq!(
        chosen("sm_80 compute_86", Gpu::Known(86)),
        Selection::Run(0)
    );
}

#[test]
fn the_closest_cubin_then_a_then_the_first() {
    assert_eq!(chosen("sm_90 sm_90a sm_90", H100), Selection::Run(1));
    assert_eq!(chosen("sm_90 sm_90", H100), Selection::Run(0));
    assert_eq!(
        chosen("sm_80 sm_86 sm_89", Gpu::Known(86)),
        Selection::Run(1)
    );
}

#[test]
fn cubins_run_in_their_major_version_upwards() {
    for (image, gpu, runs) in [
        ("sm_80", 86, true),
        ("sm_86", 80, false),
        ("sm_80", 90, false),
        ("sm_90a", 90, true),
        ("sm_100a", 103, false),
        ("sm_100f", 103, true),
        ("sm_103f", 100, false),
        ("sm_100f", 110, false),
        ("sm_80", 87, false),
        ("sm_87", 89, false),
        ("sm_87", 87, true),
        ("lto_90", 90, false),
    ] {
        let found = chosen(image, Gpu::Known(gpu)) == Selection::Run(0);
        assert_eq!(found, runs, "{image} on {gpu}");
    }
}

#[test]
fn ptx_goes_forward_and_the_first_of_the_highest_wins() {
    assert_eq!(
        chosen("compute_75 compute_80 compute_80 compute_75", H100),
        Selection::Jit(1)
    );
    assert_eq!(chosen("compute_90a compute_90", H100), Selection::Jit(0));
    assert_eq!(chosen("compute_90 compute_90a", H100), Selection::Jit(1));
    assert_eq!(chosen("compute_100", H100), NOTHING);
    assert_eq!(chosen("compute_90a", Gpu::Next), NOTHING);
    assert_eq!(chosen("compute_100f", Gpu::Known(103)), Selection::Jit(0));
    assert_eq!(chosen("sm_120 compute_120", Gpu::Next), Selection::Jit(1));
    assert_eq!(chosen("sm_120 compute_120f", Gpu::Next), NOTHING);
}

#[test]
fn ptx_newer_than_the_driver_fails_though_an_older_one_is_there() {
    let situation = Situation {
        driver: Some("13.0".parse().expect("a driver")),
        ..Situation::default()
    };
    let on = |words| choose(&images(words), H100, &situation);
    let refused = |index| Selection::Fail(CudaError::UnsupportedPtxVersion, Some(index));
    assert_eq!(on("compute_80@9.0 compute_90@9.1"), refused(1));
    assert_eq!(on("compute_90@9.1 compute_80@9.0"), refused(0));
    assert_eq!(on("sm_90 compute_90@9.9"), Selection::Run(0));
    assert_eq!(on("compute_90@9.0"), Selection::Jit(0));
}

#[test]
fn the_variables_switch_either_way_off() {
    let force = Situation {
        force_jit: true,
        ..Situation::default()
    };
    let disable = Situation {
        disable_jit: true,
        ..Situation::default()
    };
    let both = images("sm_90 compute_80");
    assert_eq!(choose(&both, H100, &force), Selection::Jit(1));
    assert_eq!(choose(&images("sm_90"), H100, &force), NOTHING);
    assert_eq!(choose(&both, H100, &disable), Selection::Run(0));
    let refused = Selection::Fail(CudaError::JitDisabled, Some(0));
    assert_eq!(choose(&images("compute_80"), H100, &disable), refused);
    assert_eq!(choose(&images("sm_80"), H100, &disable), NOTHING);
}

#[test]
fn drivers_know_the_ptx_of_their_time() {
    for (driver, isa) in [
        ("11.8", (7, 8)),
        ("12.4", (8, 4)),
        ("12.6", (8, 5)),
        ("12.9", (8, 8)),
        ("13.0", (9, 0)),
        ("13.5", (9, 5)),
        ("10.2", (6, 5)),
    ] {
        let parsed: DriverVersion = driver.parse().expect(driver);
        assert_eq!(parsed.newest_ptx(), isa, "{driver}");
    }
    for wrong in ["13", "x.y", "3.0", "580.82"] {
        assert!(wrong.parse::<DriverVersion>().is_err(), "{wrong}");
    }
}

#[test]
fn concatenated_images_are_nothing_to_a_driver_before_them() {
    let on = |words: &str, driver: Option<&str>| {
        let situation = Situation {
            driver: driver.map(|text| text.parse().expect("a driver")),
            ..Situation::default()
        };
        choose(&images(words), H100, &situation)
    };
    assert_eq!(on("sm_90+ compute_90+", Some("13.0")), NOTHING);
    assert_eq!(on("sm_90+ compute_80", Some("13.0")), Selection::Jit(1));
    assert_eq!(on("sm_90+ compute_80", Some("13.5")), Selection::Run(0));
    assert_eq!(on("sm_90+ compute_80", None), Selection::Run(0));
}
