//! NodeRestriction: limits the objects that a kubelet may change
//! (plugin/pkg/admission/noderestriction).

mod audience;
mod label;
mod reference;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::identity::signing_request::SigningRequest;
use crate::kind::pod::annotation::MIRROR;
use crate::meta;
use crate::resource::{GroupResource, Resource};
use crate::state::State;
use crate::status::Status;
use crate::store::Object;

/// The plugin.
#[derive(Debug)]
pub(super) struct NodeRestriction;

/// The group of kubelets, and the prefix of their user names.
const GROUP: &str = "system:nodes";
const PREFIX: &str = "system:node:";
/// The namespace of the nodes' Leases.
const LEASES: &str = "kube-node-lease";
/// The signers of the certificates of kubelets.
const KUBELET_SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn description(&self) -> &'static str {
        "Limits users `system:node:<name>` of the group `system:nodes` to their own \
         Node, Lease, mirror pods, node certificates and tokens for the audiences of their \
         pods, and to the labels that kubelets may set."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let Some(node) = node_of(attributes)? else {
            return Ok(());
        };
        let check = Check {
            cluster,
            attributes,
            node,
        };
        check
            .admit(object.as_deref())
            .map_err(Refusal::status(attributes))
    }
}

/// The node of the requesting kubelet; `None` for other users.
///
/// # Errors
/// 403 for a user in the kubelets' group whose name is not that of a kubelet.
fn node_of<'a>(attributes: &Attributes<'a>) -> Result<Option<&'a str>, Status> {
    let user = attributes.user();
    // A user outside the group is not a node, whatever the name (`defaultNodeIdentifier`).
    match user.name.strip_prefix(PREFIX) {
        Some(node) if user.is_in(GROUP) && !node.is_empty() => Ok(Some(node)),
        Some(_) if user.is_in(GROUP) => {
            let name = &user.name;
            Err(attributes
                .forbidden(&format!("could not determine node from user {name:?}")))
        }
        _ => Ok(None),
    }
}

/// Why a request of a kubelet is rejected.
enum Refusal {
    Forbidden(String),
    Missing(Status),
}

impl Refusal {
    fn status(attributes: &Attributes<'_>) -> impl Fn(Self) -> Status {
        |refusal| match refusal {
            Self::Forbidden(why) => attributes.forbidden(&why),
            Self::Missing(status) => status,
        }
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Forbidden(why)
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Forbidden(why.into()))
}

/// A request of a kubelet.
struct Check<'a> {
    cluster: &'a State,
    attributes: &'a Attributes<'a>,
    node: &'a str,
}

