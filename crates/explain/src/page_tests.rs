//! Text from outside in a page stays text.

use super::*;

#[test]
fn text_from_outside_stays_text() {
    let nasty = "</script><img src=x onerror=alert(1)>\"&\u{1}";
    let step = StepExplanation {
        number: 1,
        tool: nasty.into(),
        arch: None,
        title: nasty.into(),
        purpose: nasty.into(),
        command: nasty.into(),
        options: Vec::new(),
        needs: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        tree: Vec::new(),
        outcome: CommandOutcome::Ran,
        micros: 0,
        stdout: nasty.into(),
        stderr: String::new(),
    };
    let explanation = Explanation {
        command: vec![nasty.into()],
        steps: vec![step],
        ..Explanation::default()
    };
    let mut out = Vec::new();
    write(&explanation, None, &mut out).expect("memory");
    let html = String::from_utf8(out).expect("text");
    assert!(!html.contains("<img"));
    assert_eq!(html.matches("</script>").count(), 1);
}
