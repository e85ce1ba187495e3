//! `AdmissionReview` of `admission.k8s.io/v1`, as it is sent.

use std::collections::BTreeMap;

use fivespot_api::{RESOURCES, Resource};
use kubemu_admission::FieldError;
use kubemu_admission::policy::{Decision, GroupVersionKind, Operation, Request, User};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object::ReviewedObject;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// The longest uid that is accepted; a UUID has 36 characters.
const MAX_UID_LENGTH: usize = 256;

/// Why a body is not a review that can be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It is not JSON, or a field is of another type than it should be.
    #[error("the body is not an AdmissionReview: {0}")]
    Json(#[from] serde_json::Error),
    /// It is something else, or of another version.
    #[error(
        "apiVersion is '{api_version}' and kind is '{kind}'; send {KIND} of {API_VERSION}"
    )]
    Kind {
        /// The apiVersion of the body.
        api_version: String,
        /// The kind of the body.
        kind: String,
    },
    /// A field is missing, empty or beyond its bounds.
    #[error("{field} {problem}")]
    Field {
        /// The path of the field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// A review of an API server.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Review {
    api_version: String,
    kind: String,
    request: Option<RequestFields>,
}

/// The request of a review.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequestFields {
    uid: String,
    kind: KindFields,
    resource: ResourceFields,
    sub_resource: String,
    name: String,
    namespace: String,
    operation: String,
    user_info: UserInfo,
    object: Option<ReviewedObject>,
    old_object: Option<ReviewedObject>,
    dry_run: Option<bool>,
    options: Option<ReviewedObject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KindFields {
    group: String,
    version: String,
    kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResourceFields {
    group: String,
    version: String,
    resource: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

/// A review that can be answered.
#[derive(Debug)]
pub(crate) struct AdmissionRequest {
    fields: RequestFields,
    operation: Operation,
    user: User,
}

impl AdmissionRequest {
    /// Reads the body of a request. Text that nests deeper than serde_json's 128 levels is
    /// rejected like other malformed text.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let review: Review = serde_json::from_slice(body)?;
        if (review.api_version.as_str(), review.kind.as_str()) != (API_VERSION, KIND) {
            return Err(Malformed::Kind {
                api_version: truncate(review.api_version),
                kind: truncate(review.kind),
            });
        }
        let invalid_field = |field, problem| Malformed::Field { field, problem };
        let Some(mut fields) = review.request else {
            return Err(invalid_field("request", "is missing"));
        };
        if fields.uid.is_empty() || fields.uid.len() > MAX_UID_LENGTH {
            return Err(invalid_field(
                "request.uid",
                "must have 1 to 256 characters",
            ));
        }
        let operation = match fields.operation.as_str() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            _ => {
                let problem = "must be CREATE, UPDATE, DELETE or CONNECT";
                return Err(invalid_field("request.operation", problem));
            }
        };
        // The policy would take an update without its old object for a creation, and a creation
        // without an object for that of an empty one.
        let is_object = |object: &Option<ReviewedObject>| {
            object.as_ref().is_some_and(|it| it.0.is_object())
        };
        let writes = matches!(operation, Operation::Create | Operation::Update);
        if writes && !is_object(&fields.object) {
            return Err(invalid_field("request.object", "must be an object"));
        }
        let replaces = matches!(operation, Operation::Update | Operation::Delete);
        if replaces && !is_object(&fields.old_object) {
            return Err(invalid_field("request.oldObject", "must be an object"));
        }
        let user = std::mem::take(&mut fields.user_info);
        Ok(Self {
            operation,
            user: User {
                name: user.username,
                uid: user.uid,
                groups: user.groups.unwrap_or_default(),
                extra: user.extra.unwrap_or_default(),
            },
            fields,
        })
    }

    /// The request for the admission engine.
    pub(crate) fn request(&self) -> Request<'_> {
        let fields = &self.fields;
        let kind = GroupVersionKind {
            group: &fields.kind.group,
            version: &fields.kind.version,
            kind: &fields.kind.kind,
        };
        let mut request = Request::new(self.operation, kind, &fields.resource.resource);
        request.resource.group = &fields.resource.group;
        request.resource.version = &fields.resource.version;
        request.subresource = &fields.sub_resource;
        request.namespace = &fields.namespace;
        request.name = &fields.name;
        request.object = non_null(fields.object.as_ref());
        request.old_object = non_null(fields.old_object.as_ref());
        request.options = non_null(fields.options.as_ref());
        request.user = &self.user;
        request.dry_run = fields.dry_run.unwrap_or_default();
        request
    }

    /// Our kind, if the policy validates a change of its spec: the write of an object, not of its
    /// status, that is new or has another spec.
    pub(crate) fn changed_kind(&self) -> Option<&'static Resource> {
        let fields = &self.fields;
        let writes = matches!(self.operation, Operation::Create | Operation::Update);
        let spec = |object| non_null(object).and_then(|it| it.get("spec"));
        let is_changed = self.operation == Operation::Create
            || spec(fields.object.as_ref()) != spec(fields.old_object.as_ref());
        let resource = RESOURCES.iter().find(|it| {
            fields.resource.group == it.group && fields.resource.resource == it.plural
        });
        resource.filter(|_| writes && is_changed && fields.sub_resource.is_empty())
    }

    /// Whether the new object names a class, at that JSON pointer, that the old one did not name.
    pub(crate) fn names_other_class(&self, reference: &str) -> bool {
        let class = |object| {
            let class = non_null(object)?.pointer(reference)?;
            (!class.is_null()).then_some(class)
        };
        let named = class(self.fields.object.as_ref());
        named.is_some() && named != class(self.fields.old_object.as_ref())
    }

    /// The new and the old object, each with what is written before its paths in messages.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let new = ("", self.fields.object.as_ref());
        let old = ("oldObject.", self.fields.old_object.as_ref());
        let present = |(path, object)| Some((path, non_null(object)?));
        [new, old].into_iter().filter_map(present)
    }

    /// The response if an object is beyond the bounds of its schema: a rejection if the webhook
    /// `denies`, else a warning.
    pub(crate) fn out_of_bounds(
        &self,
        object: &str,
        error: &FieldError,
        denies: bool,
    ) -> Value {
        let KindFields { group, kind, .. } = &self.fields.kind;
        let name = &self.fields.name;
        let message = format!("{kind}.{group} \"{name}\" is invalid: {object}{error}");
        if !denies {
            return self.answer([("warnings", json!([message]))]);
        }
        self.answer([(
            "status",
            json!({
                "status": "Failure",
                "code": 422,
                "reason": "Invalid",
                "message": message,
                "details": {
                    "name": name, "group": group, "kind": kind, "causes": [error.cause()],
                },
            }),
        )])
    }

    /// A rejection with the words of the webhook itself.
    pub(crate) fn refused(&self, code: u16, message: &str) -> Value {
        let ResourceFields {
            group, resource, ..
        } = &self.fields.resource;
        let name = &self.fields.name;
        let (reason, problem) = match code {
            403 => ("Forbidden", "is forbidden"),
            503 => ("ServiceUnavailable", "was not reviewed"),
            _ => ("InternalError", "was not reviewed"),
        };
        self.answer([(
            "status",
            json!({
                "status": "Failure",
                "code": code,
                "reason": reason,
                "message": format!("{resource}.{group} \"{name}\" {problem}: {message}"),
                "details": {"name": name, "group": group, "kind": resource},
            }),
        )])
    }

    /// The response for the API server: the first denial, as the policy would have returned it.
    pub(crate) fn response(&self, decision: &Decision) -> Value {
        let status = decision.denied().map(|denial| {
            let causes = denial.causes.iter();
            let causes = causes.map(|cause| json!({"message": cause.message}));
            json!({
                "status": "Failure",
                "code": denial.code,
                "reason": denial.reason,
                "message": denial.message,
                "details": {
                    "name": self.fields.name,
                    "group": self.fields.resource.group,
                    "kind": self.fields.resource.resource,
                    "causes": causes.collect::<Vec<_>>(),
                },
            })
        });
        let warnings = &decision.warnings;
        let warnings = (!warnings.is_empty()).then(|| json!(warnings));
        // The API server prefixes each key with the webhook's name and a slash.
        let own = |key: &str| key.rsplit('/').next().unwrap_or(key).to_owned();
        let annotations = decision.audit_annotations.iter();
        let annotations: BTreeMap<String, &String> =
            annotations.map(|(key, value)| (own(key), value)).collect();
        let annotations = (!annotations.is_empty()).then(|| json!(annotations));
        let all = [
            ("status", status),
            ("warnings", warnings),
            ("auditAnnotations", annotations),
        ];
        self.answer(
            all.into_iter()
                .filter_map(|(key, value)| Some((key, value?))),
        )
    }

    /// The response with these fields: with a status a rejection, else an admission.
    fn answer(&self, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
        let mut response = json!({"uid": self.fields.uid, "allowed": true});
        for (key, value) in fields {
            if key == "status" {
                response["allowed"] = false.into();
            }
            response[key] = value;
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}

/// The value, if it is present and not null.
fn non_null(object: Option<&ReviewedObject>) -> Option<&Value> {
    object.map(|it| &it.0).filter(|it| !it.is_null())
}

/// The part of an untrusted text that is returned to its sender.
fn truncate(text: String) -> String {
    text.chars().take(64).collect()
}
