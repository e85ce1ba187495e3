//! Validates that a schema is structural: every field is declared once, with its type, outside
//! of the combinations, which only constrain values.

use super::node::{Additional, Node};
use crate::FieldError;
use crate::field::Path;

/// All errors of a schema that is not structural, sorted by text.
pub(super) fn check(root: &Node, path: &Path<'_>) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new() };
    check.node(root, Level::Root, path);
    check.completeness(root, Some(root), path, path);
    check.errors.sort_by_cached_key(ToString::to_string);
    check.errors
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn forbid(&mut self, path: Path<'_>, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn require(&mut self, path: Path<'_>, detail: impl Into<String>) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn invalid(
        &mut self,
        path: Path<'_>,
        value: impl Into<serde_json::Value>,
        detail: &str,
    ) {
        self.errors
            .push(FieldError::invalid(path, value.into(), detail));
    }

    /// Checks the structural part of one node and its descendants.
    fn node(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        self.children(node, level, path);
        self.extensions(node, path);
        let int_or_string = is_int_or_string(&node.checks.any_of);
        let first_all_of = node.checks.all_of.first();
        let nested = first_all_of.is_some_and(|it| is_int_or_string(&it.checks.any_of));
        self.values(node, path, int_or_string, nested);
        self.kind(node, level, path);
        self.resource_fields(node, level, path);
    }

    fn children(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        let items = path.field("items");
        match &node.items {
            Some(each) => self.node(each, Level::Item, &items),
            None if node.kind == "array" => self.require(items, "must be specified"),
            None => {}
        }
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            self.node(property, Level::Field, &properties.key(name));
        }
        let additional = path.field("additionalProperties");
        if level == Level::Root && !matches!(node.additional, Additional::Unset) {
            self.forbid(additional, "must not be used at the root");
        }
        if let Some(each) = node.additional.schema() {
            self.node(each, Level::Field, &additional);
        }
    }

    fn extensions(&mut self, node: &Node, path: &Path<'_>) {
        const DETAIL: &str = "must be false if x-kubernetes-int-or-string is true";
        if node.int_or_string && node.preserve_unknown {
            let path = path.field("x-kubernetes-preserve-unknown-fields");
            self.invalid(path, true, DETAIL);
        }
        if node.int_or_string && node.embedded {
            self.invalid(path.field("x-kubernetes-embedded-resource"), true, DETAIL);
        }
    }

    fn kind(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        let at = path.field("type");
        if node.embedded && node.kind != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if node.kind.is_empty() {
                self.require(at, detail);
            } else {
                self.invalid(at, node.kind.as_str(), detail);
            }
        } else if node.kind.is_empty() && !node.int_or_string && !node.preserve_unknown {
            self.require(
                at,
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            );
        }
        if node.embedded && !matches!(node.additional, Additional::Unset) {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbid(path.field("additionalProperties"), detail);
        }
        if level == Level::Root && !node.kind.is_empty() && node.kind != "object" {
            self.invalid(at, node.kind.as_str(), "must be object at the root");
        }
    }

    /// Checks `apiVersion`, `kind` and `metadata` of a resource, at the root or embedded.
    fn resource_fields(&mut self, node: &Node, level: Level, path: &Path<'_>) {
        let is_resource = level == Level::Root || node.embedded;
        let properties = path.field("properties");
        for name in ["kind", "apiVersion"] {
            if let Some(property) = node.properties.get(name)
                && is_resource
                && property.kind != "string"
            {
                let at = properties.key(name);
                self.invalid(at.field("type"), property.kind.as_str(), "must be string");
            }
        }
        if let Some(metadata) = node.properties.get("metadata") {
            let at = properties.key("metadata");
            if is_resource && metadata.kind != "object" {
                self.invalid(at.field("type"), metadata.kind.as_str(), "must be object");
            }
            if level == Level::Root && !restricts_names_only(metadata) {
                let detail = "must not specify anything other than name and generateName, \
                              but metadata is implicitly specified";
                self.forbid(at, detail);
            }
        }
        if node.embedded && !node.preserve_unknown && node.properties.is_empty() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true \
                          without x-kubernetes-preserve-unknown-fields";
            self.require(properties, detail);
        }
    }

    /// Checks the value constraints of one node.
    fn values(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        skip_any_of: bool,
        skip_nested: bool,
    ) {
        let checks = &node.checks;
        let (any_of, all_of) = (path.field("anyOf"), path.field("allOf"));
        if !skip_any_of {
            for (at, branch) in checks.any_of.iter().enumerate() {
                self.nested(branch, &any_of.index(at), false);
            }
        }
        for (at, branch) in checks.all_of.iter().enumerate() {
            self.nested(branch, &all_of.index(at), skip_nested && at == 0);
        }
        let one_of = path.field("oneOf");
        for (at, branch) in checks.one_of.iter().enumerate() {
            self.nested(branch, &one_of.index(at), false);
        }
        if let Some(not) = &checks.not {
            self.nested(not, &path.field("not"), false);
        }
        if let Some(pattern) = &checks.pattern
            && let Err(why) = &pattern.regex
        {
            let detail = format!("must be a valid regular expression, but isn't: {why}");
            self.invalid(path.field("pattern"), pattern.source.as_str(), &detail);
        }
    }

    /// Checks a branch of a combination: it may only constrain values.
    fn nested(&mut self, node: &Node, path: &Path<'_>, skip_any_of: bool) {
        self.values(node, path, skip_any_of, false);
        if let Some(each) = &node.items {
            self.nested(each, &path.field("items"), false);
        }
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            self.nested(property, &properties.key(name), false);
        }
        let maps = match &node.additional {
            Additional::Unset | Additional::Allowed(false) => false,
            Additional::Allowed(true) | Additional::Each(_) => true,
        };
        let empty = "must be empty to be structural";
        let undefined = "must be undefined to be structural";
        let unset = "must be false to be structural";
        let forbidden = [
            (!node.kind.is_empty(), "type", empty),
            (maps, "additionalProperties", undefined),
            (node.default.is_some(), "default", undefined),
            (node.extras.title, "title", empty),
            (node.extras.description, "description", empty),
            (node.nullable, "nullable", unset),
            (
                node.preserve_unknown,
                "x-kubernetes-preserve-unknown-fields",
                unset,
            ),
            (node.embedded, "x-kubernetes-embedded-resource", unset),
            (node.int_or_string, "x-kubernetes-int-or-string", unset),
            (
                !node.list_keys.is_empty(),
                "x-kubernetes-list-map-keys",
                empty,
            ),
            (
                node.list_type.is_some(),
                "x-kubernetes-list-type",
                undefined,
            ),
            (node.map_type.is_some(), "x-kubernetes-map-type", undefined),
            (!node.rules.is_empty(), "x-kubernetes-validations", empty),
        ];
        for (is_set, name, detail) in forbidden {
            if is_set {
                self.forbid(path.field(name), detail);
            }
        }
        if node.properties.contains_key("metadata") {
            let detail = "must not be specified in a nested context";
            self.forbid(properties.key("metadata"), detail);
        }
    }

    /// Checks that fields constrained by combinations are declared in the structural part.
    fn completeness(
        &mut self,
        values: &Node,
        declared: Option<&Node>,
        at: &Path<'_>,
        constrained: &Path<'_>,
    ) {
        let checks = &values.checks;
        if let Some(not) = &checks.not {
            self.declared(not, declared, at, &constrained.field("not"));
        }
        for (name, branches) in [
            ("allOf", &checks.all_of),
            ("anyOf", &checks.any_of),
            ("oneOf", &checks.one_of),
        ] {
            let path = constrained.field(name);
            for (index, branch) in branches.iter().enumerate() {
                self.declared(branch, declared, at, &path.index(index));
            }
        }
    }

    fn declared(
        &mut self,
        values: &Node,
        declared: Option<&Node>,
        at: &Path<'_>,
        constrained: &Path<'_>,
    ) {
        let Some(node) = declared else {
            self.require(*at, format!("because it is defined in {constrained}"));
            return;
        };
        self.completeness(values, declared, at, constrained);
        if let Some(each) = &values.items {
            let (at, constrained) = (at.field("items"), constrained.field("items"));
            self.declared(each, node.items.as_deref(), &at, &constrained);
        }
        let (at, constrained) = (at.field("properties"), constrained.field("properties"));
        for (name, property) in &values.properties {
            let (at, constrained) = (at.key(name), constrained.key(name));
            self.declared(property, node.properties.get(name), &at, &constrained);
        }
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, the only branches that may repeat a type. With
/// any further constraint they are branches like others.
fn is_int_or_string(any_of: &[Node]) -> bool {
    let is_only = |node: &Node, kind: &str| {
        node.kind == kind
            && node.extras.is_plain
            && !node.extras.has_properties
            && node.default.is_none()
    };
    matches!(any_of, [first, second] if is_only(first, "integer") && is_only(second, "string"))
}

/// Whether a root's `metadata` schema restricts only names, which is all that is allowed.
fn restricts_names_only(metadata: &Node) -> bool {
    metadata.extras.is_plain
        && metadata
            .properties
            .keys()
            .all(|name| name == "name" || name == "generateName")
}
