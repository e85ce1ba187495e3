//! Reads a node of a schema from JSON.

use std::sync::Arc;

use kubemu_cel::json_field;
use serde_json::{Map, Value};

use super::entries::Entries;
use super::node::{Additional, Checks, Extras, Node, NodeContents, Pattern, RuleSource};
use crate::FieldError;
use crate::field::Path;

/// JSON Schema keywords that are not allowed in CRDs, with Kubernetes' message for each.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("id", "id is not supported"),
    ("$ref", "$ref is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("$schema", "schema is not supported"),
];

/// The flags and texts that are the same as absent if they are `false` or empty. Of the other
/// fields, zero and an empty list are a constraint.
const ZERO_IS_ABSENT: &[&str] = &[
    "description",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "nullable",
    "pattern",
    "title",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];

/// The other fields that constrain values or describe the node. An empty `allOf`, `anyOf`,
/// `oneOf` or `enum` is the same as an absent one.
const CONSTRAINTS: &[&str] = &[
    "additionalProperties",
    "example",
    "externalDocs",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "required",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// The lists of which only a nonempty one counts.
const EMPTY_IS_ABSENT: &[&str] = &["allOf", "anyOf", "enum", "oneOf"];

/// The maximum nesting of nodes, so that no schema exhausts the stack; real schemas are far
/// below it.
const MAX_DEPTH: usize = 64;

/// Reads a schema and collects the type errors.
pub(crate) struct Reader {
    pub(crate) errors: Vec<FieldError>,
    depth: usize,
}

impl Reader {
    pub(crate) const fn new() -> Self {
        Self {
            errors: Vec::new(),
            depth: 0,
        }
    }

    /// Null is an empty schema, as for Go's decoder.
    pub(crate) fn node(&mut self, json: &Value, path: &Path<'_>) -> Node {
        let Value::Object(fields) = json else {
            if !json.is_null() {
                self.wrong(path, json, "must be an object");
            }
            return Node::default();
        };
        if self.depth >= MAX_DEPTH {
            self.wrong(
                path,
                &Value::Null,
                "must not be nested deeper than 64 levels",
            );
            return Node::default();
        }
        self.depth += 1;
        let mut part = NodeReader::of(self, fields, path);
        let node = part.node();
        self.depth -= 1;
        node
    }

    fn wrong(&mut self, path: &Path<'_>, value: &Value, detail: &str) {
        self.errors
            .push(FieldError::invalid(*path, value.clone(), detail));
    }
}

/// One JSON object that is converted to a [`Node`].
struct NodeReader<'a> {
    reader: &'a mut Reader,
    fields: &'a Map<String, Value>,
    /// The [bits](name_bit) of all names.
    name_bits: u64,
    path: &'a Path<'a>,
}

/// A bit for a name, so that most absent names need no lookup.
fn name_bit(name: &str) -> u64 {
    let first = name.bytes().next().map_or(0, usize::from);
    1 << ((name.len() * 5 + first) % 64)
}

impl<'a> NodeReader<'a> {
    fn of(
        reader: &'a mut Reader,
        fields: &'a Map<String, Value>,
        path: &'a Path<'a>,
    ) -> Self {
        let name_bits = fields
            .keys()
            .fold(0, |name_bits, name| name_bits | name_bit(name));
        Self {
            reader,
            fields,
            name_bits,
            path,
        }
    }

    fn node(&mut self) -> Node {
        let (additional, items) = (self.additional(), self.items());
        let mut node = Node {
            kind: self.text("type"),
            nullable: self.flag("nullable"),
            int_or_string: self.flag("x-kubernetes-int-or-string"),
            preserve_unknown: self.flag("x-kubernetes-preserve-unknown-fields"),
            embedded: self.flag("x-kubernetes-embedded-resource"),
            properties: self.properties(),
            additional,
            items,
            default: self.present("default").cloned(),
            list_type: self.optional_text("x-kubernetes-list-type"),
            list_keys: self.texts("x-kubernetes-list-map-keys"),
            map_type: self.optional_text("x-kubernetes-map-type"),
            rules: self.rules(),
            checks: self.checks(),
            extras: self.extras(),
            contents: NodeContents::default(),
        };
        node.sum_up();
        node
    }

    fn checks(&mut self) -> Checks {
        Checks {
            format: self.text("format"),
            maximum: self.number("maximum"),
            exclusive_maximum: self.flag("exclusiveMaximum"),
            minimum: self.number("minimum"),
            exclusive_minimum: self.flag("exclusiveMinimum"),
            max_length: self.integer("maxLength"),
            min_length: self.integer("minLength"),
            pattern: self.pattern(),
            max_items: self.integer("maxItems"),
            min_items: self.integer("minItems"),
            unique_items: self.flag("uniqueItems"),
            multiple_of: self.number("multipleOf"),
            max_properties: self.integer("maxProperties"),
            min_properties: self.integer("minProperties"),
            allowed: self.list("enum").map(<[_]>::to_vec).unwrap_or_default(),
            required: self.texts("required"),
            all_of: self.nodes("allOf"),
            any_of: self.nodes("anyOf"),
            one_of: self.nodes("oneOf"),
            not: self.child("not").map(Box::new),
        }
    }

    fn extras(&mut self) -> Extras {
        let unsupported = UNSUPPORTED
            .iter()
            .filter(|(key, _)| self.present(key).is_some())
            .map(|(_, words)| *words)
            .collect();
        let preserve = self.present("x-kubernetes-preserve-unknown-fields");
        Extras {
            description: !self.text("description").is_empty(),
            title: !self.text("title").is_empty(),
            has_properties: self.present("properties").is_some(),
            is_plain: self.is_plain(),
            unsupported,
            preserve_false: preserve == Some(&Value::Bool(false)),
            items_is_list: self.present("items").is_some_and(Value::is_array),
        }
    }

