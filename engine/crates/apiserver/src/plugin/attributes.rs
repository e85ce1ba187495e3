//! The attributes of a request that plugins read.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeSet;

use kubemu_admission::policy::{self, Operation};
use serde_json::{Value, json};

use crate::call::Call;
use crate::meta;
use crate::note::Notes;
use crate::options::delete::delete_options;
use crate::resource::{GroupResource, Resource};
use crate::route::Target;
use crate::status::Status;
use crate::user::User;

/// The attributes of a request (`admission.Attributes`), without the object that it writes.
#[derive(Debug)]
pub struct Attributes<'a> {
    call: &'a Call,
    target: &'a Target,
    operation: Operation,
    old: Option<&'a Value>,
    /// The `generateName` of an object whose name is generated later.
    generate_name: String,
    notes: RefCell<Notes>,
    reinvocation: RefCell<Reinvocation>,
}

/// The state of the second call of the mutating plugins, after one has changed the object that
/// others had already admitted.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// Whether this is the second call.
    pub(crate) is_second: bool,
    /// Whether a second call is required.
    pub(crate) is_required: bool,
    /// The called webhooks with `reinvocationPolicy: IfNeeded`.
    pub(crate) called: BTreeSet<String>,
    /// The webhooks to call again.
    pub(crate) to_reinvoke: BTreeSet<String>,
    /// The object after the mutating webhooks.
    pub(crate) output: Option<Value>,
    /// The state of MutatingAdmissionPolicies.
    pub(crate) policies: policy::Reinvocation,
}

impl Reinvocation {
    /// Marks the webhooks in `called` to be called again.
    pub(crate) fn require_reinvocation(&mut self) {
        self.to_reinvoke.append(&mut self.called);
    }
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(call: &'a Call, target: &'a Target, operation: Operation) -> Self {
        Self {
            call,
            target,
            operation,
            old: None,
            generate_name: String::new(),
            notes: RefCell::default(),
            reinvocation: RefCell::default(),
        }
    }

    /// The same attributes with the object before the write.
    pub(crate) fn with_old(mut self, old: Option<&'a Value>) -> Self {
        self.old = old;
        self
    }

    /// The same attributes with the `generateName` of `object`.
    pub(crate) fn with_object(mut self, object: &Value) -> Self {
        meta::text(object, "generateName").clone_into(&mut self.generate_name);
        self
    }

    pub(crate) fn take_notes(&self) -> Notes {
        self.notes.take()
    }

    /// The operation.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The resource, in the version of the request.
    pub fn resource(&self) -> &'a Resource {
        &self.target.resource
    }

    /// The subresource; empty for the object itself.
    pub fn subresource(&self) -> &'a str {
        &self.target.subresource
    }

    /// Whether the request is for an object of `plural` in `group`, and not for a subresource.
    pub fn is_about(&self, group: &str, plural: &str) -> bool {
        self.subresource().is_empty()
            && self.resource().storage == GroupResource::new(group, plural)
    }

    /// The namespace; empty for a cluster-scoped resource.
    pub fn namespace(&self) -> &'a str {
        &self.target.namespace
    }

    /// The name; empty for a collection, and for a name that is not generated yet.
    pub fn name(&self) -> &'a str {
        &self.target.name
    }

    /// The object before the write; `None` on create.
    pub fn old_object(&self) -> Option<&'a Value> {
        self.old
    }

    /// The requesting user.
    pub fn user(&self) -> &'a User {
        &self.call.user
    }

    /// Whether the request is a dry run.
    pub fn is_dry_run(&self) -> bool {
        match self.operation {
            Operation::Delete => delete_options(self.call)["dryRun"].is_array(),
            _ => self.call.query.dry_run,
        }
    }

    /// The `CreateOptions`, `UpdateOptions` or `DeleteOptions` of the request; null for a
    /// connection.
    pub fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => return delete_options(self.call),
            Operation::Connect => return Value::Null,
        };
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        let query = &self.call.query;
        if !query.field_manager.is_empty() {
            options["fieldManager"] = query.field_manager.as_str().into();
        }
        if query.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Adds a `Warning` header to the response.
    pub fn warn(&self, text: impl Into<String>) {
        self.notes.borrow_mut().warnings.push(text.into());
    }

    /// Adds an annotation to the audit event.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let annotations = &mut self.notes.borrow_mut().annotations;
        annotations.insert(key.into(), value.into());
    }

    pub(crate) fn reinvocation(&self) -> RefMut<'_, Reinvocation> {
        self.reinvocation.borrow_mut()
    }

    /// 403 for this request. The deletion of a collection has no name, and a new object may have
    /// only a `generateName`.
    pub fn forbidden(&self, why: &str) -> Status {
        let names = [self.name(), &self.generate_name, "Unknown"];
        let name = names.into_iter().find(|it| !it.is_empty());
        let name = name.unwrap_or_default();
        Status::forbidden(self.resource(), name, why)
    }
}
