//! Values that are valid for a schema, most of them.

use serde_json::{Map, Value, json};

use super::{almost_valid_text, text_questions};
use kubemu_judge::random::Random;

const TEXTS: &[&str] = &[
    "",
    "a",
    "abc",
    "b",
    "5m",
    "hello",
    "x-y",
    "héé",
    "日本語",
    "0",
    "12",
    "1.5",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "https://a.b/c?d=e",
    "1Gi",
    "1.2.3",
    "true",
    "a,b",
    " c ",
    "ABC",
    "😀",
    "q\"uote",
    "tab\t",
];
const TIMES: &[&str] = &[
    "2024-02-29T12:00:00Z",
    "1970-01-01T00:00:00.5+02:00",
    "2024-01-01",
    "9999-12-31T23:59:59Z",
];
const DATES: &[&str] = &["2024-02-29", "1970-01-01", "0001-01-01"];
const DURATIONS: &[&str] = &["1h", "5m30s", "0s", "1.5h", "2d", "1w"];
const BYTES: &[&str] = &["", "YWJj", "AA==", "w6k="];

/// Generates values.
pub(super) struct Values<'r> {
    pub(super) random: &'r mut Random,
}

impl Values<'_> {
    /// A whole object of a kind.
    pub(super) fn resource(&mut self, schema: &Value) -> Value {
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "1"}});
        if self.random.chance(20) {
            let labels = self.random.pick(&[
                json!({"app": "x"}),
                json!({}),
                json!({"bad key!": "x"}),
                json!({"a.b/c": "é"}),
            ]);
            object["metadata"]["labels"] = labels.clone();
        }
        if self.random.chance(3) {
            let faults = [
                ("name", json!("Bad_Name")),
                ("namespace", json!("")),
                ("annotations", json!({"k": "v", "bad key": "w"})),
                ("finalizers", json!(["x"])),
                (
                    "ownerReferences",
                    json!([{"apiVersion": "v1", "kind": "A", "name": "a"}]),
                ),
                ("unknown", json!(1)),
            ];
            let (name, value) = self.random.pick(&faults);
            object["metadata"][name] = value;
        }
        if self.random.chance(5) {
            self.set_unusual_names(&mut object["metadata"]);
        }
        if let Value::Object(parts) = self.of(schema, 5) {
            for (name, value) in parts {
                if name != "metadata" {
                    object[name] = value;
                }
            }
        }
        object
    }

    /// Gives an object names that are almost valid.
    fn set_unusual_names(&mut self, metadata: &mut Value) {
        let name = almost_valid_text::near(self.random, "name");
        let key = almost_valid_text::near(self.random, "name");
        let value = almost_valid_text::near(self.random, "text");
        let (field, value) = match self.random.below(5) {
            0 => ("name", json!(name)),
            1 => ("generateName", json!(name)),
            2 => ("labels", json!({key: name})),
            3 => ("annotations", json!({key: value})),
            _ => ("finalizers", json!([name, key])),
        };
        metadata[field] = value;
    }

    /// A value for a schema.
    pub(super) fn of(&mut self, schema: &Value, depth: usize) -> Value {
        if self.random.below(150) == 0 {
            return self.anything();
        }
        if schema["nullable"] == true && self.random.chance(15) {
            return Value::Null;
        }
        if let Some(known) = schema["enum"].as_array().filter(|known| !known.is_empty())
            && self.random.chance(85)
        {
            return self.random.pick(known).clone();
        }
        match schema["type"].as_str() {
            Some("string") => self.text(schema),
            Some("integer") => self.integer(schema),
            Some("number") => match self.random.below(4) {
                0 => json!(self.random.pick(&[0.5, 2.5, -1.25, 1e10, 1e-7, 3.0, 1e21])),
                _ => self.integer(schema),
            },
            Some("boolean") => json!(self.random.chance(50)),
            Some("array") => self.list(schema, depth),
            Some("object") => self.object(schema, depth),
            _ if schema["x-kubernetes-int-or-string"] == true => self
                .random
                .pick(&[json!(5), json!("5"), json!("50%"), json!(-1)])
                .clone(),
            _ if schema["properties"].is_object() && self.random.chance(80) => {
                self.object(schema, depth)
            }
            _ => self.anything(),
        }
    }

    fn anything(&mut self) -> Value {
        self.random
            .pick(&[
                Value::Null,
                json!(1),
                json!("a"),
                json!(true),
                json!(1.5),
                json!([]),
                json!({}),
                json!({"a": 1}),
                json!(["a", 1]),
            ])
            .clone()
    }

    fn text(&mut self, schema: &Value) -> Value {
        let format = schema["format"].as_str().unwrap_or_default();
        if self.random.chance(10) {
            return json!(match text_questions::form_of(format) {
                Some(form) => almost_valid_text::near(self.random, form),
                None => almost_valid_text::any(self.random),
            });
        }
        let known = match format {
            "date-time" | "datetime" => TIMES,
            "date" => DATES,
            "duration" => DURATIONS,
            "byte" => BYTES,
            _ => TEXTS,
        };
        let known = if self.random.chance(4) { TEXTS } else { known };
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
        let fitting: Vec<&&str> = known
            .iter()
            .filter(|text| text.chars().count() as u64 <= most)
            .collect();
        if fitting.is_empty() || self.random.chance(3) {
            return json!(self.random.pick(known));
        }
        json!(self.random.pick(&fitting))
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"].as_i64().unwrap_or(-3);
        let most = schema["maximum"].as_i64().unwrap_or(12);
        let room = usize::try_from(most.saturating_sub(least)).unwrap_or(0);
        if self.random.chance(4) {
            return json!(self.random.pick(&[
                i64::MAX,
                i64::MIN,
                -6,
                1000,
                1 << 31,
                9_007_199_254_740_993
            ]));
        }
        let offset = i64::try_from(self.random.below(room + 1)).unwrap_or(0);
        json!(least + offset)
    }

    fn list(&mut self, schema: &Value, depth: usize) -> Value {
        let most = schema["maxItems"]
            .as_u64()
            .map_or(4, |most| most.clamp(0, 4));
        let most = usize::try_from(most).unwrap_or(0);
        let most = if self.random.chance(3) {
            most + 1
        } else {
            most
        };
        let count = if depth == 0 {
            0
        } else {
            self.random.between(0, most)
        };
        let mut items = Vec::with_capacity(count);
        for at in 0..count {
            let mut item = self.of(&schema["items"], depth - 1);
            let is_map = schema["x-kubernetes-list-type"] == "map";
            if is_map && item.is_object() && self.random.chance(90) {
                item["k"] = json!(format!("k{at}"));
            }
            let is_set = schema["x-kubernetes-list-type"] == "set";
            if is_set && items.contains(&item) && self.random.chance(90) {
                continue;
            }
            items.push(item);
        }
        Value::Array(items)
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        if schema["x-kubernetes-embedded-resource"] == true && self.random.chance(90) {
            fields.insert("apiVersion".to_owned(), json!("v1"));
            fields.insert("kind".to_owned(), json!("Pod"));
            fields.insert("metadata".to_owned(), json!({"name": "p"}));
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let odds = if required.iter().any(|it| it == name) {
                97
            } else {
                65
            };
            if depth > 0 && self.random.chance(odds) {
                fields.insert(name.clone(), self.of(property, depth - 1));
            }
        }
        let each = &schema["additionalProperties"];
        if each.is_object() && depth > 0 {
            for _ in 0..self.random.below(3) {
                let name = self.random.pick(&["a", "b", "c.d", "e"]);
                fields.insert(name.to_owned(), self.of(each, depth - 1));
            }
        }
        if self.random.chance(4) {
            fields.insert("unknown".to_owned(), self.anything());
        }
        Value::Object(fields)
    }

    /// The object after an edit by a user.
    pub(super) fn edited(&mut self, schema: &Value, object: &Value) -> Value {
        let fresh = self.of(schema, 5);
        let mut edited = object.clone();
        for (name, value) in fresh.as_object().into_iter().flatten() {
            if name == "metadata" || self.random.chance(30) {
                continue;
            }
            let kept = edited.get(name).cloned().unwrap_or(Value::Null);
            edited[name] = self.mixed(&kept, value);
        }
        edited
    }

    /// A mixture of two values.
    fn mixed(&mut self, old: &Value, new: &Value) -> Value {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                let mut mixed = old.clone();
                for (name, value) in new {
                    if self.random.chance(35) {
                        let before = old.get(name).unwrap_or(&Value::Null);
                        mixed.insert(name.clone(), self.mixed(before, value));
                    }
                }
                if self.random.chance(10)
                    && let Some(name) = mixed.keys().next().cloned()
                {
                    mixed.remove(&name);
                }
                Value::Object(mixed)
            }
            (Value::Array(old), Value::Array(_)) if self.random.chance(50) => {
                let mut mixed = old.clone();
                if self.random.chance(40) {
                    mixed.reverse();
                }
                if self.random.chance(30) {
                    mixed.pop();
                }
                Value::Array(mixed)
            }
            _ => new.clone(),
        }
    }
}
