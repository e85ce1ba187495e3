//! An object that a server creates itself.

use serde_json::{Value, json};

use crate::apply::{self, Configuration, OnConflict, Writer};
use crate::meta;
use crate::state::State;
use crate::store::Key;

/// The field manager of what a kube-apiserver creates itself.
pub(crate) const SERVER_MANAGER: &str = "kube-apiserver";

/// An object that a server creates itself, and who writes it.
pub(crate) struct Initial<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    /// The field manager.
    pub(crate) manager: &'a str,
    pub(crate) object: Value,
}

/// A condition that another manager applies, and the manager.
type Condition<'a> = (&'a str, Value);

impl State {
    /// Creates an object unless it exists, or its kind is not served.
    pub(crate) fn ensure(
        &mut self,
        initial: Initial<'_>,
        condition: Option<Condition<'_>>,
    ) {
        let Initial {
            group,
            plural,
            manager,
            mut object,
        } = initial;
        let Some(resource) = self.registry.find(group, "v1", plural).cloned() else {
            return;
        };
        let bucket = self.bucket(&resource);
        let key = Key::new(meta::namespace(&object), meta::name(&object));
        if self.get(bucket, &key).is_some() {
            return;
        }
        meta::set(&mut object, "uid", self.random.uid());
        meta::set(&mut object, "creationTimestamp", self.now());
        let now = self.clock.now();
        let writer = |manager, subresource| Writer {
            manager,
            subresource,
            now,
        };
        apply::tracked(&resource, None, &mut object, &writer(manager, ""));
        if let Some((manager, condition)) = condition {
            let config = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
                "metadata": {"name": meta::name(&object)}, "status": {"conditions": [condition]}});
            let config = Configuration {
                object: &config,
                on_conflict: OnConflict::Force,
            };
            let writer = writer(manager, "status");
            // A condition that its schema does not admit is left out.
            if let Ok(applied) =
                apply::applied(&resource, Some(&object), &config, &writer)
            {
                object = applied;
            }
            // Kubernetes prints an empty reason.
            if let Some(Value::Object(condition)) =
                object.pointer_mut("/status/conditions/0")
            {
                condition.entry("reason").or_insert_with(|| "".into());
            }
        }
        self.put(bucket, object);
    }
}
