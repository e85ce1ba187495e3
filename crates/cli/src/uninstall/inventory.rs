//! The objects of 5-Spot in a cluster.

use std::io::Write;

use fivespot_api::{RESOURCES, manifest, name, vap};
use serde_json::Value;

use super::{RemovalOptions, namespace};
use crate::Failure;
use crate::check::{Operator, is_lease_fresh};
use crate::reader::Reader;
use crate::requests::Response;

/// An object, with its kind and name and its API path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    kind: &'static str,
    namespace: String,
    pub(super) name: String,
    pub(super) path: String,
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// A Helm release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HelmRelease {
    name: String,
    namespace: String,
}

impl HelmRelease {
    /// The command that removes it.
    pub(super) fn command(&self) -> String {
        format!("helm uninstall {} -n {}", self.name, self.namespace)
    }
}

/// The installed objects, in the order of their removal.
#[derive(Clone, Debug, Default)]
pub(super) struct Inventory {
    /// The ScheduledMachineSets and ScheduledMachines, sets first: a set would create its machines
    /// anew.
    pub(super) machines: Vec<Object>,
    /// The objects of the other CRDs. A machine shuts down as its class and its schedule say.
    pub(super) others: Vec<Object>,
    /// Whether an operator holds its Lease.
    pub(super) has_running_operator: bool,
    /// The active components: the webhook configuration, then the Deployments and DaemonSets.
    pub(super) running: Vec<Object>,
    /// The objects that the components need.
    pub(super) rest: Vec<Object>,
    /// The namespaces that the manifests created, each with the reason if it must be kept.
    pub(super) namespaces: Vec<(Object, Option<String>)>,
    /// The Helm releases. Their objects are removed by Helm.
    pub(super) releases: Vec<HelmRelease>,
    /// The CRDs.
    pub(super) crds: Vec<Object>,
}

/// A kind of objects that belong to 5-Spot.
struct Kind<'a> {
    name: &'static str,
    group: &'a str,
    plural: &'static str,
}

const fn kind(
    kind: &'static str,
    group: &'static str,
    plural: &'static str,
) -> Kind<'static> {
    Kind {
        name: kind,
        group,
        plural,
    }
}

impl Kind<'_> {
    fn object(&self, object: &Value) -> Object {
        let (namespace, name) = identity(object);
        Object {
            kind: self.name,
            path: self.path(&namespace, &name),
            namespace,
            name,
        }
    }

    /// The path of all objects.
    fn list_path(&self) -> String {
        format!("{}/{}", self.group, self.plural)
    }

    /// The path of an object; `namespace` is empty for a cluster-scoped one.
    fn path(&self, namespace: &str, name: &str) -> String {
        let (group, plural) = (self.group, self.plural);
        match namespace {
            "" => format!("{}/{name}", self.list_path()),
            _ => format!("{group}/namespaces/{namespace}/{plural}/{name}"),
        }
    }
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const APPS: &str = "/apis/apps/v1";
const MONITORING: &str = "/apis/monitoring.coreos.com/v1";
const CERT_MANAGER: &str = "/apis/cert-manager.io/v1";

/// The webhook configuration first: after it is deleted, the API server does not call the webhook,
/// which can then be removed.
const RUNNING: [Kind<'static>; 3] = [
    kind(
        "ValidatingWebhookConfiguration",
        ADMISSION,
        "validatingwebhookconfigurations",
    ),
    kind("Deployment", APPS, "deployments"),
    kind("DaemonSet", APPS, "daemonsets"),
];

