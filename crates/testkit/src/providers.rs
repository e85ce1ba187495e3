//! The providers of a real cluster, and their kinds for those that a test names.

use fivespot_install::provider::{self, Provider};
use kubemu_apiserver::AuditEvent;
use serde_json::{Value, json};

/// The providers that create machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Providers {
    /// Providers that behave like k0smotron: the simulator, or the stand-ins of a real cluster.
    #[default]
    StandIn,
    /// Cluster API's kubeadm bootstrap provider, and its in-memory infrastructure provider.
    Real,
}

/// A kind that tests name, and its replacement with real providers.
struct Kind {
    named: &'static str,
    plural: &'static str,
    real: &'static str,
    real_plural: &'static str,
    /// The spec of the real one, as JSON.
    spec: &'static str,
}

static KINDS: [Kind; 2] = [
    Kind {
        named: "K0sWorkerConfig",
        plural: "k0sworkerconfigs",
        real: "KubeadmConfig",
        real_plural: "kubeadmconfigs",
        spec: r#"{"joinConfiguration": {"nodeRegistration": {
            "criSocket": "unix:///var/run/containerd/containerd.sock"}}}"#,
    },
    Kind {
        named: "RemoteMachine",
        plural: "remotemachines",
        real: "DevMachine",
        real_plural: "devmachines",
        spec: r#"{"backend": {"inMemory": {}}}"#,
    },
];

/// The Kubernetes version of a Machine: kubeadm's provider requires one.
const MACHINE_VERSION: &str = "v1.34.0";

impl Providers {
    /// The providers of a running cluster, by the name in its configuration.
    pub(crate) fn called(name: &str) -> Self {
        match name {
            "real" => Self::Real,
            _ => Self::StandIn,
        }
    }

    /// The providers in the operator's roles.
    pub(crate) fn of_roles(self) -> Vec<&'static Provider> {
        let names: &[&str] = match self {
            Self::StandIn => &["k0smotron"],
            Self::Real => &["docker", "kubeadm"],
        };
        names
            .iter()
            .filter_map(|name| provider::named(name))
            .collect()
    }

    /// The cluster's resource for the resource that the test calls `plural`.
    pub(crate) fn plural(self, plural: &str) -> &str {
        self.kind_of(|kind| kind.plural == plural)
            .map_or(plural, |kind| kind.real_plural)
    }

    /// The cluster's kind for the kind that the test calls `named`.
    pub(crate) fn kind(self, named: &str) -> &str {
        self.kind_of(|kind| kind.named == named)
            .map_or(named, |kind| kind.real)
    }

    /// Each actual kind that differs from the test's kind, with the test's kind.
    pub(crate) fn own_kinds(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let kinds = KINDS.iter().filter(move |_| self == Self::Real);
        kinds.map(|kind| (kind.real, kind.named))
    }

    /// A merge patch for the spec of an infrastructure object that selects another host, and
    /// the pointer to the field that it changes.
    pub(crate) fn other_host(self) -> (Value, &'static str) {
        match self {
            Self::StandIn => (json!({"address": "other.example"}), "/address"),
            Self::Real => (
                json!({"backend": {"inMemory": {"vm": {"provisioning": {
                    "startupDuration": "1s",
                }}}}}),
                "/backend/inMemory/vm/provisioning/startupDuration",
            ),
        }
    }

    /// The test's resource for the cluster's resource `plural`.
    fn own_plural(self, plural: &str) -> &str {
        self.kind_of(|kind| kind.real_plural == plural)
            .map_or(plural, |kind| kind.plural)
    }

    /// The requests with the test's names.
    pub(crate) fn own_requests(self, mut requests: Vec<AuditEvent>) -> Vec<AuditEvent> {
        for request in &mut requests {
            request.resource = self.own_plural(&request.resource).to_owned();
        }
        requests
    }

    fn kind_of(self, is_meant: impl Fn(&Kind) -> bool) -> Option<&'static Kind> {
        let mut kinds = KINDS.iter().filter(|_| self == Self::Real);
        kinds.find(|kind| is_meant(kind))
    }

    /// Replaces the kinds that the test names by those of the cluster, anywhere in an object.
    pub(crate) fn translate(self, value: &mut Value) {
        if self == Self::StandIn {
            return;
        }
        if value["kind"] == "ScheduledMachine"
            && let Some(spec) = value["spec"].as_object_mut()
        {
            let template = spec.entry("machineTemplate").or_insert_with(|| json!({}));
            if template["version"].is_null() {
                template["version"] = json!(MACHINE_VERSION);
            }
        }
        self.translate_kinds(value);
    }

    fn translate_kinds(self, value: &mut Value) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.translate_kinds(item);
                }
            }
            Value::Object(fields) => {
                let named = fields.get("kind").and_then(Value::as_str);
                if let Some(kind) =
                    named.and_then(|named| self.kind_of(|kind| kind.named == named))
                {
                    fields.insert("kind".to_owned(), json!(kind.real));
                    if let Some(spec) = fields.get_mut("spec") {
                        *spec = serde_json::from_str(kind.spec).unwrap_or_default();
                    }
                }
                let values = fields.values_mut();
                values.for_each(|field| self.translate_kinds(field));
            }
            Value::String(text) => {
                if let Some(kind) = self.kind_of(|kind| kind.plural == text.as_str()) {
                    kind.real_plural.clone_into(text);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_providers_have_their_own_kinds() {
        let mut machine = crate::scheduled_machine("worker");
        Providers::Real.translate(&mut machine);
        let spec = &machine["spec"];
        assert_eq!(spec["bootstrapSpec"]["kind"], "KubeadmConfig");
        assert_eq!(spec["infrastructureSpec"]["kind"], "DevMachine");
        let memory = json!({"backend": {"inMemory": {}}});
        assert_eq!(spec["infrastructureSpec"]["spec"], memory);
        assert_eq!(spec["machineTemplate"]["version"], MACHINE_VERSION);
        assert_eq!(Providers::Real.kind("RemoteMachine"), "DevMachine");
        assert_eq!(Providers::Real.plural("remotemachines"), "devmachines");
        assert_eq!(Providers::Real.own_plural("devmachines"), "remotemachines");
    }

    #[test]
    fn every_spec_is_json() {
        for kind in &KINDS {
            let spec = serde_json::from_str::<Value>(kind.spec);
            assert!(spec.is_ok_and(|it| it.is_object()), "{}", kind.real);
        }
    }

    #[test]
    fn another_host_differs_at_the_returned_pointer() {
        for providers in [Providers::StandIn, Providers::Real] {
            let mut machine = crate::scheduled_machine("worker");
            providers.translate(&mut machine);
            let (other, at) = providers.other_host();
            let spec = &machine["spec"]["infrastructureSpec"]["spec"];
            assert!(other.pointer(at).is_some(), "{other}");
            assert_ne!(other.pointer(at), spec.pointer(at));
        }
    }

    #[test]
    fn stand_ins_have_the_kinds_that_tests_name() {
        let mut machine = crate::scheduled_machine("worker");
        Providers::StandIn.translate(&mut machine);
        assert_eq!(machine, crate::scheduled_machine("worker"));
        assert_eq!(Providers::StandIn.kind("RemoteMachine"), "RemoteMachine");
        assert_eq!(Providers::StandIn.plural("machines"), "machines");
    }
}