impl Check<'_> {
    fn admit(&self, object: Option<&Value>) -> Result<(), Refusal> {
        let storage = &self.attributes.resource().storage;
        let is =
            |group: &str, plural: &str| *storage == GroupResource::new(group, plural);
        if is("", "pods") {
            self.pod(object)
        } else if is("", "nodes") {
            self.own_node(object)
        } else if is("", "persistentvolumeclaims") {
            self.claim(object)
        } else if is("coordination.k8s.io", "leases") {
            self.lease(object)
        } else if is("", "serviceaccounts") {
            self.service_account(object)
        } else if is("certificates.k8s.io", "certificatesigningrequests") {
            self.certificate_request(object)
        } else {
            Ok(())
        }
    }

    fn pod(&self, object: Option<&Value>) -> Result<(), Refusal> {
        let (node, operation) = (self.node, self.attributes.operation());
        match (self.attributes.subresource(), operation) {
            ("", Operation::Create) => match object {
                Some(pod) => self.mirror_pod(pod),
                None => Ok(()),
            },
            ("", Operation::Delete) => self.own_pod(&format!(
                "node {node:?} can only delete pods with spec.nodeName set to itself"
            )),
            ("", _) => refuse(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                operation.as_str()
            )),
            ("status", _) => self.pod_status(object),
            ("eviction", _) => self.own_pod(&format!(
                "node {node} can only evict pods with spec.nodeName set to itself"
            )),
            (other, _) => refuse(format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            )),
        }
    }

    fn find_pod(&self, name: &str) -> Result<Object, Refusal> {
        let pods = GroupResource::new("", "pods");
        let found = self
            .cluster
            .object(&pods, self.attributes.namespace(), name);
        // The lister of Kubernetes has a singular name in its errors.
        let lister = || Resource::new("", "v1", "Pod", "pod");
        found.ok_or_else(|| Refusal::Missing(Status::not_found(&lister(), name)))
    }

    /// Rejects the request with `why` unless the pod runs on the node.
    fn own_pod(&self, why: &str) -> Result<(), Refusal> {
        let pod = self.find_pod(self.attributes.name())?;
        if pod["spec"]["nodeName"] == self.node {
            return Ok(());
        }
        refuse(why)
    }

    fn pod_status(&self, object: Option<&Value>) -> Result<(), Refusal> {
        let (Some(pod), Some(old)) = (object, self.attributes.old_object()) else {
            return Ok(());
        };
        let node = self.node;
        if old["spec"]["nodeName"] != node {
            return refuse(format!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to \
                 itself"
            ));
        }
        let has_same_labels =
            meta::labels(pod)
                .into_iter()
                .flatten()
                .eq(meta::labels(old).into_iter().flatten());
        if !has_same_labels {
            return refuse(format!(
                "node {node:?} cannot update labels through pod status"
            ));
        }
        if pod["status"]["resourceClaimStatuses"]
            != old["status"]["resourceClaimStatuses"]
        {
            return refuse(format!(
                "node {node:?} cannot update resource claim statues"
            ));
        }
        Ok(())
    }

    fn mirror_pod(&self, pod: &Value) -> Result<(), Refusal> {
        let node = self.node;
        if !pod["metadata"]["annotations"][MIRROR].is_string() {
            return refuse(format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror \
                 pods"
            ));
        }
        if pod["spec"]["nodeName"] != node {
            return refuse(format!(
                "node {node:?} can only create pods with spec.nodeName set to itself"
            ));
        }
        let [owner] = meta::owners(pod) else {
            let single = if meta::owners(pod).is_empty() {
                "an"
            } else {
                "a single"
            };
            return refuse(format!(
                "node {node:?} can only create pods with {single} owner reference set to itself"
            ));
        };
        self.owner(owner)?;
        match reference::find(&pod["spec"]) {
            Some(what) => refuse(format!(
                "node {node:?} can not create pods that reference {what}"
            )),
            None => Ok(()),
        }
    }

    /// Checks that the owner of a mirror pod is its node.
    fn owner(&self, owner: &Value) -> Result<(), Refusal> {
        let node = self.node;
        let is_node = owner["apiVersion"] == "v1" && owner["kind"] == "Node";
        if !is_node || owner["name"] != node {
            return refuse(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        if owner["controller"] != true {
            return refuse(format!(
                "node {node:?} can only create pods with a controller owner reference set to \
                 itself"
            ));
        }
        if owner["blockOwnerDeletion"] == true {
            return refuse(format!(
                "node {node:?} must not set blockOwnerDeletion on an owner reference"
            ));
        }
        let nodes = GroupResource::new("", "nodes");
        let Some(found) = self.cluster.object(&nodes, "", node) else {
            let lister = Resource::new("", "v1", "Node", "node");
            return Err(Refusal::Missing(Status::not_found(&lister, node)));
        };
        let value = pod::text(owner, "uid");
        if value == meta::uid(&found) {
            return Ok(());
        }
        refuse(format!(
            "node {node} UID mismatch: expected {value} got {}",
            meta::uid(&found)
        ))
    }

    fn own_node(&self, object: Option<&Value>) -> Result<(), Refusal> {
        let (node, name) = (self.node, self.attributes.name());
        if name != node {
            return refuse(format!(
                "node {node:?} is not allowed to modify node {name:?}"
            ));
        }
        let Some(object) = object else {
            return Ok(());
        };
        let Some(old) = self.attributes.old_object() else {
            let labels = label::forbidden(object, &Value::Null);
            if !labels.is_empty() {
                return refuse(format!(
                    "node {node:?} is not allowed to set the following labels: {labels}"
                ));
            }
            return Ok(());
        };
        let list = |it: &Value| pod::list(&it["spec"], "taints").to_vec();
        if list(object) != list(old) {
            return refuse(format!("node {node:?} is not allowed to modify taints"));
        }
        if meta::owners(object) != meta::owners(old) {
            return refuse(format!(
                "node {node:?} is not allowed to modify ownerReferences"
            ));
        }
        let labels = label::forbidden(object, old);
        if labels.is_empty() {
            return Ok(());
        }
        refuse(format!("is not allowed to modify labels: {labels}"))
    }

    fn claim(&self, object: Option<&Value>) -> Result<(), Refusal> {
        if self.attributes.subresource() != "status" {
            return refuse("may only update PVC status");
        }
        let (Some(claim), Some(old)) = (object, self.attributes.old_object()) else {
            return Ok(());
        };
        let fixed = |claim: &Value| {
            let mut claim = claim.clone();
            for field in ["resourceVersion", "managedFields"] {
                meta::clear(&mut claim, field);
            }
            if let Some(status) = claim["status"].as_object_mut() {
                status.retain(|field, _| {
                    let own = [
                        "capacity",
                        "conditions",
                        "allocatedResources",
                        "allocatedResourceStatuses",
                    ];
                    !own.contains(&field.as_str())
                });
            }
            claim
        };
        if fixed(claim) == fixed(old) {
            return Ok(());
        }
        let node = self.node;
        refuse(format!(
            "node {node:?} is not allowed to update fields other than status.quantity and \
             status.conditions"
        ))
    }

    fn lease(&self, object: Option<&Value>) -> Result<(), Refusal> {
        if self.attributes.namespace() != LEASES {
            return refuse(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        let name = object.map_or(self.attributes.name(), |it| meta::name(it));
        if name == self.node || self.attributes.name() == self.node {
            return Ok(());
        }
        refuse("can only access node lease with the same name as the requesting node")
    }

    fn service_account(&self, object: Option<&Value>) -> Result<(), Refusal> {
        let is_token = self.attributes.operation() == Operation::Create
            && self.attributes.subresource() == "token";
        match object.filter(|_| is_token) {
            Some(request) => self.token(request),
            None => Ok(()),
        }
    }

    /// Checks the user name in a new request for a node certificate (`admitCSR`).
    fn certificate_request(&self, object: Option<&Value>) -> Result<(), Refusal> {
        let is_new = self.attributes.operation() == Operation::Create;
        let Some(object) = object.filter(|_| is_new) else {
            return Ok(());
        };
        let spec = &object["spec"];
        // The feature gate AllowInsecureKubeletCertificateSigningRequests is off since 1.31.
        let is_of_kubelet = KUBELET_SIGNERS.contains(&pod::text(spec, "signerName"));
        if !is_of_kubelet || !self.cluster.kube().is_at_least(31) {
            return Ok(());
        }
        let bytes = STANDARD.decode(pod::text(spec, "request"));
        let request = SigningRequest::read(&bytes.unwrap_or_default());
        let request = request.map_err(|why| format!("unable to parse csr: {why}"))?;
        let own = format!("{PREFIX}{}", self.node);
        if request.common_name == own {
            return Ok(());
        }
        refuse(format!("can only create a node CSR with CN={own}"))
    }

    fn token(&self, request: &Value) -> Result<(), Refusal> {
        let bound = &request["spec"]["boundObjectRef"];
        let name = pod::text(bound, "name");
        let is_pod = bound["apiVersion"] == "v1" && bound["kind"] == "Pod";
        if !is_pod || name.is_empty() {
            return refuse("node requested token not bound to a pod");
        }
        let uid = pod::text(bound, "uid");
        if uid.is_empty() {
            return refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.find_pod(name)?;
        if uid != meta::uid(&pod) {
            return refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in \
                 record. The object might have been deleted and then recreated"
            ));
        }
        if pod["spec"]["nodeName"] != self.node {
            return refuse(
                "node requested token bound to a pod scheduled on a different node",
            );
        }
        // The feature gate ServiceAccountNodeAudienceRestriction is on since 1.33.
        if self.cluster.kube().is_at_least(33) {
            let requested = pod::list(&request["spec"], "audiences");
            audience::check(self, &pod, requested)?;
        }
        Ok(())
    }
}
