//! What a schema may say in a definition beyond being structural, and whether its rules
//! compile.

use serde_json::Value;

use crate::crd_rules::{Rule, Rules, Run, field_path};
use crate::field::Path;
use crate::schema::Structural;
use crate::schema::node::{Additional, Node, RuleSource};
use crate::{FieldError, KubeVersion, quote};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META: [&str; 3] = ["metadata", "kind", "apiVersion"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks a schema, and its rules if they were compiled.
pub(super) fn check(
    root: &Node,
    rules: Option<&Rules>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let place = Place {
        root: true,
        ..Place::default()
    };
    let found = node(root, rules, path, &place);
    let mut errors = found.schema;
    errors.extend(found.rules);
    errors
}

/// Checks every default against its own schema and rules.
pub(super) fn defaults(
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

/// What is known about the place of a node.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    /// Inside of `apiVersion`, `kind` or `metadata`.
    in_meta: bool,
    /// Why no default may be set here.
    no_default: Option<String>,
    /// The nearest list or map above whose entries cannot be told apart over time.
    uncorrelated: Option<String>,
}

/// Errors of the schema, and errors of the rules, which are left out where the schema they
/// are about has errors of its own.
#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
}

impl Found {
    fn merge(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
    }
}

fn node(node: &Node, rules: Option<&Rules>, path: &Path<'_>, place: &Place) -> Found {
    let mut found = Found::default();
    keywords(node, path, place, &mut found.schema);
    children(node, rules, path, place, &mut found);
    branches(node, path, place, &mut found);
    items(node, rules, path, place, &mut found);
    list_and_map_types(node, path, &mut found.schema);
    for (at, source) in node.rules.iter().enumerate() {
        let rules = path.field("x-kubernetes-validations");
        rule_words(source, node, &rules.index(at), &mut found.schema);
    }
    if let Some(rules) = rules
        && found.schema.is_empty()
    {
        let path = path.field("x-kubernetes-validations");
        for (at, rule) in rules.own.iter().enumerate() {
            rule_errors(rule, &path.index(at), place, &mut found.rules);
        }
    }
    found
}

