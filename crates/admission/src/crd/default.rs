//! Whether defaults keep the schema and the rules that they are part of.

use serde_json::Value;

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
    defaults.node(root, rules, path);
    defaults.errors
}

/// Walks the defaults of a schema.
struct Defaults {
    version: KubeVersion,
    run: Run,
    errors: Vec<FieldError>,
}

impl Defaults {
    fn node(&mut self, node: &Node, rules: Option<&Rules>, path: &Path<'_>) {
        if let Some(default) = &node.default {
            self.default(node, rules, default, &path.field("default"));
        }
        // Maps have no defaults inside: there is nothing to fill them into.
        if let Some(each) = &node.items {
            let rules = rules.and_then(|rules| rules.items.as_deref());
            self.node(each, rules, &path.field("items"));
        }
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            let rules = rules.and_then(|rules| rules.properties.get(name));
            self.node(property, rules, &properties.key(name));
        }
    }

    fn default(
        &mut self,
        node: &Node,
        rules: Option<&Rules>,
        default: &Value,
        path: &Path<'_>,
    ) {
        let (errors, usable) =
            Structural::check_default(node, default, path, self.version);
        self.errors.extend(errors);
        if !usable {
            return;
        }
        let Some(rules) = rules else {
            return;
        };
        // As if nothing changed, and as if it were new.
        self.run
            .default((rules, node), path, default, Some(default));
        if self.run.errors.is_empty() {
            self.run.default((rules, node), path, default, None);
        }
        self.errors.append(&mut self.run.errors);
    }
}
