//! Validates defaults with the schema and the rules that they are part of.

use serde_json::{Value, json};

use crate::crd_rules::{Rules, Run};
use crate::field::Path;
use crate::schema::Structural;
use crate::schema::node::Node;
use crate::{FieldError, KubeVersion};

/// Checks every default against its own schema and rules.
pub(super) fn check(
    root: &Node,
    rules: Option<&Rules>,
    path: &Path<'_>,
    version: KubeVersion,
) -> Vec<FieldError> {
    let mut defaults = Defaults {
        version,
        run: Run::new(version),
        errors: Vec::new(),
    };
    defaults.node(root, rules, path, &Location::of_resource(root));
    defaults.errors
}

/// Walks the defaults of a schema.
struct Defaults {
    version: KubeVersion,
    run: Run,
    errors: Vec<FieldError>,
}

/// The position of a node in the resource, or embedded resource, that contains it.
#[derive(Clone)]
struct Location<'n> {
    resource: &'n Node,
    steps: Vec<Step<'n>>,
    /// Whether it is in `apiVersion`, `kind` or `metadata`.
    is_metadata: bool,
}

#[derive(Clone, Copy)]
enum Step<'n> {
    Field(&'n str),
    Item,
}

impl<'n> Location<'n> {
    const fn of_resource(resource: &'n Node) -> Self {
        Self {
            resource,
            steps: Vec::new(),
            is_metadata: false,
        }
    }

    fn step(&self, step: Step<'n>) -> Self {
        let mut inner = self.clone();
        let is_metadata = matches!(step, Step::Field("apiVersion" | "kind" | "metadata"));
        inner.is_metadata |= self.steps.is_empty() && is_metadata;
        inner.steps.push(step);
        inner
    }

    /// A resource with only `value`, at this position.
    fn resource_with(&self, value: &Value) -> Value {
        let mut whole = json!({"apiVersion": "validation/v1", "kind": "Validation"});
        let steps = self.steps.iter().rev();
        let part = steps.fold(value.clone(), |value, step| match step {
            Step::Field(name) => json!({*name: value}),
            Step::Item => json!([value]),
        });
        if let (Value::Object(whole), Value::Object(part)) = (&mut whole, part) {
            whole.extend(part);
        }
        whole
    }
}

impl Defaults {
    fn node(
        &mut self,
        node: &Node,
        rules: Option<&Rules>,
        path: &Path<'_>,
        location: &Location<'_>,
    ) {
        let own = Location::of_resource(node);
        let location = if node.embedded { &own } else { location };
        if let Some(default) = &node.default {
            self.default((node, rules), default, &path.field("default"), location);
        }
        // Values of a map have no defaults: there is no object to fill them into.
        if let Some(each) = &node.items {
            let rules = rules.and_then(|rules| rules.items.as_deref());
            self.node(
                each,
                rules,
                &path.field("items"),
                &location.step(Step::Item),
            );
        }
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            let rules = rules.and_then(|rules| rules.properties.get(name));
            let location = location.step(Step::Field(name));
            self.node(property, rules, &properties.key(name), &location);
        }
    }

    fn default(
        &mut self,
        (node, rules): (&Node, Option<&Rules>),
        default: &Value,
        path: &Path<'_>,
        location: &Location<'_>,
    ) {
        let usable = if location.is_metadata {
            let resource = location.resource_with(default);
            let around = (location.resource, &resource, self.version);
            let errors = Structural::check_metadata_default(node, default, path, around);
            let usable = errors.is_empty();
            self.errors.extend(errors);
            usable
        } else {
            let how = (location.steps.is_empty(), self.version);
            let (errors, usable) = Structural::check_default(node, default, path, how);
            self.errors.extend(errors);
            usable
        };
        let Some(rules) = rules.filter(|_| usable) else {
            return;
        };
        // Runs the rules with the value as its own previous state, and as a new value.
        self.run
            .default((rules, node), path, default, Some(default));
        if self.run.errors.is_empty() {
            self.run.default((rules, node), path, default, None);
        }
        self.errors.append(&mut self.run.errors);
    }
}