fn keywords(node: &Node, path: &Path<'_>, place: &Place, errors: &mut Vec<FieldError>) {
    let mut forbid = |name: &str, detail: &str| {
        errors.push(FieldError::forbidden(path.field(name), detail));
    };
    if let (Some(reason), true) = (&place.no_default, node.default.is_some()) {
        forbid("default", &format!("must not be set {reason}"));
    }
    for words in &node.extras.unsupported {
        let keyword = words.split(' ').next().unwrap_or(words);
        forbid(keyword, words);
    }
    if node.extras.items_is_list {
        forbid("items", "items must be a schema object and not an array");
    }
    if place.in_meta && node.embedded {
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
    place: &Place,
    found: &mut Found,
) {
    let below = Place {
        root: false,
        ..place.clone()
    };
    let at = path.field("additionalProperties");
    let restricts = matches!(
        parent.additional,
        Additional::Each(_) | Additional::Allowed(false)
    );
    if restricts && !parent.properties.is_empty() {
        let detail = "additionalProperties and properties are mutual exclusive";
        found.schema.push(FieldError::forbidden(at, detail));
    }
    if let Some(each) = parent.additional.schema() {
        let mut below = below.clone();
        if place.in_meta {
            let reason = "inside additionalProperties applying to object metadata";
            below.no_default = Some(reason.to_owned());
        }
        let rules = rules.and_then(|rules| rules.additional.as_deref());
        found.merge(node(each, rules, &at, &below));
    }
    let at = path.field("properties");
    for (name, property) in &parent.properties {
        let mut below = below.clone();
        let known = ["atomic", "granular"];
        let map_type = parent.map_type.as_deref();
        if map_type.is_some_and(|map_type| !known.contains(&map_type)) {
            below.uncorrelated.get_or_insert_with(|| path.to_string());
        }
        if (place.root || parent.embedded) && META.contains(&name.as_str()) {
            below.in_meta = true;
            if place.root {
                below.no_default = Some(format!("in top-level {name}"));
            }
        }
        let rules = rules.and_then(|rules| rules.properties.get(name));
        found.merge(node(property, rules, &at.key(name), &below));
    }
}

fn branches(parent: &Node, path: &Path<'_>, place: &Place, found: &mut Found) {
    let below = Place {
        root: false,
        ..place.clone()
    };
    let checks = &parent.checks;
    if let Some(not) = &checks.not {
        found.merge(node(not, None, &path.field("not"), &below));
    }
    for (name, branches) in [
        ("allOf", &checks.all_of),
        ("oneOf", &checks.one_of),
        ("anyOf", &checks.any_of),
    ] {
        let path = path.field(name);
        for (at, branch) in branches.iter().enumerate() {
            found.merge(node(branch, None, &path.index(at), &below));
        }
    }
}

fn items(
    parent: &Node,
    rules: Option<&Rules>,
    path: &Path<'_>,
    place: &Place,
    found: &mut Found,
) {
    let Some(each) = &parent.items else {
        return;
    };
    let mut below = Place {
        root: false,
        ..place.clone()
    };
    if parent.list_type.as_deref() != Some("map") {
        below.uncorrelated.get_or_insert_with(|| path.to_string());
    }
    let rules = rules.and_then(|rules| rules.items.as_deref());
    found.merge(node(each, rules, &path.field("items"), &below));
}

fn list_and_map_types(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(map_type) = node.map_type.as_deref() {
        wrong_kind(node, "object", "x-kubernetes-map-type", path, errors);
        if !["atomic", "granular"].contains(&map_type) {
            let path = path.field("x-kubernetes-map-type");
            let known = ["atomic", "granular"];
            errors.push(FieldError::not_supported(path, map_type.into(), known));
        }
    }
    let list_type = node.list_type.as_deref();
    if let Some(list_type) = list_type {
        wrong_kind(node, "array", "x-kubernetes-list-type", path, errors);
        if node.kind == "array" && list_type == "set" {
            set_items(node, path, errors);
        }
        if !["atomic", "set", "map"].contains(&list_type) {
            let path = path.field("x-kubernetes-list-type");
            let known = ["atomic", "set", "map"];
            errors.push(FieldError::not_supported(path, list_type.into(), known));
        }
    }
    if !node.list_keys.is_empty() && list_type != Some("map") {
        let path = path.field("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(path, detail),
            Some(other) => FieldError::invalid(path, other.into(), detail),
        });
    }
    if list_type == Some("map") {
        map_list(node, path, errors);
    }
    nullable_items(node, path, errors);
}

fn wrong_kind(
    node: &Node,
    wanted: &str,
    keyword: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = path.field("type");
    let detail = format!("must be {wanted} if {keyword} is specified");
    match node.kind.as_str() {
        "" => errors.push(FieldError::required(path, detail)),
        kind if kind != wanted => {
            errors.push(FieldError::invalid(path, kind.into(), detail))
        }
        _ => {}
    }
}

/// Items of a set are compared whole, so that they must not be merged field by field.
fn set_items(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(each) = node.items.as_deref() else {
        return;
    };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let path = path.field("items");
    let value = each.list_type.as_deref().map_or(Value::Null, Value::from);
    let atomic_list = each.list_type.as_deref().is_none_or(|it| it == "atomic");
    if each.kind == "array" && !atomic_list {
        let path = path.field("x-kubernetes-list-type");
        errors.push(FieldError::invalid(path, value, detail));
    } else if each.kind == "object" && each.map_type.as_deref() != Some("atomic") {
        let path = path.field("x-kubernetes-map-type");
        errors.push(FieldError::invalid(path, value, detail));
    }
}

fn map_list(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let keys = path.field("x-kubernetes-list-map-keys");
    if node.list_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys, detail));
    }
    let at = path.field("items");
    let Some(each) = node.items.as_deref() else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at, detail));
        return;
    };
    if each.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let kind = each.kind.as_str().into();
        errors.push(FieldError::invalid(at.field("type"), kind, detail));
        return;
    }
    let properties = at.field("properties");
    for (index, key) in node.list_keys.iter().enumerate() {
        let all = || Value::from(node.list_keys.clone());
        match each.properties.get(key) {
            Some(property) if matches!(property.kind.as_str(), "array" | "object") => {
                let detail = "must be a scalar type if parent array's \
                              x-kubernetes-list-type is map";
                let path = properties.key(key);
                let kind = each.kind.as_str().into();
                errors.push(FieldError::invalid(path.field("type"), kind, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(keys, all(), detail));
            }
        }
        if node
            .list_keys
            .iter()
            .take(index)
            .any(|earlier| earlier == key)
        {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(keys, all(), detail));
        }
    }
}

