//! An API server's admission of ScheduledMachines, without the server.

use std::sync::Arc;

use fivespot_admission::KubeVersion;
use fivespot_admission::crd::{Crd, CustomResource, RuleCost};
use fivespot_admission::policy::{
    Binding, Decision, GroupVersionKind, Operation, Policies, Policy, Request,
};
use fivespot_api::{crd, name, vap};
use serde_json::Value;

/// What is admitted.
pub(crate) const KIND: GroupVersionKind<'static> = GroupVersionKind {
    group: name::GROUP,
    version: name::VERSION,
    kind: name::KIND,
};

/// Which layers are in force.
pub(crate) struct Judge {
    crd: Crd,
    policies: Policies,
}

impl Judge {
    /// CRD and policy as they are shipped.
    pub(crate) fn shipped() -> Self {
        Self::new(&crd::render(crd::SHIPPED_MINOR), true)
    }

    /// The CRD alone.
    pub(crate) fn crd_alone() -> Self {
        Self::new(&crd::render(crd::SHIPPED_MINOR), false)
    }

    /// The CRD for servers that know no `optionalOldSelf`, alone.
    pub(crate) fn old_crd_alone() -> Self {
        Self::new(&crd::render(crd::SHIPPED_MINOR - 1), false)
    }

    /// The policy alone: the CRD says no more than types and bounds.
    pub(crate) fn policy_alone() -> Self {
        Self::new(&crd::render_without_rules(), true)
    }

    fn new(crd: &Value, with_policy: bool) -> Self {
        let version = KubeVersion::default();
        let policies = if with_policy {
            let policy = Policy::compile(&vap::policy(), version).unwrap();
            let binding = Binding::compile(&vap::binding(vap::Action::Deny)).unwrap();
            Policies::new([Arc::new(policy)], [Arc::new(binding)])
        } else {
            Policies::default()
        };
        Self {
            crd: Crd::compile(crd, version).unwrap(),
            policies,
        }
    }

    /// What each rule may cost at most.
    pub(crate) fn rule_costs(&self) -> Vec<RuleCost> {
        self.resource().rule_costs()
    }

    fn resource(&self) -> &CustomResource {
        self.crd.served(name::VERSION).unwrap()
    }

    /// An object as the server would hold it: pruned, and with its defaults.
    pub(crate) fn stored(&self, mut object: Value) -> Value {
        let unknown = self.resource().decode(&mut object);
        assert_eq!(unknown, Vec::<String>::new());
        object
    }

    /// Why the object would not be created, one text for each error; empty if it would.
    pub(crate) fn create(&self, object: Value) -> Vec<String> {
        let object = self.stored(object);
        let verdict = self.resource().create(&object);
        self.answer(verdict.errors, &object, None)
    }

    /// Why the object would not be updated, one text for each error; empty if it would.
    pub(crate) fn update(&self, old: Value, new: Value) -> Vec<String> {
        let (old, new) = (self.stored(old), self.stored(new));
        let verdict = self.resource().update(&new, &old);
        self.answer(verdict.errors, &new, Some(&old))
    }

    fn answer(
        &self,
        errors: Vec<fivespot_admission::FieldError>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        if errors.is_empty() {
            self.decide(object, old)
                .denials
                .into_iter()
                .map(|denial| denial.message)
                .collect()
        } else {
            errors.iter().map(ToString::to_string).collect()
        }
    }

    /// What the policy says, also to what the CRD refuses.
    pub(crate) fn decide(&self, object: &Value, old: Option<&Value>) -> Decision {
        let operation = match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let request = Request {
            operation,
            old_object: old,
            ..Request::create(KIND, name::PLURAL, object)
        };
        self.policies.decide(&request, &())
    }
}

/// The text of a denial by the shipped policy, as the server words it.
pub(crate) fn denial(object_name: &str, why: &str) -> String {
    format!(
        "{}.{} \"{object_name}\" is forbidden: ValidatingAdmissionPolicy '{}' with binding '{}' \
         denied request: {why}",
        name::PLURAL,
        name::GROUP,
        name::POLICY,
        name::POLICY_BINDING,
    )
}
