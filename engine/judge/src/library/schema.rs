//! Schemas with rules, most of them structural.

use serde_json::{Map, Value, json};

use super::almost_valid_text;
use super::expression::{Expressions, Scope};
use super::kind::Kind;
use super::scope;
use super::value::Values;
use kubemu_judge::random::Random;

/// Names of properties; some must be escaped in an expression, and the last ones have no name in one.
const NAMES: &[&str] = &[
    "a",
    "b",
    "c",
    "size",
    "name",
    "kind",
    "a-b",
    "x_y",
    "namespace",
    "d.e",
    "in",
    "f__g",
    "items",
    "h/i",
    "if",
    "metadata",
    "é",
    "1st",
    "a b",
    "__x__",
];
/// Patterns of Go's syntax.
const PATTERNS: &[&str] = &[
    "^[a-z]+$",
    "^\\d+$",
    "a|b",
    "^$",
    ".*",
    "[[:alpha:]]{1,3}",
    "^[a-c]{0,2}$",
    "\\w-\\w",
];
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "duration",
    "byte",
    "ipv4",
    "ipv6",
    "cidr",
    "uuid",
    "uri",
    "email",
    "hostname",
    "password",
    "binary",
    "int32",
    "nothing",
    "mac",
    "isbn",
    "hexcolor",
    "k8s-short-name",
    "datetime",
    "bsonobjectid",
    "creditcard",
    "ssn",
    "rgbcolor",
];
const REASONS: &[&str] = &[
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
];

/// Generates schemas.
pub(super) struct Schemas<'r> {
    pub(super) random: &'r mut Random,
    /// How many more rules may be added.
    pub(super) rules: usize,
}

