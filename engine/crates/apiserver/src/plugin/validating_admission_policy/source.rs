//! The compiled policies and bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::policy::{Binding, Policies, Policy};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::Value;

use crate::store::Change;

/// The compiled policies and bindings (`policy_source.go` in k8s.io/apiserver).
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicySource {
    policies: BTreeMap<Arc<str>, Arc<Policy>>,
    bindings: BTreeMap<Arc<str>, Arc<Binding>>,
    /// The policies with their bindings.
    pub(super) compiled: Arc<Policies>,
}

impl PolicySource {
    /// Updates the compiled policies after a write of a policy or binding. An expression that does
    /// not compile in this release, but did when it was stored, fails when it is evaluated.
    ///
    /// # Errors
    /// The errors of a policy or binding that another release has stored and that cannot be
    /// compiled.
    pub(crate) fn update(
        &mut self,
        change: &Change,
        kube: KubeVersion,
    ) -> Result<(), Vec<FieldError>> {
        let name = change.key.name.clone();
        let after = change.after.as_deref();
        let before = change.before.as_deref();
        if let (Some(before), Some(after)) = (before, after)
            && before["spec"] == after["spec"]
        {
            return Ok(());
        }
        if change.object["kind"] == "ValidatingAdmissionPolicy" {
            let compiled = after.map(|it| Policy::stored(it, kube)).transpose()?;
            replace(&mut self.policies, name, compiled);
        } else {
            let compiled = after.map(Binding::compile).transpose()?;
            replace(&mut self.bindings, name, compiled);
        }
        let (policies, bindings) = (self.policies.values(), self.bindings.values());
        self.compiled = Arc::new(Policies::new(policies.cloned(), bindings.cloned()));
        Ok(())
    }

    /// Whether a policy has parameters of this kind.
    pub(crate) fn reads_parameters_of(&self, kind: &Value) -> bool {
        let mut all = self.policies.values();
        all.any(|it| it.param_kind().is_some_and(|it| *kind == it.kind))
    }
}

/// Replaces the entry with this name, or removes it.
pub(in crate::plugin) fn replace<T>(
    all: &mut BTreeMap<Arc<str>, Arc<T>>,
    name: Arc<str>,
    now: Option<T>,
) {
    match now {
        Some(one) => {
            all.insert(name, Arc::new(one));
        }
        None => {
            all.remove(&name);
        }
    }
}
