//! How the taints of a Node change: which are ours, which are added and removed, and which another
//! client has set.

use fivespot_api::{MAX_APPLIED_TAINTS, MAX_TAINTS, NodeTaint};

use crate::Taint;

/// How many taints may be desired: those of the spec, and that of the last call.
const MAX_DESIRED_TAINTS: usize = MAX_TAINTS + 1;

/// How a Node's taints change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// All taints afterwards, ours and foreign ones, in the order of the Node; new ones last.
    pub(crate) taints: Vec<Taint>,
    /// The annotation afterwards: ours, and entries that the status does not confirm.
    pub(crate) record: Vec<NodeTaint>,
    /// Those that are ours afterwards; at most [`MAX_APPLIED_TAINTS`].
    pub(crate) ours: Vec<NodeTaint>,
    /// Those that are ours now.
    pub(crate) before: Vec<NodeTaint>,
    /// Those of ours that are added or changed, and that the status must list first.
    pub(crate) claims: Vec<NodeTaint>,
    /// Those of ours or of the spec that another client has set, and that are left alone.
    pub(crate) conflicts: Vec<NodeTaint>,
}

/// The two records that decide which taints are ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ownership<'a> {
    /// The annotation on the Node.
    pub(crate) record: &'a [NodeTaint],
    /// `status.appliedNodeTaints`.
    pub(crate) applied: &'a [NodeTaint],
}

/// Compares the desired taints and ours with those on the Node.
pub(crate) fn change(
    wanted: &[NodeTaint],
    ownership: Ownership<'_>,
    node: &[Taint],
) -> Change {
    let Ownership { record, applied } = ownership;
    let is_applied = |taint: &&NodeTaint| applied.iter().any(|of| is_same(of, taint));
    let ours: Vec<_> = record.iter().filter(is_applied).cloned().collect();
    let mut next = Change {
        taints: node.to_vec(),
        before: ours.clone(),
        ..Change::default()
    };
    for desired in wanted.iter().take(MAX_DESIRED_TAINTS) {
        next.set(desired, ours.iter().find(|of| is_same(of, desired)));
    }
    let dropped = ours
        .iter()
        .filter(|of| !wanted.iter().any(|desired| is_same(desired, of)));
    for of in dropped.take(MAX_APPLIED_TAINTS - MAX_DESIRED_TAINTS) {
        next.drop(of);
    }
    next.record = next.ours.clone();
    let unconfirmed = record.iter().filter(|of| !is_applied(of));
    let unconfirmed =
        unconfirmed.filter(|of| !next.ours.iter().any(|it| is_same(it, of)));
    next.record.extend(unconfirmed.cloned());
    next.record.sort();
    next.ours.sort();
    next.claims.sort();
    next.conflicts.sort();
    next
}

impl Change {
    /// Adds or changes a desired taint; `ours` is the taint as we applied it before.
    fn set(&mut self, desired: &NodeTaint, ours: Option<&NodeTaint>) {
        let existing = self
            .taints
            .iter_mut()
            .find(|existing| is_at(existing, desired));
        match (existing, ours) {
            (None, _) => {
                self.taints.push(Taint {
                    key: desired.key.clone(),
                    value: desired.value.clone(),
                    effect: desired.effect.as_str().to_owned(),
                    time_added: None,
                });
                self.ours.push(desired.clone());
                self.claims.push(desired.clone());
            }
            (Some(existing), Some(ours))
                if existing.value == desired.value || existing.value == ours.value =>
            {
                if existing.value != desired.value || ours.value != desired.value {
                    self.claims.push(desired.clone());
                }
                existing.value.clone_from(&desired.value);
                self.ours.push(desired.clone());
            }
            (Some(_), Some(ours)) => {
                self.conflicts.push(desired.clone());
                self.ours.push(ours.clone());
            }
            (Some(_), None) => self.conflicts.push(desired.clone()),
        }
    }

    /// Removes one of ours that is no longer desired.
    fn drop(&mut self, ours: &NodeTaint) {
        let existing = self.taints.iter().find(|existing| is_at(existing, ours));
        if existing.is_some_and(|existing| existing.value != ours.value) {
            self.conflicts.push(ours.clone());
            self.ours.push(ours.clone());
        } else {
            self.taints.retain(|existing| !is_at(existing, ours));
        }
    }

    /// Whether the Node has all desired taints.
    pub(crate) fn is_settled(&self, node: &[Taint]) -> bool {
        self.taints == node && self.ours == self.before
    }

    /// Whether the status lists all taints that are added or changed.
    pub(crate) fn is_claimed(&self, applied: &[NodeTaint]) -> bool {
        self.claims.iter().all(|claim| applied.contains(claim))
    }

    /// What the status lists while the Node is still unchanged: the taints that are ours, and
    /// those to be applied.
    pub(crate) fn claimed(&self) -> Vec<NodeTaint> {
        let is_claimed =
            |of: &&NodeTaint| !self.claims.iter().any(|claim| is_same(claim, of));
        let before = self.before.iter().filter(is_claimed);
        let mut all: Vec<_> = before.chain(&self.claims).cloned().collect();
        all.sort();
        all.truncate(MAX_APPLIED_TAINTS);
        all
    }
}

/// Whether they are one taint, perhaps with different values.
pub(crate) fn is_same(one: &NodeTaint, other: &NodeTaint) -> bool {
    (&one.key, one.effect) == (&other.key, other.effect)
}

fn is_at(existing: &Taint, taint: &NodeTaint) -> bool {
    existing.key == taint.key && existing.effect == taint.effect.as_str()
}

#[cfg(test)]
mod tests;