/// Bindings come before the objects that they bind.
const REST: [Kind<'static>; 17] = [
    kind(
        "PodDisruptionBudget",
        "/apis/policy/v1",
        "poddisruptionbudgets",
    ),
    kind(
        "NetworkPolicy",
        "/apis/networking.k8s.io/v1",
        "networkpolicies",
    ),
    kind("Service", "/api/v1", "services"),
    kind("RoleBinding", RBAC, "rolebindings"),
    kind("ClusterRoleBinding", RBAC, "clusterrolebindings"),
    kind("Role", RBAC, "roles"),
    kind("ClusterRole", RBAC, "clusterroles"),
    kind("ServiceAccount", "/api/v1", "serviceaccounts"),
    kind("Secret", "/api/v1", "secrets"),
    kind(BINDING, ADMISSION, "validatingadmissionpolicybindings"),
    kind(POLICY, ADMISSION, "validatingadmissionpolicies"),
    kind("ConfigMap", "/api/v1", "configmaps"),
    kind("ServiceMonitor", MONITORING, "servicemonitors"),
    kind("PodMonitor", MONITORING, "podmonitors"),
    kind("PrometheusRule", MONITORING, "prometheusrules"),
    kind("Certificate", CERT_MANAGER, "certificates"),
    kind("Issuer", CERT_MANAGER, "issuers"),
];

const NAMESPACE: Kind<'static> = kind("Namespace", "/api/v1", "namespaces");

const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LABEL: &str = "app.kubernetes.io/name=5spot";

impl Inventory {
    /// Reads all objects.
    ///
    /// # Errors
    /// The server refuses to list a kind.
    pub(super) async fn read(
        reader: &Reader,
        operator: &Operator,
        options: RemovalOptions,
    ) -> Result<Self, Failure> {
        let found = Self::found(reader, operator, options).await;
        found.map_err(|why| {
            Failure::new("reading what is installed", why)
                .remedy("run it as a cluster administrator")
        })
    }

    async fn found(
        reader: &Reader,
        operator: &Operator,
        options: RemovalOptions,
    ) -> Result<Self, String> {
        let mut inventory = Self {
            has_running_operator: is_lease_fresh(reader, operator).await,
            ..Self::default()
        };
        inventory.crds(reader).await?;
        let unlabelled = unlabelled();
        for kind in &RUNNING {
            let found = inventory.installed(reader, kind, &unlabelled).await?;
            inventory.running.extend(found);
        }
        for kind in &REST {
            let found = inventory.installed(reader, kind, &unlabelled).await?;
            inventory.rest.extend(found);
        }
        for found in inventory.installed(reader, &NAMESPACE, &unlabelled).await? {
            if namespace::is_created(&found.name) {
                let reason = namespace::why_kept(reader, &found.name, options).await;
                inventory.namespaces.push((found, reason));
            }
        }
        inventory.releases.sort();
        inventory.releases.dedup();
        Ok(inventory)
    }

    /// Reads the installed CRDs and their objects.
    async fn crds(&mut self, reader: &Reader) -> Result<(), String> {
        for resource in &RESOURCES {
            let name = resource.definition_name();
            let path = format!("{CRDS}/{name}");
            let Response::Found(_) = reader.requests.get(&path).await else {
                continue;
            };
            self.crds.push(Object {
                kind: "CustomResourceDefinition",
                namespace: String::new(),
                name,
                path,
            });
            let root = format!("/apis/{}", resource.api_version());
            let kind = Kind {
                name: resource.kind,
                group: &root,
                plural: resource.plural,
            };
            let found = reader.requests.list(&kind.list_path()).await?;
            let found = found.iter().map(|it| kind.object(it));
            if [name::KIND, name::SET_KIND].contains(&resource.kind) {
                self.machines.extend(found);
            } else {
                self.others.extend(found);
            }
        }
        self.machines.sort_by_key(|it| it.kind != name::SET_KIND);
        Ok(())
    }

    /// The objects of the CRDs, in the order of their removal.
    pub(super) fn custom(&self) -> impl Iterator<Item = &Object> {
        self.machines.iter().chain(&self.others)
    }

