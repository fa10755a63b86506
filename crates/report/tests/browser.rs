//! The page in a real browser: it draws itself, answers to mouse and keys, stays quick with 2,000
//! calls, and shows any name as text.

use std::path::PathBuf;

use warpcc_report::device_trace::Sums;
use warpcc_report::record::{CallOutcome, InvocationRecord, Task};
use warpcc_report::sample::{Shape, build};
use warpcc_report::{Build, Summary, page};
use warpcc_testkit::browser::Browser;

fn page_of(records: Vec<InvocationRecord>) -> Vec<u8> {
    let build = Build::new(records);
    let mut out = Vec::new();
    page::write(&build, &Summary::compute(&build), &mut out).expect("memory is enough");
    out
}

/// The path of a screenshot.
fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Two thousand calls of fourteen or so steps: a large project from scratch.
fn large() -> Shape {
    Shape {
        calls: 2000,
        architectures: ["80", "86", "89", "90a", "100a", "120"]
            .map(Into::into)
            .to_vec(),
        slots: 32,
        memory_kib: 96 << 20,
        jobs: 64,
        direct_hits: 60,
        seed: 7,
    }
}

/// Durations of what the page measured itself, sorted, in ms.
fn measured(browser: &mut Browser, what: &str) -> Vec<f64> {
    let list = browser.evaluate(&format!(
        "performance.getEntriesByName({what:?}).map(entry => entry.duration).sort((a, b) => a - b)"
    ));
    let list = list.as_array().expect("a list").iter();
    list.map(|one| one.as_f64().expect("a number")).collect()
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

fn most(sorted: &[f64]) -> f64 {
    sorted[sorted.len() * 9 / 10]
}

fn worst(sorted: &[f64]) -> f64 {
    sorted[sorted.len() - 1]
}

/// Where the drawing of the slots is on the screen.
struct Slots {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Slots {
    fn find(browser: &mut Browser) -> Self {
        let found = browser.evaluate(
            "(() => { const box = document.getElementById('timeline').getBoundingClientRect(); return [box.left, box.top, box.width, box.height] })()",
        );
        let [left, top, width, height] =
            [0, 1, 2, 3].map(|index| found[index].as_f64().expect("a number"));
        Self {
            left,
            top,
            width,
            height,
        }
    }

    /// Moves the mouse to a place in the drawing, given in shares of its size.
    fn point_at(&self, browser: &mut Browser, (across, down): (f64, f64)) {
        let (x, y) = (
            self.left + self.width * across,
            self.top + self.height * down,
        );
        browser.mouse("mouseMoved", x, y);
    }
}

/// Types a query, as from the start of the page.
fn search(browser: &mut Browser, query: &str) {
    browser.key("/");
    for key in query.chars() {
        browser.key(&key.to_string());
    }
    browser.frames(4);
}

fn the_mouse_shows_a_task(browser: &mut Browser, slots: &Slots) {
    slots.point_at(browser, (0.5, 0.45));
    browser.until("!document.getElementById('tip').hidden");
    let tip = browser.text("#tip");
    assert!(tip.contains(".cu") && tip.contains("peak memory"), "{tip}");
}

fn each_key_narrows_the_rows(browser: &mut Browser) {
    let all = browser.text("#matched");
    search(browser, "bwd_hdim64 ptxas");
    assert!(
        browser.text("#matched").contains(" of "),
        "{}",
        browser.text("#matched")
    );
    let names = browser.evaluate(
        "[...document.querySelectorAll('#card-files tbody tr td:first-child')].map(cell => cell.innerText)",
    );
    let names = names.as_array().expect("rows");
    assert!(!names.is_empty());
    for name in names {
        assert!(
            name.as_str()
                .is_some_and(|name| name.contains("bwd_hdim64")),
            "{name}"
        );
    }
    browser.key("Escape");
    browser.until("document.getElementById('query').value === ''");
    browser.frames(4);
    assert_eq!(browser.text("#matched"), all);
}

/// A tool's button does the same as a key, and tells its state.
fn a_button_filters_by_tool(browser: &mut Browser) {
    browser.evaluate(
        "[...document.querySelectorAll('.chip')].find(chip => chip.innerText === 'cicc').click()",
    );
    browser.frames(4);
    assert_eq!(
        browser.text("#card-tools tbody").trim().get(..4),
        Some("cicc")
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll('#card-tools tbody tr').length"),
        1
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.chip[aria-pressed=true]').length"),
        1
    );
    browser.evaluate("document.querySelector('.chip[aria-pressed=true]').click()");
}

fn the_keyboard_alone_finds_a_task(browser: &mut Browser) {
    browser.evaluate("document.getElementById('timeline').focus()");
    browser.key("n");
    browser.until("!document.getElementById('detail').hidden");
    assert!(
        browser.text("#detail").contains("nvcc -O3"),
        "{}",
        browser.text("#detail")
    );
    browser.key("Escape");
}

/// Zooms in and out, and drags: as many frames as a person sees in two seconds. Gives the times of drawing what the script
/// of a frame has asked for, sorted, in ms.
fn zoom_and_drag(browser: &mut Browser) -> Vec<f64> {
    let raster = browser.evaluate(
        "(async () => {
            const canvas = document.getElementById('timeline'), box = canvas.getBoundingClientRect();
            const times = [];
            for (let at = 0; at < 120; at++) {
                const zoom = at % 2 === 0;
                canvas.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, ctrlKey: zoom, shiftKey: !zoom, deltaY: zoom ? (at < 60 ? -30 : 30) : 40, clientX: box.left + box.width / 2, clientY: box.top + 100 }));
                await new Promise(done => requestAnimationFrame(done));
                const began = performance.now();
                // Reading a pixel waits until everything before is really drawn.
                canvas.getContext('2d').getImageData(0, 0, 1, 1);
                times.push(performance.now() - began);
            }
            return times.sort((a, b) => a - b);
        })()",
    );
    // The browser advises against reading pixels often, which only this test does.
    browser
        .complaints
        .retain(|complaint| !complaint.contains("willReadFrequently"));
    let raster = raster.as_array().expect("times").iter();
    raster.filter_map(|one| one.as_f64()).collect()
}

