//! The reconciles that have begun and not ended.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::Priority;

/// How many reconciles of low priority run at most concurrently with one of high priority. Their
/// writes make the API server slower for it.
const MAX_LOW_WITH_HIGH: usize = 4;

/// How many reconciles run, by priority and by namespace.
#[derive(Debug)]
pub(super) struct Running {
    max: usize,
    high: usize,
    low: usize,
    /// Without those of which none runs.
    of_namespace: BTreeMap<String, usize>,
}

impl Running {
    /// None runs, and at most so many may.
    pub(super) fn at_most(max: NonZeroUsize) -> Self {
        Self {
            max: max.get(),
            high: 0,
            low: 0,
            of_namespace: BTreeMap::new(),
        }
    }

    /// Whether one more of the namespace may begin: only if fewer of it run than can begin in all.
    /// So one namespace has at most half of all, two have two thirds, and what comes next finds
    /// room although their reconciles wait for a server that does not answer.
    pub(super) fn admits(&self, namespace: &str) -> bool {
        let free = self.max.saturating_sub(self.high + self.low);
        self.of_namespace.get(namespace).copied().unwrap_or(0) < free
    }

    /// Whether one of low priority may begin now.
    pub(super) fn admits_low(&self) -> bool {
        self.high == 0 || self.low < MAX_LOW_WITH_HIGH
    }

    pub(super) fn begin(&mut self, namespace: &str, priority: Priority) {
        *self.count_mut(priority) += 1;
        *self.of_namespace.entry(namespace.to_owned()).or_default() += 1;
    }

    pub(super) fn end(&mut self, namespace: &str, priority: Priority) {
        let count = self.count_mut(priority);
        *count = count.saturating_sub(1);
        if let Some(count) = self.of_namespace.get_mut(namespace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_namespace.remove(namespace);
            }
        }
    }

    fn count_mut(&mut self, priority: Priority) -> &mut usize {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }
}
