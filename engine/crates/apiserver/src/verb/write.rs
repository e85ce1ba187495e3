//! The common part of create, update and patch: validation, field managers, admission.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::Arc;

use kubemu_admission::FieldError;
use kubemu_admission::object_meta::{self, NameRule, Scope};
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::scale::form;
use crate::alias;
use crate::api_response::{ApiResponse, Content};
use crate::authorization::{self, parameters};
use crate::call::Call;
use crate::decode;
use crate::empty;
use crate::kind::{Stored, Write};
use crate::meta;
use crate::nesting;
use crate::note::Notes;
use crate::openapi::shape::Shape;
use crate::plugin::Attributes;
use crate::resource::Resource;
use crate::route::Target;
use crate::size;
use crate::state::State;
use crate::status::{Cause, Status, invalid};
use crate::store::{Object, Range};

/// A write in progress.
#[derive(Debug)]
pub(super) struct Draft {
    /// In the version of the request's resource.
    pub(super) object: Value,
    /// The object before, in the version of the request's resource; `None` for a create.
    pub(super) old: Option<Object>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Whether the field managers are recorded already, as for an apply.
    pub(super) managed: bool,
    /// The errors of metadata that the server has replaced since.
    pub(super) metadata_errors: Vec<FieldError>,
}

impl Draft {
    pub(super) fn new(object: Value, old: Option<Object>) -> Self {
        Self {
            object,
            old,
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
            managed: false,
            metadata_errors: Vec::new(),
        }
    }

    /// The write in the form that the kind validates.
    fn write<'a>(&'a self, state: &State, target: &'a Target) -> Write<'a> {
        Write {
            object: &self.object,
            old: self.old.as_deref(),
            kube: state.kube,
            // An object that a write to a subresource creates is validated as a new object.
            subresource: self.old.as_ref().map_or("", |_| &target.subresource),
        }
    }

    fn operation(&self) -> Operation {
        if self.old.is_some() {
            Operation::Update
        } else {
            Operation::Create
        }
    }

    /// Checks that the writer grants no permissions that they do not have.
    ///
    /// # Errors
    /// 403 for a role or a binding that would.
    pub(super) fn check_escalation(
        &self,
        state: &State,
        call: &Call,
        target: &Target,
    ) -> Result<(), Status> {
        authorization::check_escalation(
            &state.rules,
            call,
            target,
            &self.write(state, target),
        )
    }

    /// Validates the object.
    ///
    /// # Errors
    /// 422 with one cause for each violated rule.
    pub(super) fn validate(
        &mut self,
        state: &State,
        call: &Call,
        target: &Target,
    ) -> Result<(), Status> {
        let resource = &target.resource;
        self.check_depth(resource)?;
        let of_kind = self.kind_errors(resource);
        let mut errors;
        if let Some(definition) = state.definitions.get(&resource.storage)
            && let Some(version) = definition.served(&resource.version)
        {
            let object = alias::in_own_group(resource, &self.object);
            let old = self.old.as_deref();
            let result = match old.map(|old| alias::in_own_group(resource, old)) {
                None => version.create(&object),
                Some(old) if target.subresource == "status" => {
                    version.update_status(&object, &old)
                }
                Some(old) => version.update(&object, &old),
            };
            self.warnings.extend(result.warnings);
            errors = result.errors;
        } else {
            errors = self.errors_of_kind(state, target);
        }
        let stated = (!of_kind.is_empty()).then(|| self.stated_resource());
        self.add_other_errors(&mut errors, of_kind, resource);
        if errors.is_empty() {
            let write = self.write(state, target);
            let found = parameters::errors(state, &call.user, target, &write);
            errors.extend(found);
        }
        if errors.is_empty() && target.subresource.is_empty() {
            errors.extend(self.allocate(state, call, resource));
        }
        if errors.is_empty() {
            if let Some(kind) = &resource.builtin
                && target.subresource != "status"
            {
                let found = kind.warnings(&self.write(state, target));
                self.warnings.extend(found);
            }
            return Ok(());
        }
        let name = meta::name(&self.object);
        let mut refused = if let Some(stated) = stated {
            invalid(&stated, name, &errors)
        } else if resource.custom || resource.group == resource.storage.group {
            invalid(resource, name, &errors)
        } else {
            // For a resource that is served in two groups, the error contains the group that
            // it is stored in.
            let mut stored = Resource::clone(resource);
            stored.group.clone_from(&resource.storage.group);
            invalid(&stored, name, &errors)
        };
        refused.warnings.clone_from(&self.warnings);
        Err(refused)
    }

