//! Validates a schema in a definition beyond being structural, and whether its rules compile
//! and are within the cost limits.

use super::budget::RuleCosts;
use super::ratchet::Tolerated;
use super::{list_type, rule};
use crate::FieldError;
use crate::crd_rules::Rules;
use crate::field::Path;
use crate::schema::node::{Additional, Extras, Node};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// Validates a schema, and its rules if they were compiled, except for the `tolerated` errors.
pub(super) fn check(
    root: &Node,
    rules: Option<&Rules>,
    path: &Path<'_>,
    tolerated: &Tolerated,
) -> Vec<FieldError> {
    let context = NodeContext {
        root: true,
        in_meta: false,
        no_default: None,
        uncorrelated: None,
        has_rules: false,
        is_untyped: false,
        tolerated,
    };
    let result = node(root, rules, path, &context);
    let mut errors = result.schema;
    errors.extend(result.rules);
    errors.extend(result.costs.errors(path));
    errors
}

/// The context of a node.
#[derive(Clone)]
struct NodeContext<'p> {
    root: bool,
    /// Whether it is inside `apiVersion`, `kind` or `metadata`.
    in_meta: bool,
    /// Why a default is not allowed here.
    no_default: Option<String>,
    /// The nearest ancestor list or map whose entries cannot be correlated with the old object.
    uncorrelated: Option<&'p Path<'p>>,
    /// Whether the node or one that it is in has rules.
    has_rules: bool,
    /// Whether such a node has no type that rules can see, so that no rule below it has one.
    is_untyped: bool,
    tolerated: &'p Tolerated,
}

/// Errors of the schema, and errors of the rules. Errors of a rule are omitted if the schema it
/// applies to has errors.
#[derive(Default)]
struct SchemaErrors {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
    costs: RuleCosts,
}

impl SchemaErrors {
    fn merge(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
        self.costs.merge(other.costs);
    }
}

fn node<'p>(
    node: &Node,
    rules: Option<&Rules>,
    path: &'p Path<'p>,
    context: &NodeContext<'p>,
) -> SchemaErrors {
    let has_rules = context.has_rules || !node.rules.is_empty();
    let untyped_here = has_rules && rules.is_some_and(|it| it.untyped);
    let context = &NodeContext {
        has_rules,
        is_untyped: context.is_untyped || untyped_here,
        ..context.clone()
    };
    let mut result = SchemaErrors::default();
    let counts = |it: &FieldError| !context.tolerated.has(it);
    keywords(node, path, context, &mut result.schema);
    result.schema.retain(counts);
    result.merge(children(node, rules, path, context));
    result.merge(branches(node, path, context));
    result.merge(items(node, rules, path, context));
    let mut of_lists = Vec::new();
    list_type::check(node, path, &mut of_lists);
    result.schema.extend(of_lists.into_iter().filter(counts));
    for (at, source) in node.rules.iter().enumerate() {
        let rules = path.field("x-kubernetes-validations");
        let path = rules.index(at);
        rule::text_errors(source, &path, &mut result.schema);
        // If the schema is not structural, its field paths are unknown.
        if !source.field_path.is_empty() && is_structural(node) {
            rule::field_path(source, node, &path, &mut result.schema);
        }
    }
    if let Some(rules) = rules
        && result.schema.is_empty()
        && !node.rules.is_empty()
    {
        let path = path.field("x-kubernetes-validations");
        let uncorrelated = context.uncorrelated;
        if context.is_untyped {
            let detail = "internal error: failed to construct type information for \
                          x-kubernetes-validations rules: unable to convert structural \
                          schema to CEL declarations";
            result.rules.push(FieldError::internal(path, detail));
            return result;
        }
        for (at, rule) in rules.own.iter().enumerate() {
            let into = (&mut result.rules, &mut result.costs);
            rule::compiled(rule, &path.index(at), uncorrelated, into);
        }
    }
    result
}

/// Whether the node and its descendants have no parts that a structural schema cannot
/// represent.
fn is_structural(node: &Node) -> bool {
    let Extras {
        unsupported,
        preserve_false,
        items_is_list,
        ..
    } = &node.extras;
    let checks = &node.checks;
    let branches = [&checks.all_of, &checks.one_of, &checks.any_of];
    let own = unsupported.is_empty() && !preserve_false && !items_is_list;
    own && node.items.as_deref().is_none_or(is_structural)
        && node.additional.schema().is_none_or(is_structural)
        && node.properties.values().all(is_structural)
        && checks.not.as_deref().is_none_or(is_structural)
        && branches.into_iter().flatten().all(is_structural)
}

