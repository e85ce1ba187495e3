//! NamespaceLifecycle: rejects new objects in namespaces that do not exist or are being deleted,
//! and the deletion of system namespaces.

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::Key;

/// The plugin.
#[derive(Debug)]
pub(super) struct NamespaceLifecycle;

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn description(&self) -> &'static str {
        "Rejects new objects in a namespace that does not exist or is being deleted, and \
         the deletion of `default`, `kube-system` and `kube-public`."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        _object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let operation = attributes.operation();
        if attributes.resource().storage == GroupResource::new("", "namespaces") {
            if operation == Operation::Delete && IMMORTAL.contains(&attributes.name()) {
                return Err(attributes.forbidden("this namespace may not be deleted"));
            }
            return Ok(());
        }
        if operation != Operation::Create || attributes.namespace().is_empty() {
            return Ok(());
        }
        let name = attributes.namespace();
        let key = Key::new("", name);
        match cluster.get(cluster.buckets.namespaces, &key) {
            None => Err(missing(name)),
            Some(it) if meta::is_deleting(it) => Err(terminating(attributes)),
            Some(_) => Ok(()),
        }
    }
}

/// 404 for a namespace.
pub(super) fn missing(name: &str) -> Status {
    let message = format!("namespaces \"{name}\" not found");
    Status::new(404, Reason::NotFound, message).with_details(Details {
        name: name.to_owned(),
        kind: "namespaces".to_owned(),
        ..Details::default()
    })
}

fn terminating(attributes: &Attributes<'_>) -> Status {
    let name = attributes.namespace();
    let why = format!(
        "unable to create new content in namespace {name} because it is being terminated"
    );
    let mut refused = attributes.forbidden(&why);
    let message = format!("namespace {name} is being terminated");
    let cause = Cause::new("NamespaceTerminating", "metadata.namespace", message);
    if let Some(details) = &mut refused.details {
        details.causes = vec![cause];
    }
    refused
}
