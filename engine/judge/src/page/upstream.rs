//! Kubernetes' own end-to-end tests, on a real API server and on the embedded one.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use crate::upstream::expectation::{Expectations, Recorded};

/// Most characters that are printed of why a spec does not pass.
const MAX_PRINTED_CHARS: usize = 160;

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    Ok(render(&Expectations::read(root)?))
}

fn render(expectations: &Expectations) -> String {
    let mut text = "\
`cargo judge upstream` builds `e2e.test` of Kubernetes 1.36 from its Go module, and runs its specs that
need no container (`judge/upstream/specs.txt`) on `kubemu serve`; with `--real`, on a real
`kube-apiserver`. Both get the same nodes and pods from two kubelets that are played, and the same
controllers of workloads from `kube-controller-manager`. What the real server passes here is asked of
the embedded one. The result of a spec is that of its last recorded run (`--record`), which may have been
one of a few specs (`--only`).

| area | specs | pass on kube-apiserver | of these pass here | do not pass here |
|---|---:|---:|---:|---:|
"
    .to_owned();
    let mut areas: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut sums = [0; 4];
    for (spec, it) in &expectations.recorded {
        let is_asked = it.real == "passed";
        let passes = it.ours == "passed";
        let row = [true, is_asked, is_asked && passes, is_asked && !passes];
        for counts in [areas.entry(area(spec)).or_default(), &mut sums] {
            for (count, is_counted) in counts.iter_mut().zip(row) {
                *count += usize::from(is_counted);
            }
        }
    }
    for (area, [specs, real, ours, not]) in areas {
        let _ = writeln!(text, "| {area} | {specs} | {real} | {ours} | {not} |");
    }
    let [specs, real, ours, not] = sums.map(|it| format!("**{it}**"));
    let _ = writeln!(text, "| **all** | {specs} | {real} | {ours} | {not} |");
    differences(&mut text, expectations);
    not_asked(&mut text, &expectations.recorded);
    text
}

/// The specs that pass on the real server only.
fn differences(text: &mut String, expectations: &Expectations) {
    let recorded = &expectations.recorded;
    let mut rows = recorded
        .iter()
        .filter(|(_, it)| it.real == "passed" && it.ours != "passed")
        .peekable();
    if rows.peek().is_none() {
        return;
    }
    text.push_str("\nWhat passes on kube-apiserver only:\n\n| spec | why |\n|---|---|\n");
    for (spec, _) in rows {
        let why = expectations.reason(spec).unwrap_or("not known yet");
        let _ = writeln!(text, "| {} | {} |", cell(spec), cell(why));
    }
}

/// The specs that the real server does not pass.
fn not_asked(text: &mut String, recorded: &BTreeMap<String, Recorded>) {
    let mut rows = recorded
        .iter()
        .filter(|(_, it)| it.real != "passed")
        .peekable();
    if rows.peek().is_none() {
        return;
    }
    text.push_str(
        "\nWhat is not asked, because it does not pass on kube-apiserver in the same set-up:\n\n\
         | spec | on kube-apiserver | here | its message there |\n|---|---|---|---|\n",
    );
    for (spec, it) in rows {
        let [real, ours] =
            [&it.real, &it.ours].map(|it| if it.is_empty() { "not run" } else { it });
        let _ = writeln!(
            text,
            "| {} | {real} | {ours} | {} |",
            cell(spec),
            cell(&it.why)
        );
    }
}

/// The special interest group of a spec.
fn area(spec: &str) -> &str {
    let inner = spec.strip_prefix('[').and_then(|it| it.split_once(']'));
    inner.map_or(spec, |(area, _)| area)
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    let plain = text
        .trim()
        .replace('\n', " ")
        .replace('|', "\\|")
        .replace('<', "&lt;");
    plain.chars().take(MAX_PRINTED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::expectation::Difference;

    #[test]
    fn only_what_the_real_server_passes_is_asked() {
        let recorded = |real: &str, ours: &str| Recorded {
            real: real.to_owned(),
            ours: ours.to_owned(),
            ..Recorded::default()
        };
        let expectations = Expectations::of(
            vec![Difference {
                why: "no kubelet".to_owned(),
                specs: vec!["[sig-b] y".to_owned()],
            }],
            BTreeMap::from([
                ("[sig-a] x".to_owned(), recorded("passed", "passed")),
                ("[sig-b] y".to_owned(), recorded("passed", "failed")),
                ("[sig-b] z".to_owned(), recorded("failed", "passed")),
            ]),
        );
        let text = render(&expectations);
        assert!(text.contains("| sig-a | 1 | 1 | 1 | 0 |"), "{text}");
        assert!(text.contains("| sig-b | 2 | 1 | 0 | 1 |"), "{text}");
        assert!(
            text.contains("| **all** | **3** | **2** | **1** | **1** |"),
            "{text}"
        );
        assert!(text.contains("| [sig-b] y | no kubelet |"), "{text}");
        assert!(
            text.contains("| [sig-b] z | failed | passed |  |"),
            "{text}"
        );
    }
}
