//! How many answers were compared, and how many of them differ.

use std::collections::BTreeMap;
use std::fmt;

use super::compare::{Aspect, Comparison};
use crate::Faults;

/// Counts of answers by aspect.
#[derive(Debug, Default)]
pub(super) struct DifferenceCounts {
    compared: BTreeMap<Aspect, usize>,
    differing: BTreeMap<Aspect, usize>,
    /// Cases for which Kubernetes' libraries took too long or panicked.
    unanswered: usize,
}

impl DifferenceCounts {
    /// Adds the result of a case.
    pub(super) fn add(&mut self, comparison: &Comparison) {
        self.unanswered += usize::from(comparison.unanswered);
        for (aspect, count) in &comparison.compared {
            *self.compared.entry(*aspect).or_default() += count;
        }
        for difference in &comparison.differences {
            *self.differing.entry(difference.aspect).or_default() += 1;
        }
    }

    /// Each aspect with the number of answers that were compared and of those that differ.
    pub(super) fn rows(&self) -> [(Aspect, usize, usize); Aspect::ALL.len()] {
        Aspect::ALL.map(|aspect| (aspect, self.all(aspect), self.differing(aspect)))
    }

    pub(super) const fn unanswered(&self) -> usize {
        self.unanswered
    }

    fn all(&self, aspect: Aspect) -> usize {
        self.compared.get(&aspect).copied().unwrap_or(0)
    }

    fn differing(&self, aspect: Aspect) -> usize {
        self.differing.get(&aspect).copied().unwrap_or(0)
    }

    /// A fault if verdicts or objects differ; differences in text and cost are not faults.
    pub(super) fn faults(&self) -> Faults {
        let (verdicts, objects) = (
            self.differing(Aspect::Verdict),
            self.differing(Aspect::Object),
        );
        if verdicts + objects == 0 {
            return Faults::new();
        }
        vec![format!("{verdicts} verdicts and {objects} objects differ")]
    }
}

/// A table in Markdown.
impl fmt::Display for DifferenceCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| compared | answers | differing |")?;
        writeln!(f, "|---|---:|---:|")?;
        for (aspect, all, differing) in self.rows() {
            writeln!(f, "| {} | {all} | {differing} |", aspect.name())?;
        }
        if self.unanswered > 0 {
            let count = self.unanswered;
            writeln!(
                f,
                "\nnot answered by Kubernetes' libraries in time, or without a panic: {count}"
            )?;
        }
        Ok(())
    }
}