fn keywords(
    node: &Node,
    path: &Path<'_>,
    context: &NodeContext<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut forbid = |name: &str, detail: &str| {
        errors.push(FieldError::forbidden(path.field(name), detail));
    };
    if let (Some(reason), true) = (&context.no_default, node.default.is_some()) {
        forbid("default", &format!("must not be set {reason}"));
    }
    for words in &node.extras.unsupported {
        let keyword = words.split(' ').next().unwrap_or(words);
        forbid(keyword, words);
    }
    if node.extras.items_is_list {
        forbid("items", "items must be a schema object and not an array");
    }
    if context.in_meta && node.embedded {
        let detail = "must not be used inside of resource meta";
        forbid("x-kubernetes-embedded-resource", detail);
    }
    if node.checks.unique_items {
        let detail = "uniqueItems cannot be set to true since the runtime complexity \
                      becomes quadratic";
        forbid("uniqueItems", detail);
    }
    if node.kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        forbid("type", detail);
    }
    if !node.kind.is_empty() && !TYPES.contains(&node.kind.as_str()) {
        let kind = node.kind.as_str().into();
        errors.push(FieldError::not_supported(path.field("type"), kind, TYPES));
    }
    if node.extras.preserve_false {
        let path = path.field("x-kubernetes-preserve-unknown-fields");
        let detail = "must be true or undefined";
        errors.push(FieldError::invalid(path, false.into(), detail));
    }
}

fn children(
    parent: &Node,
    rules: Option<&Rules>,
    path: &Path<'_>,
    context: &NodeContext<'_>,
) -> SchemaErrors {
    let mut result = SchemaErrors::default();
    let below = NodeContext {
        root: false,
        ..context.clone()
    };
    let at = path.field("additionalProperties");
    let restricts = matches!(
        parent.additional,
        Additional::Each(_) | Additional::Allowed(false)
    );
    if restricts && !parent.properties.is_empty() {
        let detail = "additionalProperties and properties are mutual exclusive";
        result.schema.push(FieldError::forbidden(at, detail));
    }
    if let Some(each) = parent.additional.schema() {
        let mut below = below.clone();
        if context.in_meta {
            let reason = "inside additionalProperties applying to object metadata";
            below.no_default = Some(reason.to_owned());
        }
        let rules = rules.and_then(|rules| rules.additional.as_deref());
        result.merge(node(each, rules, &at, &below));
    }
    let at = path.field("properties");
    for (name, property) in &parent.properties {
        let mut below = below.clone();
        let known = ["atomic", "granular"];
        let map_type = parent.map_type.as_deref();
        if map_type.is_some_and(|map_type| !known.contains(&map_type)) {
            below.uncorrelated.get_or_insert(path);
        }
        if (context.root || parent.embedded) && META.contains(&name.as_str()) {
            below.in_meta = true;
            if context.root {
                below.no_default = Some(format!("in top-level {name}"));
            }
        }
        let rules = rules.and_then(|rules| rules.properties.get(name));
        result.merge(node(property, rules, &at.key(name), &below));
    }
    result
}

fn branches(parent: &Node, path: &Path<'_>, context: &NodeContext<'_>) -> SchemaErrors {
    let mut result = SchemaErrors::default();
    let below = NodeContext {
        root: false,
        ..context.clone()
    };
    let checks = &parent.checks;
    if let Some(not) = &checks.not {
        result.merge(node(not, None, &path.field("not"), &below));
    }
    for (name, branches) in [
        ("allOf", &checks.all_of),
        ("oneOf", &checks.one_of),
        ("anyOf", &checks.any_of),
    ] {
        let path = path.field(name);
        for (at, branch) in branches.iter().enumerate() {
            result.merge(node(branch, None, &path.index(at), &below));
        }
    }
    result
}

fn items(
    parent: &Node,
    rules: Option<&Rules>,
    path: &Path<'_>,
    context: &NodeContext<'_>,
) -> SchemaErrors {
    let Some(each) = &parent.items else {
        return SchemaErrors::default();
    };
    let mut below = NodeContext {
        root: false,
        ..context.clone()
    };
    if parent.list_type.as_deref() != Some("map") {
        below.uncorrelated.get_or_insert(path);
    }
    let rules = rules.and_then(|rules| rules.items.as_deref());
    node(each, rules, &path.field("items"), &below)
}
