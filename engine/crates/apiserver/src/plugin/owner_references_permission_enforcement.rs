//! OwnerReferencesPermissionEnforcement: changing owners requires the permission to delete the
//! object; `blockOwnerDeletion` requires the permission to update the owner's finalizers.

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::authorization::{self, Action};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct OwnerReferencesPermissionEnforcement;

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn description(&self) -> &'static str {
        "Rejects changes of owner references by users who may not delete the object, and \
         `blockOwnerDeletion` by users who may not update the finalizers of the owner."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(object) = object else {
            return Ok(());
        };
        let pods = GroupResource::new("", "pods");
        // A write of a pod's status cannot change its owners.
        if attributes.resource().storage == pods && attributes.subresource() == "status" {
            return Ok(());
        }
        let previous = attributes
            .old_object()
            .map(meta::owners)
            .unwrap_or_default();
        let owners = meta::owners(object);
        if owners == previous {
            return Ok(());
        }
        if attributes.operation() != Operation::Create {
            let (allowed, reason) =
                decide(cluster, attributes, &own_deletion(attributes));
            if !allowed {
                return Err(attributes.forbidden(&format!(
                    "cannot set an ownerRef on a resource you can't delete: {reason}, <nil>"
                )));
            }
        }
        check_blocking(cluster, attributes, owners, previous)
    }
}

/// Rejects new `blockOwnerDeletion` references if the user may not update the owner's finalizers.
fn check_blocking(
    cluster: &State,
    attributes: &Attributes<'_>,
    owners: &[Value],
    previous: &[Value],
) -> Result<(), Status> {
    let blocks = |it: &Value| it["blockOwnerDeletion"] == true;
    let is_new = |it: &&Value| {
        let before = previous
            .iter()
            .find(|previous| previous["uid"] == it["uid"]);
        blocks(it) && !before.is_some_and(blocks)
    };
    let new_blocking: Vec<&Value> = owners.iter().filter(is_new).collect();
    let anything = finalizing("*", "*", "*");
    if new_blocking.is_empty() || decide(cluster, attributes, &anything).0 {
        return Ok(());
    }
    for owner in new_blocking {
        let (version, kind) = (pod::text(owner, "apiVersion"), pod::text(owner, "kind"));
        let (group, number) = version.rsplit_once('/').unwrap_or(("", version));
        let Some(resource) = cluster.registry.of_kind(group, number, kind) else {
            return Err(attributes.forbidden(&format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping \
                 for APIVersion {version} Kind {kind}: no matches for kind {kind:?} in version \
                 {version:?}"
            )));
        };
        let name = pod::text(owner, "name");
        let mut action = finalizing(group, &resource.plural, name);
        if resource.namespaced {
            attributes.namespace().clone_into(&mut action.namespace);
        }
        let (allowed, reason) = decide(cluster, attributes, &action);
        if !allowed {
            return Err(attributes.forbidden(&format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
                 can't set finalizers on: {reason}, <nil>"
            )));
        }
    }
    Ok(())
}

fn decide(
    cluster: &State,
    attributes: &Attributes<'_>,
    action: &Action,
) -> (bool, String) {
    let decision = authorization::decide(&cluster.rules, attributes.user(), action);
    (decision.allowed, decision.reason)
}

/// The action of deleting the written object.
fn own_deletion(attributes: &Attributes<'_>) -> Action {
    let resource = attributes.resource();
    Action {
        verb: "delete".to_owned(),
        group: resource.group.clone(),
        resource: resource.plural.clone(),
        subresource: attributes.subresource().to_owned(),
        namespace: attributes.namespace().to_owned(),
        name: attributes.name().to_owned(),
        ..Action::default()
    }
}

/// The action of updating an owner's finalizers.
fn finalizing(group: &str, plural: &str, name: &str) -> Action {
    Action {
        verb: "update".to_owned(),
        group: group.to_owned(),
        resource: plural.to_owned(),
        subresource: "finalizers".to_owned(),
        name: name.to_owned(),
        ..Action::default()
    }
}
