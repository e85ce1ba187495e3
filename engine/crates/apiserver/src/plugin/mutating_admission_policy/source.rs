//! The compiled policies and bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::policy::{Binding, MutatingPolicies, MutatingPolicy};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::Value;

use crate::plugin::validating_admission_policy::source::replace;
use crate::store::Change;

/// The compiled policies and bindings (`policy_source.go` in k8s.io/apiserver).
#[derive(Clone, Debug, Default)]
pub(crate) struct MutatingPolicySource {
    policies: BTreeMap<Arc<str>, Arc<MutatingPolicy>>,
    bindings: BTreeMap<Arc<str>, Arc<Binding>>,
    /// The policies with their bindings.
    pub(super) compiled: Arc<MutatingPolicies>,
}

impl MutatingPolicySource {
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
        if change.object["kind"] == "MutatingAdmissionPolicy" {
            let compiled = after.map(|it| MutatingPolicy::stored(it, kube));
            replace(&mut self.policies, name, compiled.transpose()?);
        } else {
            let compiled = after.map(Binding::compile_mutating);
            replace(&mut self.bindings, name, compiled.transpose()?);
        }
        let (policies, bindings) = (self.policies.values(), self.bindings.values());
        let compiled = MutatingPolicies::new(policies.cloned(), bindings.cloned());
        self.compiled = Arc::new(compiled);
        Ok(())
    }

    /// Whether a policy has parameters of this kind.
    pub(crate) fn reads_parameters_of(&self, kind: &Value) -> bool {
        let mut all = self.policies.values();
        all.any(|it| it.param_kind().is_some_and(|it| *kind == it.kind))
    }
}
