//! The results of a run, by kind and by cause.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::case::Case;
use super::compare::{Aspect, Comparison};
use super::explanation::Explanation;

/// The counts of one kind.
#[derive(Clone, Debug, Default)]
struct Row {
    cases: u64,
    requests: u64,
    differing: BTreeMap<Aspect, u64>,
}

/// A cause of differences, as far as their texts show it.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) count: u64,
    /// The first case with the difference.
    pub(super) case: u64,
    pub(super) aspect: Aspect,
}

/// What differences of one cause have in common: the number of the explanation that covers them, and
/// their texts without values.
type Cause = (Option<usize>, String);

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct RunCounts {
    rows: BTreeMap<String, Row>,
    groups: BTreeMap<Cause, Group>,
    explanations: Vec<Explanation>,
    /// Cases that were ended because the real server panicked.
    unanswered: u64,
}

impl RunCounts {
    /// Empty counts. The explanations are the known causes of differences.
    pub(super) fn new(explanations: Vec<Explanation>) -> Self {
        Self {
            explanations,
            ..Self::default()
        }
    }

    /// Counts a case.
    pub(super) fn add(&mut self, case: &Case<'_>, comparison: &Comparison) {
        self.unanswered += u64::from(comparison.is_unanswered);
        let row = self.rows.entry(case.seed.kind().to_owned()).or_default();
        row.cases += 1;
        row.requests += u64::try_from(comparison.compared).unwrap_or(u64::MAX);
        let Some(found) = &comparison.difference else {
            return;
        };
        *row.differing.entry(found.aspect).or_default() += 1;
        let kind = case.seed.kind();
        let causes = &self.explanations;
        let explained = causes.iter().position(|it| it.covers(kind, found));
        let cause = (explained, found.skeleton());
        let group = self.groups.entry(cause).or_insert_with(|| Group {
            count: 0,
            case: case.number,
            aspect: found.aspect,
        });
        group.count += 1;
    }

    /// The unexplained causes: verdicts first, then by frequency.
    pub(super) fn groups(&self) -> Vec<(&String, &Group)> {
        let unexplained = self.groups.iter().filter(|(cause, _)| cause.0.is_none());
        let mut groups: Vec<_> = unexplained.map(|(cause, it)| (&cause.1, it)).collect();
        groups.sort_by_key(|(_, it)| (it.aspect, std::cmp::Reverse(it.count), it.case));
        groups
    }

    /// The number of compared requests.
    pub(super) fn requests(&self) -> u64 {
        self.rows.values().map(|it| it.requests).sum()
    }

    /// The number of cases with different verdicts.
    pub(super) fn verdicts(&self) -> u64 {
        let of = |row: &Row| row.differing.get(&Aspect::Verdict).copied();
        self.rows.values().filter_map(of).sum()
    }

    /// The counts as they are written to the file.
    pub(super) fn result(&self, seed: u64, first: u64) -> Value {
        let rows = self.rows.iter().map(|(kind, row)| {
            let mut counts = json!({"kind": kind, "cases": row.cases,
                "requests": row.requests});
            for aspect in Aspect::ALL {
                let count = row.differing.get(&aspect).copied();
                counts[aspect.name()] = count.unwrap_or_default().into();
            }
            counts
        });
        let explained = self.explanations.iter().enumerate().map(|(number, it)| {
            let covered = self.groups.iter();
            let covered = covered.filter(|(cause, _)| cause.0 == Some(number));
            let cases: u64 = covered.map(|(_, group)| group.count).sum();
            json!({"what": it.what, "why": it.why, "cases": cases})
        });
        let explained = explained.filter(|it| it["cases"] != 0);
        let unexplained = self.groups().into_iter().map(|(words, group)| {
            json!({"aspect": group.aspect.name(), "cases": group.count,
                "first": group.case, "words": words})
        });
        json!({"seed": seed, "first": first, "unanswered": self.unanswered, "kinds": rows.collect::<Vec<_>>(),
            "explained": explained.collect::<Vec<_>>(),
            "unexplained": unexplained.collect::<Vec<_>>()})
    }
}

impl fmt::Display for RunCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34}{:>8}{:>10}", "kind", "cases", "requests")?;
        for aspect in Aspect::ALL {
            write!(f, "{:>10}", aspect.name())?;
        }
        writeln!(f)?;
        for (kind, row) in &self.rows {
            write!(f, "{kind:<34}{:>8}{:>10}", row.cases, row.requests)?;
            for aspect in Aspect::ALL {
                let count = row.differing.get(&aspect).copied().unwrap_or_default();
                write!(f, "{count:>10}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
