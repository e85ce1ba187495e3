//! The variable `authorizer` of policies.

use std::fmt;
use std::sync::Arc;

use kubemu_cel::{Abstract, RunError, Value};

use super::request::{Request, User};
use crate::name;

/// Makes authorization decisions.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether the access is allowed.
    ///
    /// # Errors
    /// Why the decision is unknown; the text that `error()` returns to an expression.
    fn authorize(&self, access: &Access<'_>) -> Result<Permission, String>;
}

/// A user's access to a target.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The user.
    pub user: &'a User,
    /// The verb: `get`, `create`; for a path the HTTP verb.
    pub verb: &'a str,
    /// The target of the access.
    pub target: Target<'a>,
}

/// The target of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A non-resource path, such as `/healthz`.
    Path(&'a str),
    /// A resource; an empty field was not set by the expression.
    Resource {
        /// The API group; empty for the core group.
        group: &'a str,
        /// The plural name.
        resource: &'a str,
        /// The subresource.
        subresource: &'a str,
        /// The namespace; empty for all of them.
        namespace: &'a str,
        /// The name; empty for all of them.
        name: &'a str,
        /// The field selector as given in the expression, unparsed.
        field_selector: &'a str,
        /// The label selector as given in the expression, unparsed.
        label_selector: &'a str,
    },
}

/// The decision of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Whether the access is allowed.
    pub allowed: bool,
    /// The authorizer's reason; may be empty.
    pub reason: String,
}

/// The variable `authorizer`, and the objects derived from it.
#[derive(Clone, Debug)]
pub(super) struct AuthorizerValue {
    authorizer: Arc<dyn Authorizer>,
    user: User,
    object: AuthorizerObject,
}

#[derive(Clone, Debug)]
enum AuthorizerObject {
    Authorizer,
    Path(String),
    Group(String),
    Resource(Box<Resource>),
    Decision(Result<Permission, String>),
}

#[derive(Clone, Debug, Default)]
struct Resource {
    group: String,
    plural: String,
    subresource: String,
    namespace: String,
    name: String,
    fields: String,
    labels: String,
}

impl AuthorizerValue {
    pub(super) fn new(authorizer: Arc<dyn Authorizer>, user: &User) -> Self {
        Self {
            authorizer,
            user: user.clone(),
            object: AuthorizerObject::Authorizer,
        }
    }

    /// The variable `authorizer.requestResource`.
    pub(super) fn about(&self, request: &Request<'_>) -> Self {
        self.at(AuthorizerObject::Resource(Box::new(Resource {
            group: request.resource.group.to_owned(),
            plural: request.resource.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            ..Resource::default()
        })))
    }

    fn at(&self, object: AuthorizerObject) -> Self {
        let (authorizer, user) = (self.authorizer.clone(), self.user.clone());
        Self {
            authorizer,
            user,
            object,
        }
    }

    fn next(&self, function: &str, arguments: &[&str]) -> Result<Self, RunError> {
        let next = match (&self.object, function, arguments) {
            (AuthorizerObject::Authorizer, "path", [path]) => {
                filled("path", path)?;
                AuthorizerObject::Path((*path).to_owned())
            }
            (AuthorizerObject::Authorizer, "group", [group]) => {
                AuthorizerObject::Group((*group).to_owned())
            }
            (AuthorizerObject::Authorizer, "serviceAccount", [namespace, name]) => {
                let user = service_account(namespace, name)?;
                return Ok(Self {
                    user,
                    ..self.clone()
                });
            }
            (AuthorizerObject::Group(group), "resource", [resource]) => {
                filled("resource", resource)?;
                AuthorizerObject::Resource(Box::new(Resource {
                    group: group.clone(),
                    plural: (*resource).to_owned(),
                    ..Resource::default()
                }))
            }
            (AuthorizerObject::Path(path), "check", [verb]) => {
                AuthorizerObject::Decision(self.check(verb, Target::Path(path)))
            }
            (AuthorizerObject::Resource(resource), "check", [verb]) => {
                AuthorizerObject::Decision(self.check(verb, resource.target()))
            }
            (AuthorizerObject::Resource(resource), _, [value]) => {
                let mut resource = resource.clone();
                resource.set(function, value)?;
                AuthorizerObject::Resource(resource)
            }
            _ => return Err(no_such_overload()),
        };
        Ok(self.at(next))
    }

    fn check(&self, verb: &str, target: Target<'_>) -> Result<Permission, String> {
        let user = &self.user;
        self.authorizer.authorize(&Access { user, verb, target })
    }
}

impl Resource {
    fn set(&mut self, function: &str, value: &str) -> Result<(), RunError> {
        let field = match function {
            "subresource" => &mut self.subresource,
            "namespace" => &mut self.namespace,
            "name" => &mut self.name,
            "fieldSelector" => &mut self.fields,
            "labelSelector" => &mut self.labels,
            _ => return Err(no_such_overload()),
        };
        value.clone_into(field);
        Ok(())
    }

    fn target(&self) -> Target<'_> {
        Target::Resource {
            group: &self.group,
            resource: &self.plural,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            field_selector: &self.fields,
            label_selector: &self.labels,
        }
    }
}

impl Abstract for AuthorizerValue {
    fn type_name(&self) -> &str {
        match self.object {
            AuthorizerObject::Authorizer => "kubernetes.authorization.Authorizer",
            AuthorizerObject::Path(_) => "kubernetes.authorization.PathCheck",
            AuthorizerObject::Group(_) => "kubernetes.authorization.GroupCheck",
            AuthorizerObject::Resource(_) => "kubernetes.authorization.ResourceCheck",
            AuthorizerObject::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    fn call<'v>(
        &self,
        name: &str,
        arguments: &[Value<'v>],
    ) -> Result<Value<'v>, RunError> {
        if let AuthorizerObject::Decision(decision) = &self.object {
            let known = decision.as_ref();
            return Ok(match name {
                "allowed" => Value::Bool(known.is_ok_and(|it| it.allowed)),
                "errored" => Value::Bool(known.is_err()),
                "reason" => text(known.map_or("", |it| &it.reason)),
                "error" => text(known.err().map_or("", String::as_str)),
                _ => return Err(no_such_overload()),
            });
        }
        let arguments: Option<Vec<&str>> = arguments.iter().map(Value::as_str).collect();
        let arguments = arguments.ok_or_else(no_such_overload)?;
        let next = self.next(name, &arguments)?;
        Ok(Value::Abstract(Arc::new(next)))
    }
}

fn text<'v>(text: &str) -> Value<'v> {
    Value::String(text.to_owned().into())
}

fn no_such_overload() -> RunError {
    RunError::Evaluation("no such overload".into())
}

fn filled(what: &str, value: &str) -> Result<(), RunError> {
    if value.trim().is_empty() {
        let text = format!("{what} must not be empty");
        return Err(RunError::Evaluation(text.into()));
    }
    Ok(())
}

/// The user of a service account.
fn service_account(namespace: &str, account: &str) -> Result<User, RunError> {
    let refuse = |what: &str| {
        let text = format!("Invalid service account {what}");
        Err(RunError::Evaluation(text.into()))
    };
    if !name::dns_subdomain(account).is_empty() {
        return refuse("name");
    }
    if !name::dns_label(namespace).is_empty() {
        return refuse("namespace");
    }
    Ok(User {
        name: format!("system:serviceaccount:{namespace}:{account}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ],
        ..User::default()
    })
}
