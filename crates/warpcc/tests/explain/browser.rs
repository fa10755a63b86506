//! Tests the page in a real browser: a section for each step, and a filter that works with keys.

use super::space::TestSpace;
use super::{Explanation, KERNEL, explain};
use warpcc_testkit::browser::Browser;

#[test]
fn the_page_has_a_section_a_step_and_can_be_filtered() {
    let space = TestSpace::whole("explain-browser");
    space.write("case.cu", KERNEL);
    let flags = "--json --html explain.html";
    let outcome = explain(&space, flags, "-c case.cu -o case.o -arch=sm_90");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let explanation: Explanation = serde_json::from_slice(&outcome.stdout).expect("an explanation");

    let mut browser = Browser::start(1280, 900);
    browser.open(&space.read("explain.html"));
    let count = |browser: &mut Browser, selector: &str| {
        let script = format!(
            "[...document.querySelectorAll({selector:?})].filter(one => one.offsetParent !== null).length"
        );
        browser.evaluate(&script).as_u64().expect("a number")
    };
    let steps = explanation.steps.len() as u64;
    assert_eq!(count(&mut browser, "section"), steps);
    assert_eq!(count(&mut browser, "nav > ol > li"), steps);
    assert_eq!(browser.text("#matched"), format!("{steps} steps"));
    for step in &explanation.steps {
        let section = browser.text(&format!("#step-{}", step.number));
        assert!(section.contains(&step.title), "{section}");
    }
    let written = explanation.files().count() as u64;
    assert_eq!(count(&mut browser, "article"), written);
    // The drawing of the steps is inside the page.
    assert_eq!(count(&mut browser, "#picture svg"), 1);
    assert!(
        browser
            .text("main")
            .contains("__cudaPushCallConfiguration(1, 32)")
    );

    // One step explains what `<<<>>>` became; a step matches only with both words.
    browser.key("/");
    for key in "launches __cudaPushCall".chars() {
        browser.key(&key.to_string());
    }
    browser.frames(2);
    assert_eq!(count(&mut browser, "section"), 1);
    assert_eq!(browser.text("#matched"), format!("1 of {steps} steps"));
    assert!(
        browser
            .text("section:not([hidden]) h2")
            .contains("host's half")
    );
    browser.key("Escape");
    browser.frames(2);
    assert_eq!(count(&mut browser, "section"), steps);
    for key in "no such thing".chars() {
        browser.key(&key.to_string());
    }
    browser.frames(2);
    assert_eq!(count(&mut browser, "section"), 0);
    assert_eq!(browser.text("#nothing"), "Nothing matches.");
    browser.key("Escape");

    // Options unfold; light and dark differ.
    browser.evaluate("document.getElementById('fold').click()");
    browser.frames(2);
    let options: usize = explanation
        .steps
        .iter()
        .map(|step| step.options.len())
        .sum();
    assert_eq!(count(&mut browser, "table.options tr"), options as u64);
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.evaluate(paper);
    browser.evaluate("document.getElementById('scheme').click()");
    assert_ne!(browser.evaluate(paper), light);

    // The page is no wider than the screen of a telephone.
    browser.resize(390, 844);
    browser.frames(2);
    assert_eq!(
        browser.evaluate("document.documentElement.scrollWidth"),
        390
    );
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    browser.resize(1280, 900);
    browser.picture(&folder.join("explain.png"), false);
    assert_eq!(browser.complaints, Vec::<String>::new());
}