    /// The validation errors of an object of a built-in kind.
    fn errors_of_kind(&self, state: &State, target: &Target) -> Vec<FieldError> {
        let write = self.write(state, target);
        let kind = target.resource.builtin.as_ref();
        let of_kind = kind.map(|it| it.validate(&write)).unwrap_or_default();
        let is_outside = kind.is_some_and(|it| !it.validates_metadata());
        if is_outside && self.old.is_none() && !of_kind.is_empty() {
            return of_kind;
        }
        let found = self.metadata_errors(target);
        // Without those of the kind that repeat one of the metadata.
        let known: HashSet<&FieldError> = found.iter().collect();
        let further = of_kind.into_iter().filter(|it| !known.contains(it));
        found.iter().cloned().chain(further).collect()
    }

    /// Allocates values of an object of a built-in kind that must be unique, such as addresses
    /// and ports.
    fn allocate(
        &mut self,
        state: &State,
        call: &Call,
        resource: &Resource,
    ) -> Vec<FieldError> {
        let Some(kind) = &resource.builtin else {
            return Vec::new();
        };
        let bucket = state.store.known_bucket(&resource.storage);
        let range = Range::default();
        let found = bucket.and_then(|it| state.store.list(it, &range, None).ok());
        let mut stored = Stored {
            objects: &mut found.into_iter().flatten().map(|(_, it)| &**it),
            dry_run: call.query.dry_run,
        };
        kind.allocate(&mut self.object, &mut stored)
    }

    /// 422 for an object that could not be read back from the storage. The check includes the
    /// managed fields, which are nested deeper than the fields themselves.
    fn check_depth(&self, resource: &Resource) -> Result<(), Status> {
        if nesting::depth(&self.object) <= nesting::MAX_DEPTH {
            return Ok(());
        }
        let message = format!(
            "objects and lists are nested deeper than {}",
            nesting::MAX_DEPTH
        );
        let cause = Cause::new("FieldValueInvalid", "", message);
        Err(Status::invalid(
            resource,
            meta::name(&self.object),
            vec![cause],
        ))
    }

    /// Adds the errors of metadata that has been replaced, and those of a wrong kind or version, to
    /// those that validation has found.
    fn add_other_errors(
        &mut self,
        errors: &mut Vec<FieldError>,
        of_kind: Vec<FieldError>,
        resource: &Resource,
    ) {
        let replaced = mem::take(&mut self.metadata_errors);
        if of_kind.is_empty() {
            let of_metadata = |it: &&FieldError| it.path.starts_with("metadata.");
            let place = errors.iter().take_while(of_metadata).count();
            errors.splice(place..place, replaced);
            return;
        }
        // Kubernetes checks the metadata of such an object only as that of any kind.
        errors.retain(|it| !matches!(it.path.as_str(), "kind" | "apiVersion"));
        let old = self.old.as_deref();
        let common = old.map(|it| self.common_errors(it, scope(resource)));
        let (first, rest) = common.unwrap_or_default();
        let before = first.into_iter().chain(rest).chain(replaced);
        errors.splice(..0, before.chain(of_kind));
    }

