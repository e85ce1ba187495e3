//! What plugins are asked about.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};

use fivespot_admission::policy::{self, Operation};
use serde_json::{Value, json};

use crate::call::Call;
use crate::meta;
use crate::resource::{GroupResource, Resource};
use crate::route::Target;
use crate::status::Status;
use crate::user::User;
use crate::verb::delete;

/// A request as plugins see it (`admission.Attributes`), beside the object that it writes.
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

/// What plugins have said of a request that they let pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// For `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// For the audit log.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Notes {
    /// These and `further` ones.
    pub(crate) fn extend(&mut self, further: Self) {
        self.warnings.extend(further.warnings);
        self.annotations.extend(further.annotations);
    }
}

/// What the mutating plugins do once more, because one of them has changed the object after
/// others had seen it.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// Whether the plugins are asked for the second time.
    pub(crate) is_second: bool,
    /// Whether they are to be asked for the second time.
    pub(crate) is_wanted: bool,
    /// The webhooks that want to see the object again if it changes.
    pub(crate) called: BTreeSet<String>,
    /// Those that will.
    pub(crate) again: BTreeSet<String>,
    /// The object as the webhooks have left it.
    pub(crate) output: Option<Value>,
    /// The same of MutatingAdmissionPolicies.
    pub(crate) policies: policy::Reinvocation,
}

impl Reinvocation {
    /// Lets the webhooks be called again that were called and asked for it.
    pub(crate) fn call_again(&mut self) {
        self.again.append(&mut self.called);
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

    /// The same, of an object that was like `old` before.
    pub(crate) fn with_old(mut self, old: Option<&'a Value>) -> Self {
        self.old = old;
        self
    }

    /// The same, of a write of `object`.
    pub(crate) fn with_object(mut self, object: &Value) -> Self {
        meta::text(object, "generateName").clone_into(&mut self.generate_name);
        self
    }

    pub(crate) fn take_notes(&self) -> Notes {
        self.notes.take()
    }

    /// What is done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What it is done to, in the version of the request.
    pub fn resource(&self) -> &'a Resource {
        &self.target.resource
    }

    /// The subresource; empty for the object itself.
    pub fn subresource(&self) -> &'a str {
        &self.target.subresource
    }

    /// Whether it is about an object of `plural` in `group` itself, and not its subresources.
    pub fn is_about(&self, group: &str, plural: &str) -> bool {
        self.subresource().is_empty()
            && self.resource().storage == GroupResource::new(group, plural)
    }

    /// The namespace; empty for what is in none.
    pub fn namespace(&self) -> &'a str {
        &self.target.namespace
    }

    /// The name; empty for a collection that is deleted, and where it is not generated yet.
    pub fn name(&self) -> &'a str {
        &self.target.name
    }

    /// The object before; `None` for a new one.
    pub fn old_object(&self) -> Option<&'a Value> {
        self.old
    }

    /// Who asks.
    pub fn user(&self) -> &'a User {
        &self.call.user
    }

    /// Whether nothing is to be stored.
    pub fn is_dry_run(&self) -> bool {
        self.call.query.dry_run
    }

    /// The `CreateOptions`, `UpdateOptions` or `DeleteOptions` of the request; null for a
    /// connection.
    pub fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => return delete::delete_options(self.call),
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

    /// Sends the client a text in a `Warning` header.
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

    /// 403 of this request. A collection that is deleted has no name, and a new object may have
    /// its `generateName` alone.
    pub fn forbidden(&self, why: &str) -> Status {
        let names = [self.name(), &self.generate_name, "Unknown"];
        let name = names.into_iter().find(|it| !it.is_empty());
        let name = name.unwrap_or_default();
        Status::forbidden(self.resource(), name, why)
    }
}
