//! The stored objects: `--old`.

use std::collections::HashMap;

use kubemu_admission::crd::CustomResource;
use kubemu_terminal::Failure;
use serde_json::Value;

use super::Operation;
use super::extension::Extension;
use super::object_result::Subject;
use super::write::set_in_metadata;
use crate::document::Document;

/// Objects by group, kind, namespace and name. Of duplicates, the first is kept.
#[derive(Debug, Default)]
pub(super) struct Stored {
    by_group_and_kind: HashMap<[String; 2], HashMap<[String; 2], Value>>,
}

impl Stored {
    /// Collects the objects. Objects without a namespace are also found in `namespace`.
    pub(super) fn of(
        documents: Vec<Document>,
        namespace: &str,
        extension: &dyn Extension,
    ) -> Self {
        let mut stored = Self::default();
        for mut document in documents {
            extension.to_current_group(&mut document.object);
            let it = Subject::of(&document);
            let kind = stored.by_group_and_kind.entry([it.group, it.kind]);
            let kind = kind.or_default();
            if it.namespace.is_empty() {
                // For cluster-scoped kinds, the object is found without a namespace.
                let cluster_scoped = [String::new(), it.name.clone()];
                kind.entry(cluster_scoped)
                    .or_insert_with(|| document.object.clone());
                let namespaced = [namespace.to_owned(), it.name];
                kind.entry(namespaced).or_insert(document.object);
            } else {
                let key = [it.namespace, it.name];
                kind.entry(key).or_insert(document.object);
            }
        }
        stored
    }

    /// The stored state of an object, decoded. `None` if it is not stored.
    ///
    /// # Errors
    /// The operation is an update and the object is not stored.
    pub(super) fn state_of(
        &self,
        subject: &Subject,
        resource: &CustomResource,
        operation: Option<Operation>,
    ) -> Result<Option<Value>, Failure> {
        let Some(mut object) = self.find(subject, operation)?.cloned() else {
            return Ok(None);
        };
        resource.decode(&mut object);
        if !subject.namespace.is_empty() {
            let namespace = subject.namespace.as_str().into();
            set_in_metadata(&mut object, "namespace", namespace);
        }
        Ok(Some(object))
    }

    /// The stored object as given. `None` if it was not given.
    ///
    /// # Errors
    /// The operation is an update and the object was not given.
    pub(super) fn find(
        &self,
        subject: &Subject,
        operation: Option<Operation>,
    ) -> Result<Option<&Value>, Failure> {
        let of_kind = [subject.group.clone(), subject.kind.clone()];
        let named = [subject.namespace.clone(), subject.name.clone()];
        let found = self.by_group_and_kind.get(&of_kind);
        let found = found.and_then(|it| it.get(&named));
        if found.is_none() && operation == Some(Operation::Update) {
            let why = format!("--old does not contain {}", subject.handle());
            return Err(Failure::new(format!("updating {}", subject.origin), why)
                .remedy("give the stored object with --old"));
        }
        Ok(found)
    }
}
