//! An API server's admission of the kinds of this group, without the server.

use std::sync::Arc;

use fivespot_api::resource::{Resource, SCHEDULED_MACHINE};
use fivespot_api::{crd, name, vap};
use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{Crd, CustomResource, RuleCost};
use kubemu_admission::policy::{
    Binding, Decision, GroupVersionKind, Operation, Policies, Policy, Request,
};
use serde_json::Value;

/// The kind that is admitted.
pub(crate) const KIND: GroupVersionKind<'static> = GroupVersionKind {
    group: name::GROUP,
    version: name::VERSION,
    kind: name::KIND,
};

/// The layers that are in force, and their kind.
pub(crate) struct Evaluator {
    resource: &'static Resource,
    crd: Crd,
    policies: Policies,
}

impl Evaluator {
    /// CRD and policy of ScheduledMachine as they are shipped.
    pub(crate) fn shipped() -> Self {
        Self::shipped_of(SCHEDULED_MACHINE)
    }

    /// Only the CRD of ScheduledMachine.
    pub(crate) fn crd_alone() -> Self {
        Self::crd_alone_of(SCHEDULED_MACHINE)
    }

    /// Only the policy of ScheduledMachine: the CRD has only types and bounds.
    pub(crate) fn policy_alone() -> Self {
        Self::policy_alone_of(SCHEDULED_MACHINE)
    }

    /// CRD and policy of a kind as they are shipped.
    pub(crate) fn shipped_of(resource: &'static Resource) -> Self {
        let crd = crd::render_of(resource, crd::SHIPPED_MINOR);
        Self::new(resource, &crd, true)
    }

    /// Only the CRD of a kind.
    pub(crate) fn crd_alone_of(resource: &'static Resource) -> Self {
        let crd = crd::render_of(resource, crd::SHIPPED_MINOR);
        Self::new(resource, &crd, false)
    }

    /// Only the CRD of a kind, for servers without `optionalOldSelf`.
    pub(crate) fn old_crd_alone_of(resource: &'static Resource) -> Self {
        let crd = crd::render_of(resource, crd::SHIPPED_MINOR - 1);
        Self::new(resource, &crd, false)
    }

    /// Only the policy of a kind: the CRD has only types and bounds.
    pub(crate) fn policy_alone_of(resource: &'static Resource) -> Self {
        Self::new(resource, &crd::without_rules(resource), true)
    }

    fn new(resource: &'static Resource, crd: &Value, with_policy: bool) -> Self {
        let version = KubeVersion::default();
        let policies = if with_policy {
            let policy = Policy::compile(&vap::policy_of(resource), version).unwrap();
            let binding = vap::binding_of(resource, vap::Action::Deny);
            let binding = Binding::compile(&binding).unwrap();
            Policies::new([Arc::new(policy)], [Arc::new(binding)])
        } else {
            Policies::default()
        };
        Self {
            resource,
            crd: Crd::compile(crd, version).unwrap(),
            policies,
        }
    }

    /// The maximum cost of each rule.
    pub(crate) fn rule_costs(&self) -> Vec<RuleCost> {
        self.definition().rule_costs()
    }

    /// What the rules cost when the object is created, and when its status is written afterwards.
    pub(crate) fn costs(&self, object: Value, status: Value) -> (u64, u64) {
        let mut old = self.stored(object);
        let created = self.definition().create(&old);
        old["status"] = status.clone();
        let mut new = old.clone();
        new["status"]["message"] = "another".into();
        let written = self.definition().update_status(&new, &old);
        assert!(created.errors.is_empty() && written.errors.is_empty());
        (created.cost, written.cost)
    }

    fn definition(&self) -> &CustomResource {
        self.crd.served(name::VERSION).unwrap()
    }

    /// An object as the server would store it: pruned, and with its defaults.
    pub(crate) fn stored(&self, mut object: Value) -> Value {
        let unknown = self.definition().decode(&mut object);
        assert_eq!(unknown, Vec::<String>::new());
        object
    }

    /// Why the object would not be created, one text for each error; empty if it would be.
    pub(crate) fn create(&self, object: Value) -> Vec<String> {
        let object = self.stored(object);
        let result = self.definition().create(&object);
        self.errors(result.errors, &object, None)
    }

    /// Why the object would not be updated, one text for each error; empty if it would be.
    pub(crate) fn update(&self, old: Value, new: Value) -> Vec<String> {
        let (old, new) = (self.stored(old), self.stored(new));
        let result = self.definition().update(&new, &old);
        self.errors(result.errors, &new, Some(&old))
    }

    fn errors(
        &self,
        errors: Vec<kubemu_admission::FieldError>,
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

    /// The decision of the policy, also for an object that the CRD rejects.
    pub(crate) fn decide(&self, object: &Value, old: Option<&Value>) -> Decision {
        let operation = match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let kind = GroupVersionKind {
            group: self.resource.group,
            kind: self.resource.kind,
            ..KIND
        };
        let mut request = Request::create(kind, self.resource.plural, object);
        request.operation = operation;
        request.old_object = old;
        self.policies.decide(&request, &())
    }
}

/// The server's message for a denial by the shipped policy of a kind.
pub(crate) fn denial(resource: &Resource, object_name: &str, why: &str) -> String {
    format!(
        "{}.{} \"{object_name}\" is forbidden: ValidatingAdmissionPolicy '{}' with binding '{}' \
         denied request: {why}",
        resource.plural, resource.group, resource.policy, resource.policy_binding,
    )
}