    /// The errors of a custom object whose kind or version differs from that of the path.
    fn kind_errors(&self, resource: &Resource) -> Vec<FieldError> {
        let (version, kind) = self.stated_kind();
        let expected = resource.api_version();
        let comparisons = [
            ("kind", kind, &resource.kind),
            ("apiVersion", version, &expected),
        ];
        let wrong = comparisons.into_iter().filter(|it| it.1 != it.2);
        let error = |(key, found, expected): (&str, &str, &String)| {
            FieldError::invalid(key, found.into(), format!("must be {expected}"))
        };
        wrong.map(error).collect()
    }

    /// The version and the kind in the object. An empty group is omitted.
    fn stated_kind(&self) -> (&str, &str) {
        let field = |key: &str| self.object[key].as_str().unwrap_or_default();
        let version = field("apiVersion");
        (version.strip_prefix('/').unwrap_or(version), field("kind"))
    }

    /// The resource that the errors of an object of another kind name.
    fn stated_resource(&self) -> Resource {
        let (version, kind) = self.stated_kind();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        Resource::new(group, version, kind, "")
    }

    /// The errors of metadata that updates of all kinds have (`validateCommonFields` of
    /// k8s.io/apiserver/pkg/registry/rest): those that a new object would have, and the rest.
    fn common_errors(
        &self,
        old: &Value,
        scope: Scope,
    ) -> (Vec<FieldError>, Vec<FieldError>) {
        let (metadata, old) = (self.object.get("metadata"), old.get("metadata"));
        let errors = object_meta::create(metadata, NameRule::PathSegment, scope);
        let mut rest = object_meta::update(metadata, old, scope);
        let is_new =
            |it: &FieldError| it.path != "metadata.finalizers" || !errors.contains(it);
        rest.retain(is_new);
        (errors, rest)
    }

    fn metadata_errors(&self, target: &Target) -> Vec<FieldError> {
        let resource = &target.resource;
        let scope = scope(resource);
        let metadata = self.object.get("metadata");
        let old = self.old.as_deref();
        let kind = resource.builtin.as_ref();
        let name_rule = kind.map_or(NameRule::DnsSubdomain, |it| it.name_rule());
        let is_lenient = kind.is_some_and(|it| {
            let skips = target.subresource == "status" && it.skips_status_validation();
            skips || !it.validates_metadata()
        });
        let mut errors = match old {
            None => object_meta::create(metadata, name_rule, scope),
            Some(old) => {
                let (mut errors, rest) = self.common_errors(old, scope);
                errors.extend(rest.clone());
                if is_lenient {
                    return errors;
                }
                // The strategy of the kind validates most of it again.
                errors.extend(rest);
                if target.subresource.is_empty()
                    && kind.is_some_and(|it| it.revalidates_name())
                {
                    // Their own rules repeat those of a new object.
                    let rule = kind.map(|it| it.finalizer_rule()).unwrap_or_default();
                    errors.extend(rule.errors(&self.object));
                    errors.extend(object_meta::create(metadata, name_rule, scope));
                }
                errors
            }
        };
        let rule = kind.map(|it| it.finalizer_rule()).unwrap_or_default();
        errors.extend(rule.errors(&self.object));
        errors
    }

    /// Runs the mutating plugins. The fields that they set have no manager.
    ///
    /// # Errors
    /// The error of the first plugin that rejects the write.
    pub(super) fn mutate(
        &mut self,
        state: &mut State,
        call: &Call,
        target: &Target,
    ) -> Result<(), Status> {
        let chain = state.chain.clone();
        let attributes = Attributes::new(call, target, self.operation());
        let attributes = attributes.with_old(self.old.as_deref());
        let attributes = attributes.with_object(&self.object);
        let notes = chain.admit(state, &attributes, Some(&mut self.object));
        let notes = notes.map_err(|refused| self.with_warnings(refused))?;
        self.add_notes(notes);
        Ok(())
    }

    /// An error with the warnings collected so far.
    fn with_warnings(&self, mut refused: Status) -> Status {
        refused.warnings.splice(..0, self.warnings.iter().cloned());
        refused
    }