    fn is_plain(&self) -> bool {
        let is_absent = |name: &&str| self.present(name).is_none();
        let is_zero = |name: &&str| {
            let value = self.present(name);
            value.is_none_or(|it| *it == false || *it == "")
        };
        let is_empty = |name: &&str| {
            let list = self.present(name).and_then(Value::as_array);
            list.is_none_or(Vec::is_empty)
        };
        ZERO_IS_ABSENT.iter().all(is_zero)
            && CONSTRAINTS.iter().all(is_absent)
            && EMPTY_IS_ABSENT.iter().all(is_empty)
    }

    /// A field that is set and not null; null represents absence.
    fn present(&self, name: &str) -> Option<&'a Value> {
        if self.name_bits & name_bit(name) == 0 {
            return None;
        }
        json_field(self.fields, name).filter(|value| !value.is_null())
    }

    fn expect<T>(
        &mut self,
        name: &str,
        convert: impl Fn(&'a Value) -> Option<T>,
        wanted: &str,
    ) -> Option<T> {
        let value = self.present(name)?;
        let converted = convert(value);
        if converted.is_none() {
            let path = self.path.field(name);
            self.reader.wrong(&path, value, wanted);
        }
        converted
    }

    fn flag(&mut self, name: &str) -> bool {
        self.expect(name, Value::as_bool, "must be a boolean")
            .unwrap_or(false)
    }

    fn text(&mut self, name: &str) -> String {
        self.optional_text(name).unwrap_or_default()
    }

    fn optional_text(&mut self, name: &str) -> Option<String> {
        self.expect(name, Value::as_str, "must be a string")
            .map(str::to_owned)
    }

    fn number(&mut self, name: &str) -> Option<f64> {
        self.expect(name, Value::as_f64, "must be a number")
    }

    fn integer(&mut self, name: &str) -> Option<i64> {
        self.expect(name, Value::as_i64, "must be an integer")
    }

    fn list(&mut self, name: &str) -> Option<&'a [Value]> {
        self.expect(
            name,
            |value| value.as_array().map(Vec::as_slice),
            "must be an array",
        )
    }

    fn texts(&mut self, name: &str) -> Vec<String> {
        let list = self.list(name).unwrap_or_default();
        let text = |it: &'a Value| it.as_str().or_else(|| it.is_null().then_some(""));
        let texts: Vec<_> = list.iter().filter_map(text).collect();
        if texts.len() != list.len() {
            let path = self.path.field(name);
            let value = json_field(self.fields, name).unwrap_or(&Value::Null);
            self.reader
                .wrong(&path, value, "must be an array of strings");
        }
        texts.into_iter().map(str::to_owned).collect()
    }

    fn child(&mut self, name: &str) -> Option<Node> {
        let value = self.present(name)?;
        Some(self.reader.node(value, &self.path.field(name)))
    }

    fn nodes(&mut self, name: &str) -> Vec<Node> {
        let list = self.list(name).unwrap_or_default();
        let path = self.path.field(name);
        list.iter()
            .enumerate()
            .map(|(at, json)| self.reader.node(json, &path.index(at)))
            .collect()
    }

    fn properties(&mut self) -> Entries<Node> {
        let Some(fields) =
            self.expect("properties", Value::as_object, "must be an object")
        else {
            return Entries::default();
        };
        let path = self.path.field("properties");
        fields
            .iter()
            .map(|(name, json)| (name.clone(), self.reader.node(json, &path.key(name))))
            .collect()
    }

    fn additional(&mut self) -> Additional {
        match self.present("additionalProperties") {
            None => Additional::Unset,
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            Some(json) => {
                let path = self.path.field("additionalProperties");
                Additional::Each(Box::new(self.reader.node(json, &path)))
            }
        }
    }

    /// Kubernetes' decoder ignores what is neither a schema nor a list of them.
    fn items(&mut self) -> Option<Box<Node>> {
        let is_schema = self.present("items").is_some_and(Value::is_object);
        is_schema.then(|| self.child("items").map(Box::new))?
    }

    fn pattern(&mut self) -> Option<Pattern> {
        let source = self.text("pattern");
        (!source.is_empty()).then(|| Pattern {
            regex: kubemu_gostd::regexp::Pattern::new(&source),
            source,
        })
    }

    fn rules(&mut self) -> Vec<Arc<RuleSource>> {
        let list = self.list("x-kubernetes-validations").unwrap_or_default();
        let path = self.path.field("x-kubernetes-validations");
        let mut rules = Vec::with_capacity(list.len());
        for (at, json) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = match json {
                Value::Object(fields) => fields,
                Value::Null => {
                    rules.push(Arc::default());
                    continue;
                }
                _ => {
                    self.reader.wrong(&path, json, "must be an object");
                    continue;
                }
            };
            let mut part = NodeReader::of(self.reader, fields, &path);
            rules.push(Arc::new(RuleSource {
                rule: part.text("rule"),
                message: part.text("message"),
                message_expression: part.text("messageExpression"),
                reason: part.optional_text("reason"),
                field_path: part.text("fieldPath"),
                optional_old_self: part
                    .present("optionalOldSelf")
                    .map(|_| part.flag("optionalOldSelf")),
            }));
        }
        rules
    }
}
