//! Provider objects with a spec so large that it was left out when they were planned.

use std::sync::Arc;

use fivespot_api::name;
use fivespot_runtime::Key;
use fivespot_runtime::http::{Address, ApiClient};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::interrupt::superseded;
use crate::kind::{scheduled_machine, scheduled_machine_class};
use crate::observe::projection::CachedKind;
use crate::provider_specs;

/// A provider object to create, whose spec was omitted when it was planned.
pub(crate) struct LargeObject<'a> {
    pub(crate) api: &'a ApiClient,
    /// The address of the collection.
    pub(crate) at: &'a Address<'a>,
    /// The object without its spec.
    pub(crate) object: &'a Value,
    /// The field of the ScheduledMachine that has the spec.
    pub(crate) field: &'static str,
}

impl LargeObject<'_> {
    /// Creates the object with the spec of the stored ScheduledMachine, or of its class. Few such objects are in
    /// memory at a time.
    ///
    /// # Errors
    /// Also a conflict if the ScheduledMachine is not the one that was planned from any more, or is
    /// to be terminated before it is its turn.
    pub(crate) async fn create(
        &self,
        context: &Arc<Context>,
        key: &Key,
    ) -> kube::Result<Value> {
        let _turn = tokio::select! {
            biased;
            turn = context.large_creates.turn(&key.namespace) => turn,
            () = superseded(context, key) => return Err(changed()),
        };
        let resource = scheduled_machine();
        let stored = Address {
            resource: &resource,
            namespace: Some(&key.namespace),
            name: &key.name,
            projection: Some(&CachedKind::ScheduledMachine),
        };
        let annotations = &self.object["metadata"]["annotations"];
        let hash = annotations[name::SPEC_HASH_ANNOTATION].as_str();
        let mut found = context.api.get_parsed(&stored).await?;
        let mut patch = None;
        let class = found
            .as_ref()
            .map(|of| of["spec"]["classRef"]["name"].clone());
        if let Some(class) = class.as_ref().and_then(Value::as_str) {
            let resource = scheduled_machine_class();
            let stored = Address {
                resource: &resource,
                namespace: None,
                name: class,
                projection: Some(&CachedKind::Class),
            };
            let host = found.map(|of| of["status"]["host"].clone());
            found = context.api.get_parsed(&stored).await?;
            if let Some(Value::String(host)) = host {
                let hosts = found.as_ref().map(|class| class["spec"]["hosts"].clone());
                let found = hosts.as_ref().and_then(|hosts| patch_of(hosts, &host));
                patch = Some(found.ok_or_else(changed)?);
            }
        }
        let spec = match found {
            Some(stored) => {
                provider_specs::text(stored, self.field, patch.as_ref(), hash)
            }
            None => None,
        };
        let spec = spec.ok_or_else(changed)?;
        self.api
            .create_text(self.at, provider_specs::with(self.object, &spec))
            .await
    }
}

/// The merge patch of a host among those of a class.
fn patch_of(hosts: &Value, name: &str) -> Option<Map<String, Value>> {
    let host = hosts.as_array()?.iter().find(|host| host["name"] == name)?;
    match &host["infrastructure"] {
        Value::Object(patch) => Some(patch.clone()),
        _ => Some(Map::new()),
    }
}

/// The conflict error of an API server: the ScheduledMachine has changed since the plan.
fn changed() -> kube::Error {
    let status =
        kube::core::Status::failure("the ScheduledMachine has changed", "Conflict");
    kube::Error::Api(Box::new(status.with_code(409)))
}