    fn add_notes(&mut self, notes: Notes) {
        self.warnings.extend(notes.warnings);
        self.annotations.extend(notes.annotations);
    }

    /// Runs the validating plugins; for a write to `scale` they get the Scale.
    ///
    /// # Errors
    /// The error of the first plugin that rejects the write.
    pub(super) fn admit(
        &mut self,
        state: &State,
        call: &Call,
        target: &Target,
    ) -> Result<(), Status> {
        let written = form::of(target, &self.object);
        let before = self.old.as_deref().and_then(|it| form::of(target, it));
        let object = written.as_ref().unwrap_or(&self.object);
        let old = before.as_ref().or(self.old.as_deref());
        let attributes = Attributes::new(call, target, self.operation()).with_old(old);
        let notes = state.chain.validate(state, &attributes, Some(object));
        let notes = notes.map_err(|refused| self.with_warnings(refused))?;
        state.check_complete()?;
        self.add_notes(notes);
        Ok(())
    }

    /// Stores the object, except in a dry run, and responds with it.
    ///
    /// # Errors
    /// 500 for an object that cannot be converted to the storage version, or is too large.
    pub(super) fn commit(
        self,
        state: &mut State,
        call: &Call,
        target: &Target,
    ) -> Result<ApiResponse, Status> {
        let resource = &target.resource;
        let created = self.old.is_none();
        let conversion = state.conversion(resource);
        let mut object = self.object;
        if !resource.custom {
            empty::lose_lists(Shape::of(resource), &mut object);
        }
        // A status that was never written has its default in every read, but not in the
        // response to the create.
        let created_object = created
            .then(|| decode::default_status(&state.definitions, resource, &mut object))
            .flatten();
        let mut object = conversion.to_stored(resource, object)?;
        if !call.query.dry_run {
            check_size(&mut object, self.managed)?;
        }
        let is_storage_version = resource.is_served_as(&resource.stored_as);
        // An object that cannot be converted back is rejected before it is stored.
        let converted = if is_storage_version {
            None
        } else {
            Some(conversion.in_version_of(resource, &Arc::new(object.clone()))?)
        };
        let stored = if call.query.dry_run {
            Arc::new(object)
        } else {
            meta::clear(&mut object, "selfLink");
            let bucket = state.bucket(resource);
            // What an apply creates may be marked as deleted; only a later write removes it.
            if created {
                state.put(bucket, object)
            } else {
                state.put_or_remove(bucket, object)
            }
        };
        let change = state
            .store
            .known_bucket(&resource.storage)
            .and_then(|bucket| state.store.last_change(bucket).cloned());
        let mut served = match converted {
            None => stored,
            Some(mut served) => {
                meta::copy(&stored, Arc::make_mut(&mut served), "resourceVersion");
                served
            }
        };
        if let Some(mut created_object) = created_object {
            if !call.query.dry_run {
                for key in ["resourceVersion", "managedFields"] {
                    meta::copy(&served, &mut created_object, key);
                }
            }
            served = Arc::new(created_object);
        }
        let code = if created { 201 } else { 200 };
        let change = change.filter(|it| Arc::ptr_eq(&it.object, &served));
        let mut response =
            ApiResponse::new(code, Content::Object(resource.clone(), served));
        response.change = change;
        response.warnings = self.warnings;
        response.annotations = self.annotations;
        Ok(response)
    }
}

/// Checks the size of an object. Removes its managed fields if it is too large with them, unless
/// the write `needs_managed_fields`, as an apply does.
///
/// # Errors
/// 500 for an object that is too large.
fn check_size(object: &mut Value, needs_managed_fields: bool) -> Result<(), Status> {
    let result = size::check(object);
    if result.is_ok() || needs_managed_fields {
        return result;
    }
    meta::clear(object, "managedFields");
    size::check(object)
}

fn scope(resource: &Resource) -> Scope {
    if resource.namespaced {
        Scope::Namespaced
    } else {
        Scope::Cluster
    }
}
