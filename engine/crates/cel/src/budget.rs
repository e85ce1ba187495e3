//! The cost budget of evaluation.

use crate::RunError;

/// Counts the cost of evaluation, in the units of Kubernetes' cost tracker.
///
/// One run may cost at most the limit per call; all runs that share a budget may cost at
/// most the budget.
#[derive(Clone, Debug)]
pub struct Budget {
    per_call: u64,
    remaining: u64,
    spent: u64,
    call: u64,
}

impl Budget {
    /// Kubernetes' limit for one run of one expression.
    pub const PER_CALL: u64 = 1_000_000;
    /// Kubernetes' limit for all rules of one object, or for one policy with one binding.
    pub const PER_OBJECT: u64 = 10_000_000;
    /// Kubernetes' limit for all match conditions of one policy.
    pub const MATCH_CONDITIONS: u64 = 2_500_000;

    /// A budget of `total`, with Kubernetes' limit per call.
    pub fn new(total: u64) -> Self {
        Self {
            per_call: Self::PER_CALL,
            remaining: total,
            spent: 0,
            call: 0,
        }
    }

    /// The same budget with another limit per call.
    #[must_use]
    pub fn with_limit_per_call(mut self, per_call: u64) -> Self {
        self.per_call = per_call;
        self
    }

    /// The cost that may still be spent.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The total cost of all runs so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// The cost of the latest run, also if it failed.
    pub fn last_call(&self) -> u64 {
        self.call
    }

    /// Spends a `cost` that arose outside a run, such as that of a lazily computed variable.
    ///
    /// # Errors
    /// [`RunError::OutOfBudget`] if it exceeds the remaining budget, which is then 0.
    pub fn take(&mut self, cost: u64) -> Result<(), RunError> {
        self.spent = self.spent.saturating_add(cost);
        if cost > self.remaining {
            self.remaining = 0;
            return Err(RunError::OutOfBudget);
        }
        self.remaining -= cost;
        Ok(())
    }

    pub(crate) fn begin_call(&mut self) {
        self.call = 0;
    }

    /// Charges a cost to the running call.
    #[inline]
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), RunError> {
        self.call = self.call.saturating_add(cost);
        if self.call > self.per_call {
            return Err(RunError::CallLimit);
        }
        Ok(())
    }

    /// Charges this number of steps of cost 1 to the running call, and stops at the first step
    /// that exceeds the limit.
    #[inline]
    pub(crate) fn charge_steps(&mut self, steps: u64) -> Result<(), RunError> {
        let sum = self.call.saturating_add(steps);
        if sum > self.per_call {
            return self.stop_at_limit(steps);
        }
        self.call = sum;
        Ok(())
    }

    #[cold]
    fn stop_at_limit(&mut self, steps: u64) -> Result<(), RunError> {
        if steps == 0 {
            return Ok(());
        }
        self.call = self.call.max(self.per_call).saturating_add(1);
        Err(RunError::CallLimit)
    }

    /// The cost charged to the running call so far.
    pub(crate) fn in_call(&self) -> u64 {
        self.call
    }

    /// Refunds a cost charged to the running call.
    pub(crate) fn refund(&mut self, cost: u64) {
        self.call = self.call.saturating_sub(cost);
    }

    pub(crate) fn end_call(&mut self) -> Result<(), RunError> {
        self.take(self.call)
    }
}

impl Default for Budget {
    /// [`Budget::PER_OBJECT`].
    fn default() -> Self {
        Self::new(Self::PER_OBJECT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_charged_together_stop_at_the_same_step_as_single_charges() {
        for (before, steps) in [(0, 0), (3, 2), (3, 3), (3, 9), (5, 0), (5, 1), (8, 2)] {
            let mut together = Budget::default().with_limit_per_call(5);
            let _ = together.charge(before);
            let mut single = together.clone();
            let sum = together.charge_steps(steps);
            let one_by_one = (0..steps).try_for_each(|_| single.charge(1));
            assert_eq!(sum, one_by_one, "{steps} after {before}");
            assert_eq!(
                together.in_call(),
                single.in_call(),
                "{steps} after {before}"
            );
        }
    }
}
