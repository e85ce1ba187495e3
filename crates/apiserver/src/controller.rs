//! Requests of the controllers that live in the server.
//!
//! In a real cluster they are clients of its API, each with a service account of its own. Their
//! requests pass admission here as well, so that a policy can refuse them.

use http::Method;
use serde_json::{Value, json};

use crate::call::{Call, Payload};
use crate::query::Query;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;
use crate::store::{Key, Shelf};
use crate::user::User;
use crate::verb;

/// A controller of kube-controller-manager.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Controller {
    /// Deletes what has lost its owners.
    GarbageCollector,
    /// Empties namespaces that are being deleted.
    Namespaces,
    /// Fills the secrets that hold tokens of service accounts.
    Tokens,
}

impl Controller {
    /// Its service account, as `--use-service-account-credentials` has it.
    fn user(self) -> User {
        let name = match self {
            Self::GarbageCollector => "generic-garbage-collector",
            Self::Namespaces => "namespace-controller",
            Self::Tokens => "tokens-controller",
        };
        User::service_account("kube-system", name)
    }

    /// Deletes one object with `DeleteOptions`.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn delete(
        self,
        state: &mut State,
        (shelf, key): (Shelf, &Key),
        options: Value,
    ) -> Result<(), Status> {
        let target = target(state, shelf, key)?;
        self.perform(state, &target, Method::DELETE, options)
    }

    /// Deletes every object of a resource in a namespace, in the background.
    ///
    /// # Errors
    /// Why the first that is refused is.
    pub(crate) fn delete_all(
        self,
        state: &mut State,
        shelf: Shelf,
        namespace: &str,
    ) -> Result<(), Status> {
        let target = target(state, shelf, &Key::new(namespace, ""))?;
        let options = json!({"propagationPolicy": "Background"});
        self.perform(state, &target, Method::DELETE, options)
    }

    /// Changes one object by a merge patch.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn patch(
        self,
        state: &mut State,
        (shelf, key): (Shelf, &Key),
        patch: Value,
    ) -> Result<(), Status> {
        let target = target(state, shelf, key)?;
        self.perform(state, &target, Method::PATCH, patch)
    }

    /// Replaces a subresource of one object.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn replace(
        self,
        state: &mut State,
        (shelf, subresource): (Shelf, &str),
        object: Value,
    ) -> Result<(), Status> {
        let key = Key::new(crate::meta::namespace(&object), crate::meta::name(&object));
        let mut target = target(state, shelf, &key)?;
        subresource.clone_into(&mut target.subresource);
        self.perform(state, &target, Method::PUT, object)
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

/// One object, or with an empty name a collection, in the version that is kept.
fn target(state: &State, shelf: Shelf, key: &Key) -> Result<Target, Status> {
    let resource = state.kept(shelf).ok_or_else(Status::no_such_resource)?;
    Ok(Target {
        resource: resource.clone(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        subresource: String::new(),
    })
}