    /// The number of objects of a kind among those of the CRDs.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.custom().filter(|it| it.kind == kind).count()
    }

    /// How many objects of each CRD there are: `2 scheduledmachines with their machines, 1
    /// schedulecalendar`. `None` without any.
    pub(super) fn counted(&self, options: RemovalOptions) -> Option<String> {
        let is_removed = !options.keeps_machines;
        let counted = RESOURCES.iter().filter_map(|it| {
            let text = match (self.count(it.kind), it.kind) {
                (0, _) => return None,
                (1, name::KIND) if is_removed => {
                    format!("1 {} with its machine", it.singular)
                }
                (count, name::KIND) if is_removed => {
                    format!("{count} {} with their machines", it.plural)
                }
                (1, _) => format!("1 {}", it.singular),
                (count, _) => format!("{count} {}", it.plural),
            };
            Some(text)
        });
        let counted: Vec<String> = counted.collect();
        (!counted.is_empty()).then(|| counted.join(", "))
    }

    /// The installed objects of a kind, with the label or among the unlabelled, except those of Helm.
    async fn installed(
        &mut self,
        reader: &Reader,
        kind: &Kind<'_>,
        unlabelled: &[Value],
    ) -> Result<Vec<Object>, String> {
        let path = kind.list_path();
        let mut found = reader.requests.list_where(&path, LABEL).await?;
        for document in unlabelled.iter().filter(|of| of["kind"] == kind.name) {
            let (namespace, name) = identity(document);
            if let Response::Found(object) =
                reader.requests.get(&kind.path(&namespace, &name)).await
            {
                found.retain(|it| identity(it) != (namespace.clone(), name.clone()));
                found.push(object);
            }
        }
        let mut objects = Vec::new();
        for object in found {
            let annotation = |key: &str| {
                object["metadata"]["annotations"][key]
                    .as_str()
                    .map(str::to_owned)
            };
            if let (Some(name), Some(namespace)) = (
                annotation("meta.helm.sh/release-name"),
                annotation("meta.helm.sh/release-namespace"),
            ) {
                self.releases.push(HelmRelease { name, namespace });
                continue;
            }
            objects.push(kind.object(&object));
        }
        Ok(objects)
    }

    /// Prints the steps and the objects of each.
    pub(super) fn describe(
        &self,
        options: RemovalOptions,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut number = 0;
        let mut step = |title: &str, objects: &[Object]| -> Result<(), Failure> {
            if objects.is_empty() {
                return Ok(());
            }
            number += 1;
            writeln!(out, "{number}. {title}")?;
            for object in objects {
                writeln!(out, "   {object}")?;
            }
            Ok(())
        };
        if !options.keeps_machines {
            let title = if self.has_running_operator {
                "Delete, and wait until the operator has removed their machines:"
            } else {
                "Delete. No operator runs that could remove their machines; start it first:"
            };
            step(title, &self.machines)?;
            step("Delete, and wait until they are gone:", &self.others)?;
        }
        step("Delete the workloads:", &self.running)?;
        if options.releases_machines() {
            let all: Vec<Object> = self.custom().cloned().collect();
            step("Delete without their machines, which stay:", &all)?;
        }
        step("Delete the objects that they needed:", &self.rest)?;
        let deleted = self
            .namespaces
            .iter()
            .filter(|(_, reason)| reason.is_none());
        let deleted: Vec<Object> = deleted.map(|(it, _)| it.clone()).collect();
        step(
            "Delete the namespaces that were created for them:",
            &deleted,
        )?;
        if options.deletes_crds {
            step("Delete:", &self.crds)?;
        }
        for release in &self.releases {
            writeln!(out, "Then run: {}", release.command())?;
        }
        for (namespace, reason) in &self.namespaces {
            if let Some(reason) = reason {
                writeln!(out, "Kept: {namespace} ({reason})")?;
            }
        }
        if !options.deletes_crds {
            self.describe_retained(out)?;
        }
        Ok(())
    }

    /// Prints the CRDs that are kept.
    pub(super) fn describe_retained(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for crd in &self.crds {
            writeln!(out, "Kept: {crd} (--delete-crds deletes it)")?;
        }
        Ok(())
    }
}

/// The installed objects whose manifests do not have the label: the policies with their bindings,
/// and the parameters with their namespace.
fn unlabelled() -> Vec<Value> {
    let mut all = manifest::policies();
    all.extend(manifest::bindings(vap::Action::Deny));
    all.extend(vap::class::policies());
    all.extend([vap::params::allowlist(), vap::params::namespace()]);
    all
}

/// The namespace and the name of an object.
fn identity(object: &Value) -> (String, String) {
    (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

fn text(object: &Value, pointer: &str) -> String {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}