fn nullable_items(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (Some(each), Some(list_type @ ("set" | "map"))) =
        (node.items.as_deref(), node.list_type.as_deref())
    else {
        return;
    };
    let at = path.field("items");
    if each.nullable {
        let detail =
            format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at.field("nullable"), detail));
    }
    if list_type == "set" {
        return;
    }
    let properties = at.field("properties");
    for key in &node.list_keys {
        let Some(property) = each.properties.get(key) else {
            continue;
        };
        let path = properties.key(key);
        if !each.checks.required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have \
                          a default or be a required property";
            errors.push(FieldError::required(path.field("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be \
                          nullable";
            errors.push(FieldError::forbidden(path.field("nullable"), detail));
        }
    }
}

/// What can be said about a rule without compiling it.
fn rule_words(
    source: &RuleSource,
    node: &Node,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let message = source.message.trim();
    let given = |text: &str| Value::from(text);
    if source.rule.trim().is_empty() {
        let detail = "rule is not specified";
        errors.push(FieldError::required(path.field("rule"), detail));
    } else if !source.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        let value = given(&source.message);
        errors.push(FieldError::invalid(path.field("message"), value, detail));
    } else if has_lines(message) {
        let detail = "must not contain line breaks";
        let value = given(&source.message);
        errors.push(FieldError::invalid(path.field("message"), value, detail));
    } else if has_lines(source.rule.trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(path.field("message"), detail));
    }
    let expression = &source.message_expression;
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(
            path.field("messageExpression"),
            detail,
        ));
    }
    if let Some(reason) = source.reason.as_deref()
        && !REASONS.contains(&reason)
    {
        let path = path.field("reason");
        errors.push(FieldError::not_supported(path, given(reason), REASONS));
    }
    let at = path.field("fieldPath");
    let field = &source.field_path;
    let mut invalid = |detail: &str| {
        errors.push(FieldError::invalid(at, given(field), detail));
    };
    if !field.is_empty() && field.trim().is_empty() {
        invalid("must be non-empty if specified");
    }
    if has_lines(field) {
        invalid("must not contain line breaks");
    }
    if !field.is_empty() && field_path::parse(field, node).is_err() {
        invalid("must be a valid path");
    }
}

/// What compiling a rule found.
fn rule_errors(
    rule: &Rule,
    path: &Path<'_>,
    place: &Place,
    errors: &mut Vec<FieldError>,
) {
    let source = &rule.source;
    if let Some(why) = rule.error() {
        let shown = shown(source);
        errors.push(FieldError::invalid_shown(path.field("rule"), &shown, why));
    }
    if let Some(why) = rule.message_error() {
        let path = path.field("messageExpression");
        errors.push(FieldError::invalid_shown(path, &shown(source), why));
    }
    match (&place.uncorrelated, source.optional_old_self) {
        (Some(within), _) if rule.uses_old() => {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                 {within}"
            );
            let value = source.rule.as_str().into();
            errors.push(FieldError::invalid(path.field("rule"), value, detail));
        }
        (_, Some(optional)) if !rule.uses_old() => {
            let path = path.field("optionalOldSelf");
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(path, optional.into(), detail));
        }
        _ => {}
    }
}

/// A rule as Kubernetes prints its own form of it.
fn shown(source: &RuleSource) -> String {
    let json = |text: &str| quote::Json(&text.into()).to_string();
    let or_null =
        |value: Option<Value>| quote::Json(&value.unwrap_or_default()).to_string();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\
         \"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json(&source.rule),
        json(&source.message),
        json(&source.message_expression),
        or_null(source.reason.as_deref().map(Value::from)),
        json(&source.field_path),
        or_null(source.optional_old_self.map(Value::from)),
    )
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
        let errors = Structural::check_default(node, default, path, self.version);
        if !errors.is_empty() {
            self.errors.extend(errors);
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
