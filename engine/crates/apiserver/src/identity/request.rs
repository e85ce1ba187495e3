//! POST to the `token` subresource of a service account.

use std::sync::Arc;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::claim::{Claims, ISSUER, ObjectRef, find};
use super::key::TokenKey;
use crate::api_response::{ApiResponse, Content};
use crate::call::Call;
use crate::decode;
use crate::meta;
use crate::openapi::definitions;
use crate::openapi::schema::Schema;
use crate::plugin::Attributes;
use crate::resource::Resource;
use crate::route::Target;
use crate::state::State;
use crate::status::{Details, Reason, Status, invalid};

/// Issues a token for the service account in the path (pkg/registry/core/serviceaccount).
///
/// # Errors
/// 404 for a service account or a bound object that is missing, 409 for one with another uid,
/// 422 for an invalid lifetime.
pub(crate) fn issue(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = token_request();
    let mut body = decode::object(call, &resource.kind)?.value;
    decode::check_kind(&state.definitions, call, &resource, &mut body)?;
    let attributes = Attributes::new(call, target, Operation::Create);
    let chain = state.chain.clone();
    let mut notes = chain.admit(state, &attributes, Some(&mut body))?;
    let Some(account) = find(state, "serviceaccounts", &target.namespace, &target.name)
    else {
        return Err(Status::not_found(&target.resource, &target.name));
    };
    check_place(&resource, target, &body)?;
    check_uid(&body, &account, target)?;
    let spec = with_defaults(&resource, &body["spec"])?;
    body["spec"] = spec;
    notes.extend(chain.validate(state, &attributes, Some(&body))?);
    state.check_complete()?;
    let claims = claims(state, target, &account, &body["spec"])?;
    let key: TokenKey = state.token_key.clone();
    let token = key.sign(&claims.to_value()).map_err(Status::internal)?;
    body["metadata"] = json!({
        "name": target.name,
        "namespace": target.namespace,
        "uid": meta::uid(&account),
        "creationTimestamp": state.now(),
    });
    let expiry = Timestamp::from_second(claims.expiry).unwrap_or(Timestamp::MAX);
    body["status"] = json!({"token": token, "expirationTimestamp": meta::time(expiry)});
    let content = Content::Object(Arc::new(resource), Arc::new(body));
    Ok(ApiResponse::new(201, content).admitted(notes))
}

fn token_request() -> Resource {
    let mut resource = Resource::new(
        "authentication.k8s.io",
        "v1",
        "TokenRequest",
        "tokenrequests",
    );
    let name = definitions::name_of("authentication.k8s.io", "v1", "TokenRequest");
    resource.schema = name.map(Schema::reference);
    resource
}

fn check_place(resource: &Resource, target: &Target, body: &Value) -> Result<(), Status> {
    for (key, requested) in [("name", &target.name), ("namespace", &target.namespace)] {
        let value = meta::text(body, key);
        if !value.is_empty() && value != requested {
            let detail = format!("must match the service account {key} if specified");
            let path = format!("metadata.{key}");
            let error = FieldError::invalid(path, value.into(), detail);
            return Err(invalid(resource, &target.name, &[error]));
        }
    }
    Ok(())
}

fn check_uid(body: &Value, account: &Value, target: &Target) -> Result<(), Status> {
    let (value, uid) = (meta::uid(body), meta::uid(account));
    if value.is_empty() || value == uid {
        return Ok(());
    }
    let why = format!(
        "the UID in the token request ({value}) does not match the UID of the service \
         account ({uid})"
    );
    let group = "authentication.k8s.io";
    Err(conflict(("TokenRequest", group), &target.name, &why))
}

fn conflict((kind, group): (&str, &str), name: &str, why: &str) -> Status {
    let what = crate::resource::GroupResource::new(group, kind);
    let message = format!("Operation cannot be fulfilled on {what} \"{name}\": {why}");
    Status::new(409, Reason::Conflict, message).with_details(Details {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        ..Details::default()
    })
}

/// The spec with its defaults.
fn with_defaults(resource: &Resource, spec: &Value) -> Result<Value, Status> {
    let mut spec = spec.clone();
    let fields = meta::fields(&mut spec);
    if fields
        .get("audiences")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
    {
        fields.insert("audiences".to_owned(), json!([ISSUER]));
    }
    let requested = fields.get("expirationSeconds").and_then(Value::as_i64);
    let seconds = requested.unwrap_or(3600);
    fields.insert("expirationSeconds".to_owned(), seconds.into());
    let wrong = if seconds < 10 * 60 {
        "may not specify a duration less than 10 minutes"
    } else if seconds > 1 << 32 {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(spec);
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds.into(), wrong);
    Err(invalid(resource, "", &[error]))
}

fn claims(
    state: &mut State,
    target: &Target,
    account: &Value,
    spec: &Value,
) -> Result<Claims, Status> {
    let now = state.clock.now().as_second();
    let audiences = spec["audiences"].as_array().into_iter().flatten();
    let mut claims = Claims {
        issuer: ISSUER.to_owned(),
        audiences: audiences
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        not_before: now,
        expiry: now.saturating_add(spec["expirationSeconds"].as_i64().unwrap_or(3600)),
        namespace: target.namespace.clone(),
        account: ObjectRef::of(account),
        ..Claims::default()
    };
    bind(state, target, &spec["boundObjectRef"], &mut claims)?;
    claims.id = state.random.uid();
    Ok(claims)
}

/// Binds the token to the lifetime of another object.
fn bind(
    state: &State,
    target: &Target,
    reference: &Value,
    claims: &mut Claims,
) -> Result<(), Status> {
    if !reference.is_object() {
        return Ok(());
    }
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let plural = match (version, kind) {
        ("v1" | "", "Pod") => "pods",
        ("v1" | "", "Node") => "nodes",
        ("v1" | "", "Secret") => "secrets",
        _ => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let namespace = if kind == "Node" {
        ""
    } else {
        &target.namespace
    };
    let Some(object) = find(state, plural, namespace, name) else {
        return Err(Status::not_found(
            &Resource::new("", "v1", kind, plural),
            name,
        ));
    };
    let uid = text("uid");
    if !uid.is_empty() && uid != meta::uid(&object) {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(conflict((kind, ""), name, &why));
    }
    let named = Some(ObjectRef::of(&object));
    match kind {
        "Pod" => {
            claims.node = node_of(state, target, &object)?;
            claims.pod = named;
        }
        "Node" => claims.node = named,
        _ => claims.secret = named,
    }
    Ok(())
}

/// The node of a pod of the service account.
fn node_of(
    state: &State,
    target: &Target,
    pod: &Value,
) -> Result<Option<ObjectRef>, Status> {
    let account = pod["spec"]["serviceAccountName"].as_str();
    if account.unwrap_or("default") != target.name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different \
             serviceaccount name.",
            target.name
        )));
    }
    let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let found = find(state, "nodes", "", name);
    let unknown = || ObjectRef {
        name: name.to_owned(),
        uid: String::new(),
    };
    Ok(Some(found.as_deref().map_or_else(unknown, ObjectRef::of)))
}