impl Schemas<'_> {
    /// The schema of a whole resource.
    pub(super) fn root(&mut self) -> Value {
        let mut properties = Map::new();
        properties.insert("spec".to_owned(), self.object(3));
        if self.random.chance(40) {
            properties.insert("status".to_owned(), self.object(1));
        }
        if self.random.chance(5) {
            let metadata = json!({"type": "object",
                "properties": {"name": {"type": "string", "maxLength": 20}}});
            properties.insert("metadata".to_owned(), metadata);
        }
        let mut root = json!({"type": "object", "properties": properties});
        if self.random.chance(15) {
            self.add_rules(&mut root, true);
        }
        root
    }

    fn node(&mut self, depth: usize) -> Value {
        let mut node = match self.random.below(if depth == 0 { 8 } else { 14 }) {
            0..=2 => self.text(),
            3 => self.number("integer"),
            4 => self.number("number"),
            5 => json!({"type": "boolean"}),
            6 => self.int_or_string(),
            7 => self.formatted(),
            8..=9 => self.object(depth - 1),
            10 => self.map(depth - 1),
            11..=12 => self.list(depth - 1),
            _ => self.open(depth - 1),
        };
        if self.random.chance(8) {
            node["nullable"] = json!(true);
        }
        if self.random.chance(3) {
            self.branch(&mut node);
        }
        if self.random.chance(1) {
            self.invalidate(&mut node);
        }
        if self.random.chance(30) {
            self.add_rules(&mut node, false);
        }
        if self.random.chance(12) {
            let value = Values {
                random: self.random,
            }
            .of(&node, 2);
            node["default"] = value;
        }
        node
    }

    fn text(&mut self) -> Value {
        let mut node = json!({"type": "string"});
        if self.random.chance(85) {
            node["maxLength"] = json!(self.random.pick(&[2, 5, 20, 64, 256]));
        }
        if self.random.chance(10) {
            node["minLength"] = json!(self.random.below(3));
        }
        if self.random.chance(12) {
            node["pattern"] = if self.random.chance(15) {
                json!(almost_valid_text::near(self.random, "pattern"))
            } else {
                json!(self.random.pick(PATTERNS))
            };
        }
        if self.random.chance(12) {
            node["enum"] = json!(["a", "abc", "5m"]);
        }
        node
    }

    fn formatted(&mut self) -> Value {
        let mut node = json!({"type": "string", "format": self.random.pick(FORMATS)});
        if self.random.chance(40) {
            node["format"] =
                json!(self.random.pick(&["date-time", "date", "duration", "byte"]));
        }
        if self.random.chance(50) {
            node["maxLength"] = json!(64);
        }
        node
    }

    fn number(&mut self, kind: &str) -> Value {
        let mut node = json!({"type": kind});
        if self.random.chance(25) {
            node["minimum"] = json!(self.random.pick(&[0, 1, -5]));
            if self.random.chance(20) {
                node["exclusiveMinimum"] = json!(true);
            }
        }
        if self.random.chance(25) {
            node["maximum"] = json!(self.random.pick(&[10, 100, 5]));
        }
        if self.random.chance(8) {
            node["multipleOf"] = json!(self.random.pick(&[2, 3, 5]));
        }
        if self.random.chance(15) {
            node["format"] =
                json!(self.random.pick(&["int32", "int64", "float", "double"]));
        }
        if kind == "integer" && self.random.chance(8) {
            node["enum"] = json!([1, 2, 7]);
        }
        node
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut properties = Map::new();
        for _ in 0..self.random.between(1, 4) {
            let name = self.random.pick(NAMES);
            let node = self.node(depth);
            properties.insert(name.to_owned(), node);
        }
        let mut required: Vec<&str> = Vec::new();
        for name in properties.keys() {
            if self.random.chance(25) {
                required.push(name);
            }
        }
        let mut node = json!({"type": "object"});
        if !required.is_empty() {
            node["required"] = json!(required);
        }
        node["properties"] = Value::Object(properties);
        if self.random.chance(4) {
            node["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        if self.random.chance(3) {
            node["x-kubernetes-map-type"] =
                json!(self.random.pick(&["atomic", "granular"]));
        }
        if self.random.chance(4) {
            node["maxProperties"] = json!(self.random.between(1, 3));
        }
        if self.random.chance(25) {
            self.add_rules(&mut node, false);
        }
        node
    }

    fn map(&mut self, depth: usize) -> Value {
        let each = self.node(depth);
        let mut node = json!({"type": "object", "additionalProperties": each});
        if self.random.chance(80) {
            node["maxProperties"] = json!(self.random.pick(&[1, 2, 5, 20]));
        }
        if self.random.chance(10) {
            node["minProperties"] = json!(1);
        }
        node
    }

    fn list(&mut self, depth: usize) -> Value {
        let items = match self.random.below(4) {
            0 => return self.list_map(depth),
            1 => self.text(),
            _ => self.node(depth),
        };
        let mut node = json!({"type": "array", "items": items});
        if self.random.chance(85) {
            node["maxItems"] = json!(self.random.pick(&[2, 3, 5, 10, 32]));
        }
        if self.random.chance(10) {
            node["minItems"] = json!(self.random.below(3));
        }
        if self.random.chance(20) {
            node["x-kubernetes-list-type"] = json!(self.random.pick(&["set", "atomic"]));
        }
        node
    }

    /// A list of type `map`.
    fn list_map(&mut self, depth: usize) -> Value {
        let mut items = self.object(depth);
        items["properties"]["k"] = json!({"type": "string", "maxLength": 8});
        let mut required = items["required"].as_array().cloned().unwrap_or_default();
        required.push(json!("k"));
        items["required"] = Value::Array(required);
        let mut node = json!({"type": "array", "items": items, "maxItems": 6,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
        if self.random.chance(3) {
            node["x-kubernetes-list-map-keys"] = json!(["k", "a"]);
        }
        node
    }

    /// A number or a text, mostly with the branches that such a node may have.
    fn int_or_string(&mut self) -> Value {
        let mut node = json!({"x-kubernetes-int-or-string": true});
        let mut branches = json!([{"type": "integer"}, {"type": "string"}]);
        if self.random.chance(20) {
            // With anything else these are branches like others.
            let (at, name, value) = self.random.pick(&[
                (0, "minimum", json!(1)),
                (0, "minimum", json!(null)),
                (0, "description", json!("d")),
                (1, "pattern", json!("^[0-9]+%$")),
                (1, "pattern", json!("")),
                (1, "nullable", json!(false)),
                (1, "enum", json!([])),
                (1, "x-kubernetes-validations", json!([{"rule": "true"}])),
            ]);
            branches[at][name] = value;
        }
        match self.random.below(4) {
            0 => node["anyOf"] = branches,
            1 => {
                node["allOf"] = json!([{"anyOf": branches}, {"pattern": "^[a-z0-9%]*$"}]);
            }
            2 => node["pattern"] = json!("^[0-9]+%?$"),
            _ => {}
        }
        node
    }

    /// A node whose content the schema does not specify, or only in part.
    fn open(&mut self, depth: usize) -> Value {
        match self.random.below(4) {
            0 => json!({"x-kubernetes-preserve-unknown-fields": true}),
            1 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            2 => {
                let name = self.random.pick(NAMES);
                let mut inner = self.node(depth);
                if inner["x-kubernetes-validations"].is_null() {
                    self.add_rules(&mut inner, false);
                }
                json!({"x-kubernetes-preserve-unknown-fields": true,
                    "properties": {name: inner}})
            }
            _ => json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true}),
        }
    }

    /// Adds `allOf`, `anyOf`, `oneOf` or `not` to a node.
    fn branch(&mut self, node: &mut Value) {
        let word = self.random.pick(&["allOf", "anyOf", "oneOf"]);
        let branches = match node["type"].as_str() {
            Some("string") => json!([{"minLength": 1}, {"pattern": "^a"}]),
            Some("integer" | "number") => json!([{"minimum": 1}, {"maximum": 7}]),
            Some("object") => json!([{"required": ["a"]}, {"required": ["b"]}]),
            _ => json!([{"type": "string"}, {"type": "integer"}]),
        };
        if self.random.chance(20) {
            node["not"] = branches[0].clone();
        } else {
            node[word] = branches;
        }
    }

    /// Makes a schema non-structural or contradictory.
    fn invalidate(&mut self, node: &mut Value) {
        let faults = [
            ("type", json!("strin")),
            ("type", json!(null)),
            ("uniqueItems", json!(true)),
            ("additionalProperties", json!(false)),
            ("x-kubernetes-list-type", json!("map")),
            ("x-kubernetes-list-type", json!("bag")),
            ("x-kubernetes-map-type", json!("big")),
            ("x-kubernetes-embedded-resource", json!(true)),
            ("$ref", json!("#/a")),
            ("pattern", json!("[")),
            ("minLength", json!(-1)),
            ("maxItems", json!(-2)),
            ("x-kubernetes-preserve-unknown-fields", json!(false)),
            ("default", json!({"a": []})),
            ("enum", json!([])),
            ("x-kubernetes-list-map-keys", json!(["k"])),
            ("dependencies", json!({"a": ["b"]})),
            ("patternProperties", json!({"a": {"type": "string"}})),
            ("definitions", json!({"a": {"type": "string"}})),
            ("id", json!("x")),
            ("items", json!({"type": "string"})),
            ("properties", json!({"x": {"description": "d"}})),
            ("multipleOf", json!(0)),
            (
                "allOf",
                json!([{"type": "string", "properties": {"q": {"minimum": 1}}}]),
            ),
        ];
        let (name, value) = self.random.pick(&faults);
        node[name] = value;
    }

    fn add_rules(&mut self, node: &mut Value, is_root: bool) {
        let mut rules = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            if self.rules > 0 {
                self.rules -= 1;
                rules.push(self.rule(node, is_root));
            }
        }
        if !rules.is_empty() {
            node["x-kubernetes-validations"] = Value::Array(rules);
        }
    }

    fn rule(&mut self, node: &Value, is_root: bool) -> Value {
        let mut scope = Scope::default();
        scope::add(&mut scope, "self", node, 3);
        if is_root {
            scope::add_resource(&mut scope, "self");
        }
        let mut rule = json!({});
        if self.random.chance(20) {
            scope::add(&mut scope, "oldSelf", node, 2);
        } else if self.random.chance(6) {
            rule["optionalOldSelf"] = json!(self.random.chance(90));
            scope.presence.push("oldSelf.hasValue()".to_owned());
            scope::add(&mut scope, "oldSelf.value()", node, 1);
        }
        rule["rule"] = json!(
            Expressions {
                random: self.random
            }
            .rule(&scope)
        );
        if self.random.chance(40) {
            let messages = [
                "must hold",
                " padded ",
                "ends with\nnewline",
                "é",
                "",
                "must 'quote' \"it\"",
            ];
            rule["message"] = json!(self.random.pick(&messages));
        }
        if self.random.chance(15) {
            let text = Kind::plain("string");
            let message = Expressions {
                random: self.random,
            }
            .of(&text, &scope, 2);
            rule["messageExpression"] = json!(message);
        }
        if self.random.chance(10) {
            rule["reason"] = json!(self.random.pick(REASONS));
            if self.random.chance(5) {
                rule["reason"] = json!("Because");
            }
        }
        if self.random.chance(15) {
            rule["fieldPath"] = json!(self.field_path(node));
        }
        rule
    }

    fn field_path(&mut self, node: &Value) -> String {
        let names: Vec<&String> = node["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .collect();
        if names.is_empty() || self.random.chance(10) {
            return self
                .random
                .pick(&[".nope", "a", ".a.b", ".a[0]", "['a-b']", ".", ".a['k']"])
                .to_owned();
        }
        let name = self.random.pick(&names);
        if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            format!(".{name}")
        } else {
            format!("['{name}']")
        }
    }
}
