//! Public policies: what their cases reach and detect, and what a real API server answers.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use crate::policies::{Measured, recorded};

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    Ok(render(&recorded(root)?))
}

fn render(policies: &BTreeMap<String, Measured>) -> String {
    let mut text = "\
`cargo judge policies` reads ValidatingAdmissionPolicies where others publish them, in Go modules and
repositories, and runs `kubemu test` on them with the cases of `judge/policies/cases`. Results that no case
reaches and changes that no case detects are counted for the policy alone, without the CRDs that it needs.
Then `--write-missing`, in an unoptimised `kubemu`, has 20 seconds for each policy to write cases from the
first case of each document. With `--real`, a real `kube-apiserver` 1.36 with the same policy is asked every
case, and every written one with the first ones again. A response is equal if it has the same verdict and,
refused, the same message.

| policy | cases | results reached | changes detected | written cases | detected with these | equal on kube-apiserver |
|---|---:|---:|---:|---:|---:|---:|
"
    .to_owned();
    let mut sums = [0; 9];
    for (name, it) in policies {
        let counts = [
            it.cases as u64,
            it.reached,
            it.results,
            it.detected,
            it.changes,
            it.written as u64,
            it.detected_by_written,
            it.equal as u64,
            it.replayed as u64,
        ];
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
        let _ = writeln!(text, "| {name} | {} |", row(counts));
    }
    let _ = writeln!(text, "| **all** | {} |", row(sums));
    text.push_str(
        "\nWhere they are published:\n\n| policy | module or repository |\n|---|---|\n",
    );
    for (name, it) in policies {
        // A commit is known by its beginning.
        let (place, version) = it.source.split_once('@').unwrap_or_default();
        let version: String = version.chars().take(12).collect();
        let _ = writeln!(text, "| {name} | `{place}` {version} |");
    }
    text
}

fn row(counts: [u64; 9]) -> String {
    let [
        cases,
        reached,
        results,
        detected,
        changes,
        written,
        by_written,
        equal,
        replayed,
    ] = counts;
    format!(
        "{cases} | {reached} of {results} | {detected} of {changes} | {written} | {by_written} | {equal} of {replayed}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_a_row_and_the_sums_are_last() {
        let measured = Measured {
            source: "example.com/a@v1.0.0".to_owned(),
            cases: 3,
            results: 4,
            reached: 2,
            changes: 6,
            detected: 5,
            written: 1,
            detected_by_written: 4,
            replayed: 5,
            equal: 5,
        };
        let policies = BTreeMap::from([
            ("a".to_owned(), measured.clone()),
            ("b".to_owned(), measured),
        ]);
        let text = render(&policies);
        let row = "| a | 3 | 2 of 4 | 5 of 6 | 1 | 4 | 5 of 5 |";
        assert!(text.contains(row), "{text}");
        let sums = "| **all** | 6 | 4 of 8 | 10 of 12 | 2 | 8 | 10 of 10 |";
        assert!(text.contains(sums), "{text}");
        assert!(text.contains("| b | `example.com/a` v1.0.0 |"), "{text}");
    }
}
