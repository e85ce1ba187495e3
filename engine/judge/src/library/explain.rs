//! The known causes of differences.

use serde_json::{Value, json};

use super::compare::{Aspect, Difference};

/// A cause of differences: what differs, why, and how it is recognized by the texts that only
/// Kubernetes has and those that only the engine has.
struct Cause {
    what: &'static str,
    why: &'static str,
    fits: fn(theirs: &str, ours: &str) -> bool,
}

/// The first that matches is used.
const CAUSES: &[Cause] = &[
    Cause {
        what: "several syntax errors",
        why: "Kubernetes' parser goes on behind an error where the engine's stops, and reports more",
        fits: |theirs, _| theirs.contains("Syntax error"),
    },
    Cause {
        what: "the type of a node with rules whose schema is refused for something else",
        why: "Kubernetes reports it at the node and at what is in it, the engine at its default or not at all",
        fits: |theirs, ours| {
            theirs.contains("failed to construct type information")
                || ours.contains("failed to convert to declType")
        },
    },
    Cause {
        what: "a key that is a fraction or null",
        why: "Kubernetes takes it, but the conformance tests of the language refuse it",
        fits: |_, ours| ours.contains("unsupported key type"),
    },
    Cause {
        what: "what expressions may cost together",
        why: "where some do not compile, the shares of the others are reported, or not",
        fits: |theirs, ours| {
            format!("{theirs}{ours}").contains("contributed to estimated rule cost total")
        },
    },
    Cause {
        what: "warnings of type checks of stored policies",
        why: "mostly the definition is one that is refused, and nothing is checked against it",
        fits: |theirs, ours| format!("{theirs}{ours}").contains("Kind="),
    },
    Cause {
        what: "a zone that is named like a folder of zones",
        why: "Go says what reading a folder of its machine ends with, the engine that there is no such zone",
        fits: |theirs, ours| {
            theirs.contains("is a directory") && ours.contains("unknown time zone")
        },
    },
    Cause {
        what: "the metadata of a default of an embedded resource",
        why: "Kubernetes reports what of it cannot be read, and looks no further",
        fits: |theirs, _| theirs.contains("json: cannot unmarshal"),
    },
    Cause {
        what: "where an error of a macro is reported",
        why: "Kubernetes places some errors of macros at the macro, the engine at what is in it",
        fits: |theirs, ours| {
            theirs.contains("ERROR: <input>") && ours.contains("ERROR: <input>")
        },
    },
];

/// The number of differences in text or cost by cause, and the cases without a known cause.
pub(super) fn explained<'d>(
    found: impl Iterator<Item = (&'d u64, &'d Vec<Difference>)>,
) -> Value {
    let mut counts = vec![0_usize; CAUSES.len()];
    let mut unexplained: Vec<u64> = Vec::new();
    for (case, differences) in found {
        // A difference in cost has the cause of a difference in text in the same case.
        let known = differences.iter().find_map(cause);
        for difference in differences {
            match cause(difference).or(known) {
                Some(at) if difference.aspect != Aspect::Verdict => {
                    if let Some(count) = counts.get_mut(at) {
                        *count += 1;
                    }
                }
                _ if unexplained.last() == Some(case) => {}
                _ => unexplained.push(*case),
            }
        }
    }
    let rows = CAUSES.iter().zip(counts).filter(|(_, count)| *count > 0);
    let rows: Vec<_> = rows
        .map(|(cause, count)| json!({"what": cause.what, "why": cause.why, "answers": count}))
        .collect();
    json!({"matters": rows, "unexplained": unexplained})
}

fn cause(difference: &Difference) -> Option<usize> {
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::Array(items) => items.iter().map(Value::to_string).collect(),
            other => vec![other.to_string()],
        }
    };
    let (theirs, ours) = (texts(&difference.theirs), texts(&difference.ours));
    let only = |some: &[String], others: &[String]| -> String {
        let own = some.iter().filter(|it| !others.contains(it));
        own.cloned().collect::<Vec<_>>().join("\n")
    };
    let (theirs_only, ours_only) = (only(&theirs, &ours), only(&ours, &theirs));
    CAUSES
        .iter()
        .position(|it| (it.fits)(&theirs_only, &ours_only))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(aspect: Aspect, theirs: Value, ours: Value) -> Difference {
        Difference {
            aspect,
            place: "definition".to_owned(),
            theirs,
            ours,
        }
    }

    #[test]
    fn a_difference_is_counted_by_cause_and_a_verdict_is_never_explained() {
        let same = "a: Required value";
        let text = difference(
            Aspect::Text,
            json!([same, "b: Syntax error\nSyntax error"]),
            json!([same, "b: Syntax error"]),
        );
        let odd = difference(Aspect::Text, json!(["c"]), json!(["d"]));
        let verdict = difference(Aspect::Verdict, json!(true), json!(false));
        let cost = difference(Aspect::Cost, json!(1), json!(2));
        let found = [(1, vec![text, cost]), (2, vec![odd]), (3, vec![verdict])];
        let explained = explained(found.iter().map(|(case, found)| (case, found)));
        assert_eq!(explained["matters"][0]["answers"], 2);
        assert_eq!(explained["matters"][1], Value::Null);
        assert_eq!(explained["unexplained"], json!([2, 3]));
    }
}
