//! Secrets that hold the token of a service account (pkg/controller/serviceaccount).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Controller;
use crate::identity::claim::{Claims, ISSUER, ObjectRef, find};
use crate::index::Location;
use crate::meta;
use crate::state::State;
use crate::status::Status;
use crate::store::Key;
use crate::trigger::token::{TYPE, account_of};
use crate::work_queue::WorkItem;

const UID: &str = "kubernetes.io/service-account.uid";

/// Fills a token secret, or deletes it if its service account does not exist.
pub(super) fn reconcile(state: &mut State, key: &Key) {
    let bucket = state.buckets.secrets;
    let Some(secret) = state.get(bucket, key).cloned() else {
        return;
    };
    if secret["type"] != TYPE || meta::is_deleting(&secret) {
        return;
    }
    let account = account_of(&secret);
    let account = find(state, "serviceaccounts", &key.namespace, account);
    let uid = secret["metadata"]["annotations"][UID].as_str();
    let account =
        account.filter(|it| uid.is_none_or(|uid| uid.is_empty() || uid == meta::uid(it)));
    let done = if let Some(account) = account {
        fill(state, &secret, &account)
    } else {
        let options = json!({"preconditions": {"uid": meta::uid(&secret)}});
        let location = Location::new(bucket, key.clone());
        Controller::Tokens.delete(state, &location, options)
    };
    if let Err(refused) = done {
        tracing::debug!(%refused, name = %key.name, "service account token not written");
        state.queue.retry_later(WorkItem::Token(key.clone()));
    }
}

/// The token with these claims, the same in each attempt.
fn signed(state: &State, claims: Value) -> Result<String, Status> {
    let mut calls = state.webhook_calls.lock();
    if let Some(token) = calls.tokens.get(&claims) {
        return Ok(token.clone());
    }
    let token = state.token_key.sign(&claims).map_err(Status::internal)?;
    calls.tokens.insert(claims, token.clone());
    Ok(token)
}

/// Writes the data that the secret lacks.
fn fill(state: &mut State, secret: &Value, account: &Value) -> Result<(), Status> {
    let has = |name: &str| {
        secret["data"][name]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    };
    let mut data = json!({});
    if let Some(authority) = state.authority.clone().filter(|_| !has("ca.crt")) {
        data["ca.crt"] = STANDARD.encode(authority.as_bytes()).into();
    }
    if !has("namespace") {
        data["namespace"] = STANDARD.encode(meta::namespace(secret)).into();
    }
    if !has("token") {
        let claims = Claims {
            issuer: ISSUER.to_owned(),
            audiences: vec![ISSUER.to_owned()],
            id: state.random.uid(),
            not_before: state.instant().as_second(),
            // The token is valid as long as the secret exists.
            expiry: Timestamp::MAX.as_second(),
            namespace: meta::namespace(secret).to_owned(),
            account: ObjectRef::of(account),
            secret: Some(ObjectRef::of(secret)),
            ..Claims::default()
        };
        let token = signed(state, claims.to_value())?;
        data["token"] = STANDARD.encode(token).into();
    }
    if data.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"uid": meta::uid(secret), "annotations": {UID: meta::uid(account)}},
        "data": data,
    });
    let key = Key::new(meta::namespace(secret), meta::name(secret));
    let location = Location::new(state.buckets.secrets, key);
    Controller::Tokens.patch(state, &location, patch)
}