#[test]
fn a_large_build_is_drawn_and_stays_quick() {
    let mut browser = Browser::start(1280, 800);
    browser.open(&page_of(build(&large())));
    let tasks = browser.text("#matched");
    assert!(tasks.ends_with("of 2,000 calls"), "{tasks}");
    assert_eq!(browser.text("h1"), "ninja -j64 (sample data)");
    assert_eq!(
        browser
            .text("#card-archs tbody tr:first-child td:first-child")
            .get(..3),
        Some("sm_")
    );

    let slots = Slots::find(&mut browser);
    the_mouse_shows_a_task(&mut browser, &slots);
    each_key_narrows_the_rows(&mut browser);
    a_button_filters_by_tool(&mut browser);
    the_keyboard_alone_finds_a_task(&mut browser);

    browser.evaluate("performance.clearMeasures()");
    let raster = zoom_and_drag(&mut browser);
    let frames = measured(&mut browser, "frame");
    browser.evaluate("performance.clearMeasures()");
    search(&mut browser, "attention sm_90 fwd");
    let filters = measured(&mut browser, "filter");
    let tables = measured(&mut browser, "tables");
    for step in 0..40 {
        slots.point_at(&mut browser, (0.1 + f64::from(step) * 0.02, 0.45));
    }
    let hovers = measured(&mut browser, "hover");
    println!("{tasks}");
    for (name, times) in [
        ("frame, script", &frames),
        ("frame, rest of drawing", &raster),
        ("filter keystroke", &filters),
        ("tables after it", &tables),
        ("hover", &hovers),
    ] {
        println!(
            "{name}: median {:.1} ms, nine of ten {:.1} ms, worst {:.1} ms of {}",
            median(times),
            most(times),
            worst(times),
            times.len()
        );
    }
    // The median, because other work on the machine must not fail the test.
    assert!(median(&frames) < 16.0 && median(&filters) < 16.0 && median(&hovers) < 16.0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn it_can_be_looked_at() {
    let mut browser = Browser::start(1280, 800);
    browser.open(&page_of(build(&Shape::default())));
    browser.picture(&picture("report-light.png"), false);
    browser.scheme("dark");
    browser.picture(&picture("report-dark.png"), false);
    browser.picture(&picture("report-dark-whole.png"), true);
    browser.scheme("light");
    browser.picture(&picture("report-light-whole.png"), true);
    browser.key("/");
    for key in "attention ptxas".chars() {
        browser.key(&key.to_string());
    }
    browser.mouse("mouseMoved", 640.0, 450.0);
    browser.frames(4);
    browser.picture(&picture("report-filtered.png"), false);
    browser.key("Escape");
    browser.mouse("mouseMoved", 5.0, 5.0);
    for (width, height) in [(1280, 800), (760, 900), (390, 844)] {
        browser.resize(width, height);
        browser.frames(3);
        browser.picture(&picture(&format!("report-{width}.png")), true);
        // Nothing sticks out sideways.
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert_eq!(wide, width);
    }
    println!("pictures in {}", env!("CARGO_TARGET_TMPDIR"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn any_name_is_shown_as_text() {
    let nasty = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1> \"'`&amp; äöü 日本語 \u{202e}\u{2028}.cu";
    let call = |outcome| InvocationRecord {
        since_boot_ns: 1,
        directory: "/p".into(),
        driver: Some(nasty.into()),
        sources: vec![nasty.replace('/', "\\")],
        args: vec!["nvcc".into(), nasty.into()],
        wall: std::time::Duration::from_secs(1),
        outcome,
        tasks: vec![Task {
            tool: nasty.into(),
            architecture: Some(nasty.into()),
            label: nasty.into(),
            finished: std::time::Duration::from_secs(1),
            ..Task::default()
        }],
        ..InvocationRecord::default()
    };
    let fallback = CallOutcome::Fallback {
        reason: nasty.into(),
    };
    let mut browser = Browser::start(1280, 800);
    browser.open(&page_of(vec![call(CallOutcome::Built), call(fallback)]));
    browser.evaluate("document.getElementById('timeline').focus()");
    browser.key("n");
    browser.until("!document.getElementById('detail').hidden");
    browser.frames(4);
    assert_eq!(
        browser.evaluate("window.pwned ?? null"),
        serde_json::Value::Null
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll('img, script').length"),
        2
    );
    assert!(
        browser
            .text("h1")
            .contains("<script>window.pwned=1</script>")
    );
    assert!(
        browser
            .text("#card-fallbacks")
            .contains("onerror=window.pwned=1")
    );
    assert!(browser.text("#detail").contains("日本語"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn an_empty_build_and_one_hit_are_drawn_too() {
    let mut browser = Browser::start(1280, 800);
    let hit = InvocationRecord {
        outcome: CallOutcome::DirectHit,
        directory: "/p".into(),
        sources: vec!["x.cu".into()],
        ..InvocationRecord::default()
    };
    for (records, title) in [(Vec::new(), "empty build"), (vec![hit], "x.cu")] {
        browser.open(&page_of(records));
        assert_eq!(browser.text("h1"), title);
        assert_eq!(browser.text("#trouble"), "");
        for key in ["+", "n", "ArrowLeft", "0"] {
            browser.evaluate("document.getElementById('timeline').focus()");
            browser.key(key);
        }
        browser.mouse("mouseMoved", 600.0, 260.0);
        browser.frames(4);
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn nvccs_own_traces_have_cards_where_there_are_any() {
    let made_up = Build::new(build(&Shape::default()));
    let mut summary = Summary::compute(&made_up);
    let event = |name: &str, detail: &str| {
        format!(r#"{{"name":"{name}","ts":1,"dur":1500,"args":{{"detail":"{detail}"}}}}"#)
    };
    let events = [
        event("Processing Header File", "/tk/include/cub/cub.cuh"),
        event("Instantiating Template Function", "f<int>"),
    ];
    let mut sums = Sums::default();
    let trace = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    sums.add(trace.as_bytes()).expect("a trace");
    let cards = |summary: &Summary| {
        let mut page = Vec::new();
        page::write(&made_up, summary, &mut page).expect("memory is enough");
        let mut browser = Browser::start(1280, 800);
        browser.open(&page);
        let text = browser.evaluate(
            "[...document.querySelectorAll('[id^=card-device]')].map(card => card.textContent).join(' ')",
        );
        text.as_str().expect("a text").to_owned()
    };
    assert_eq!(cards(&summary), "");
    summary.device_traces = Some(sums.finish());
    let text = cards(&summary);
    for wanted in [
        "cub.cuh",
        "f<int>",
        "From 1 trace of nvcc",
        "Processing Header File",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}
