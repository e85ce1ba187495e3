//! From the version in which objects are kept to the one that is asked for, and back.

use std::sync::Arc;

use fivespot_admission::crd::Crd;
use serde_json::Value;

use crate::builtin::convert_event;
use crate::empty;
use crate::meta;
use crate::openapi::shape::Shape;
use crate::resource::{GroupResource, Resource, version_of};
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Object;

/// How the objects of one resource become those of another of its versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversion {
    /// Of a custom resource its definition.
    definition: Option<Arc<Crd>>,
    /// Who converts where that is not the server itself, as `spec.conversion.webhook` says.
    webhook: Option<Arc<Value>>,
}

impl Conversion {
    /// The conversion of `resource` as it is defined now.
    pub(crate) fn of(state: &State, resource: &Resource) -> Self {
        if !resource.custom {
            return Self::default();
        }
        Self {
            definition: state.definitions.get(&resource.storage).cloned(),
            webhook: state.webhooks.get(&resource.storage).cloned(),
        }
    }

    /// An object that is kept, as `resource` shows it.
    ///
    /// # Errors
    /// 500 where a webhook would have to convert it.
    pub(crate) fn shown(
        &self,
        resource: &Resource,
        kept: &Object,
    ) -> Result<Object, Status> {
        let said = kept["apiVersion"].as_str();
        if said.is_some_and(|it| resource.is_served_as(it)) {
            return Ok(kept.clone());
        }
        let object = Value::clone(kept);
        let shown = self.converted(resource, object, &resource.api_version())?;
        Ok(Arc::new(shown))
    }

    /// An object, as `resource` shows it, in the version that is kept.
    ///
    /// # Errors
    /// 500 where a webhook would have to convert it.
    pub(crate) fn kept(
        &self,
        resource: &Resource,
        object: Value,
    ) -> Result<Value, Status> {
        self.converted(resource, object, &resource.stored_as)
    }

    /// An object of `resource` as one of `api_version`. What the schema of that version does not
    /// have is pruned, as in Kubernetes whatever the strategy (`schemaCoercingConverter` in
    /// k8s.io/apiextensions-apiserver).
    ///
    /// # Errors
    /// 500 where a webhook would have to convert it.
    pub(crate) fn converted(
        &self,
        resource: &Resource,
        mut object: Value,
        api_version: &str,
    ) -> Result<Value, Status> {
        if object["apiVersion"] == api_version {
            return Ok(object);
        }
        if resource.storage == GroupResource::new("", "events") {
            let mut event = convert_event(object, api_version);
            let (group, version) =
                api_version.rsplit_once('/').unwrap_or(("", api_version));
            empty::settle(Shape::of_kind(group, version, "Event"), &mut event);
            return Ok(event);
        }
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let (from, to) = (version_of(from).to_owned(), version_of(api_version));
        if from != to && self.webhook.is_some() {
            return Err(not_called(resource, &from));
        }
        meta::fields(&mut object).insert("apiVersion".to_owned(), api_version.into());
        let definition = self.definition.as_ref().filter(|_| from != to);
        if let Some(version) = definition.and_then(|it| it.version(to)) {
            version.schema().prune(&mut object);
        }
        Ok(object)
    }
}

fn not_called(resource: &Resource, from: &str) -> Status {
    let message = format!(
        "conversion webhook for {}/{from}, Kind={} failed: webhooks are not called by this \
         server",
        resource.storage.group, resource.kind
    );
    Status::new(500, Reason::Unknown, message)
}
