//! The controllers that run in the server, one file each.
//!
//! In a real cluster they are clients of the API, each with its own service account. Those that
//! delete or change objects of users are clients here too: their requests pass through admission,
//! so that a policy can reject them.

mod cluster_role_aggregation;
mod definition;
mod disruption;
mod event_expiry;
mod garbage_collector;
mod namespace;
pub(crate) mod namespace_bootstrap;
mod node_taint;
mod policy_type_check;
pub(crate) mod queue;
mod resource_quota;
mod token;
mod volume_protection;

use http::Method;
use serde_json::{Value, json};

use crate::call::{Call, Payload};
use crate::index::Location;
use crate::meta;
use crate::query::Query;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;
use crate::store::{Bucket, Key};
use crate::user::User;
use crate::verb;

/// A controller of kube-controller-manager as a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Controller {
    /// Counts the pods of disruption budgets.
    Disruption,
    /// Deletes objects that have lost their owners.
    GarbageCollector,
    /// Empties namespaces that are being deleted.
    Namespaces,
    /// Removes the taints of nodes that are ready.
    Nodes,
    /// Removes the finalizer of deleted claims that no pod uses.
    Claims,
    /// Removes the finalizer of deleted volumes that no claim uses.
    Volumes,
    /// Counts the usage that quotas limit.
    Quotas,
    /// Fills the secrets that hold tokens of service accounts.
    Tokens,
}

impl Controller {
    /// Its service account, as with `--use-service-account-credentials`.
    fn user(self) -> User {
        let name = match self {
            Self::Disruption => "disruption-controller",
            Self::GarbageCollector => "generic-garbage-collector",
            Self::Namespaces => "namespace-controller",
            Self::Nodes => "node-controller",
            Self::Claims => "pvc-protection-controller",
            Self::Volumes => "pv-protection-controller",
            Self::Quotas => "resourcequota-controller",
            Self::Tokens => "tokens-controller",
        };
        User::service_account("kube-system", name)
    }

    /// Deletes one object with `DeleteOptions`.
    ///
    /// # Errors
    /// The rejection.
    pub(crate) fn delete(
        self,
        state: &mut State,
        location: &Location,
        options: Value,
    ) -> Result<(), Status> {
        let target = target(state, location)?;
        self.perform(state, &target, Method::DELETE, options)
    }

    /// Deletes every object of a resource in a namespace, in the background.
    ///
    /// # Errors
    /// The first rejection.
    pub(crate) fn delete_all(
        self,
        state: &mut State,
        bucket: Bucket,
        namespace: &str,
    ) -> Result<(), Status> {
        let target = target(state, &Location::new(bucket, Key::new(namespace, "")))?;
        let options = json!({"propagationPolicy": "Background"});
        self.perform(state, &target, Method::DELETE, options)
    }

    /// Changes one object by a merge patch.
    ///
    /// # Errors
    /// The rejection.
    pub(crate) fn patch(
        self,
        state: &mut State,
        location: &Location,
        patch: Value,
    ) -> Result<(), Status> {
        let target = target(state, location)?;
        self.perform(state, &target, Method::PATCH, patch)
    }

    /// Replaces the status of one object.
    ///
    /// # Errors
    /// The rejection.
    pub(crate) fn update_status(
        self,
        state: &mut State,
        bucket: Bucket,
        object: Value,
    ) -> Result<(), Status> {
        let mut target = target(state, &location_of(bucket, &object))?;
        "status".clone_into(&mut target.subresource);
        self.perform(state, &target, Method::PUT, object)
    }

    /// Replaces the finalizers in the spec of a namespace.
    ///
    /// # Errors
    /// The rejection.
    pub(crate) fn finalize(
        self,
        state: &mut State,
        namespace: Value,
    ) -> Result<(), Status> {
        let bucket = state.buckets.namespaces;
        let mut target = target(state, &location_of(bucket, &namespace))?;
        "finalize".clone_into(&mut target.subresource);
        self.perform(state, &target, Method::PUT, namespace)
    }

    fn perform(
        self,
        state: &mut State,
        target: &Target,
        method: Method,
        body: Value,
    ) -> Result<(), Status> {
        let content_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let call = Call {
            method,
            path: String::new(),
            query: Query::default(),
            accept: String::new(),
            content_type: content_type.to_owned(),
            agent: "kube-controller-manager".to_owned(),
            user: self.user(),
            impersonator: None,
            body: Payload::Json(body),
            holds_clock: false,
        };
        verb::perform(state, &call, target).map(|_| ())
    }
}

fn location_of(bucket: Bucket, object: &Value) -> Location {
    let key = Key::new(meta::namespace(object), meta::name(object));
    Location::new(bucket, key)
}

/// One object in the version in which it is stored; with an empty name, the collection.
fn target(state: &State, location: &Location) -> Result<Target, Status> {
    let resource = state.stored_resource(location.bucket);
    let resource = resource.ok_or_else(Status::no_such_resource)?;
    Ok(Target {
        resource: resource.clone(),
        namespace: location.key.namespace.to_string(),
        name: location.key.name.to_string(),
        subresource: String::new(),
    })
}
