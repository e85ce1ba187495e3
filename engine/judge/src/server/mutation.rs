//! Mistakes in objects: a field is removed, of another type, empty, too long, out of bounds,
//! unknown or duplicated.

use serde_json::{Value, json};

use crate::random::Random;

/// One change of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mutation {
    /// The place of the change, as a JSON pointer.
    pub(super) pointer: String,
    /// The new value. `None` if it is removed.
    pub(super) value: Option<Value>,
}

/// Numbers at the limits of types and validation rules.
const NUMBERS: [i64; 14] = [
    -1,
    0,
    1,
    2,
    100,
    101,
    65535,
    65536,
    86_401,
    2_147_483_647,
    2_147_483_648,
    -2_147_483_649,
    1_000_000_001,
    i64::MAX,
];

/// Texts that are valid for some fields and invalid for others.
const TEXTS: [&str; 26] = [
    "",
    " ",
    "a",
    "A",
    "a b",
    "-a",
    "a-",
    "a.b",
    "a/b",
    "a/b/c",
    "..",
    "/a",
    "/a/../b",
    "example.com",
    "example.com/a",
    "1",
    "-1",
    "1.5",
    "10%",
    "150%",
    "1Gi",
    "500m",
    "é",
    "Odd",
    "10.0.0.1",
    "2026-01-01T00:00:00Z",
];

impl Mutation {
    /// A random change of an object. `None` if the object has no field to change.
    pub(super) fn of(object: &Value, random: &mut Random) -> Option<Self> {
        if random.chance(6) {
            return random.any_of(&metadata()).cloned();
        }
        let mut places = Vec::new();
        collect(object, "", &mut places);
        let pointer = random.any_of(&places)?.clone();
        let value = object.pointer(&pointer)?;
        if random.chance(15) {
            return Some(Self {
                pointer,
                value: None,
            });
        }
        Some(match changed(value, random) {
            Some(value) => Self {
                pointer,
                value: Some(value),
            },
            None => unknown(pointer, value),
        })
    }

    /// Applies the change to the object.
    pub(super) fn apply(&self, object: &mut Value) {
        let Some((parent, key)) = self.pointer.rsplit_once('/') else {
            return;
        };
        let key = key.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent) {
            Some(Value::Object(fields)) => match &self.value {
                Some(value) => {
                    fields.insert(key, value.clone());
                }
                None => {
                    fields.shift_remove(&key);
                }
            },
            Some(Value::Array(items)) => {
                let Ok(index) = key.parse::<usize>() else {
                    return;
                };
                match &self.value {
                    Some(value) if index < items.len() => items[index] = value.clone(),
                    Some(value) => items.push(value.clone()),
                    None if index < items.len() => {
                        items.remove(index);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// Metadata fields that are rarely set.
fn metadata() -> Vec<Mutation> {
    let owner = |fields: Value| {
        let mut owner =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
        for (name, value) in fields.as_object().into_iter().flatten() {
            owner[name] = value.clone();
        }
        owner
    };
    let several = [
        ("generateName", json!("made-")),
        ("generateName", json!("Made ")),
        ("namespace", json!("other")),
        ("uid", json!("other")),
        ("resourceVersion", json!("1")),
        ("resourceVersion", json!("x")),
        ("creationTimestamp", json!("2020-01-01T00:00:00Z")),
        ("creationTimestamp", json!("yesterday")),
        ("deletionTimestamp", json!("2020-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(5)),
        ("generation", json!(7)),
        ("selfLink", json!("/odd")),
        ("managedFields", json!([])),
        (
            "managedFields",
            json!([{"manager": "m", "operation": "Odd"}]),
        ),
        (
            "managedFields",
            json!([{"manager": "m", "operation": "Update",
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]),
        ),
        ("labels", json!({"a b": "c"})),
        ("labels", json!({"a": "-"})),
        ("labels", json!({"a": 1})),
        ("annotations", json!({"A/B/c": "d"})),
        ("annotations", json!({"Example.com/A": ""})),
        ("finalizers", json!(["nodomain"])),
        ("finalizers", json!(["orphan", "foregroundDeletion"])),
        ("ownerReferences", json!([{}])),
        ("ownerReferences", json!([owner(json!({"uid": ""}))])),
        (
            "ownerReferences",
            json!([owner(json!({"apiVersion": "a/b/c"}))]),
        ),
        ("ownerReferences", json!([owner(json!({"kind": "Event"}))])),
        ("ownerReferences", json!([owner(json!({"name": ""}))])),
        (
            "ownerReferences",
            json!([
                owner(json!({"controller": true, "uid": ""})),
                owner(json!({"controller": true, "name": "p", "uid": ""})),
            ]),
        ),
    ];
    let each = several.into_iter().map(|(name, value)| Mutation {
        pointer: format!("/metadata/{name}"),
        value: Some(value),
    });
    each.collect()
}

/// Adds a field to an object that its kind does not have.
fn unknown(pointer: String, value: &Value) -> Mutation {
    match value {
        Value::Object(_) => Mutation {
            pointer: format!("{pointer}/unknownField"),
            value: Some(json!("x")),
        },
        _ => Mutation {
            pointer,
            value: Some(Value::Null),
        },
    }
}

fn collect(value: &Value, at: &str, places: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                let pointer = format!("{at}/{}", escaped(key));
                collect(below, &pointer, places);
                places.push(pointer);
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                let pointer = format!("{at}/{index}");
                collect(below, &pointer, places);
                places.push(pointer);
            }
        }
        _ => {}
    }
}

/// A different value. `None` for an object that gets an unknown field.
fn changed(value: &Value, random: &mut Random) -> Option<Value> {
    if random.chance(20) {
        return Some(of_another_type(random));
    }
    Some(match value {
        Value::Number(_) => number(random),
        Value::Bool(set) => json!(!set),
        Value::Array(items) => list(items, random),
        Value::Object(fields) => {
            if fields.is_empty() || random.chance(60) {
                return None;
            }
            json!({})
        }
        Value::String(_) | Value::Null => text(random),
    })
}

fn of_another_type(random: &mut Random) -> Value {
    let several = [
        json!("x"),
        json!(5),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
        json!(["x"]),
        json!({"a": "b"}),
        Value::Null,
    ];
    random.any_of(&several).cloned().unwrap_or_default()
}

fn number(random: &mut Random) -> Value {
    if random.chance(10) {
        return json!(1.5);
    }
    random.any_of(&NUMBERS).map_or(Value::Null, |it| json!(it))
}

fn text(random: &mut Random) -> Value {
    if random.chance(10) {
        let long = random.any_of(&[16, 64, 254, 1025]).copied();
        return "a".repeat(long.unwrap_or(64)).into();
    }
    random.any_of(&TEXTS).map_or(Value::Null, |it| json!(it))
}

/// A list without items, or with one of its items twice.
fn list(items: &[Value], random: &mut Random) -> Value {
    let twice = random.any_of(items).filter(|_| random.clone().chance(70));
    match twice {
        Some(twice) => items.iter().chain([twice]).cloned().collect(),
        None => json!([]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_changes_what_its_pointer_names() {
        let object = json!({"a": {"b/c": [1, 2]}});
        let changed = |pointer: &str, value: Option<Value>| {
            let pointer = pointer.to_owned();
            let mut changed = object.clone();
            Mutation { pointer, value }.apply(&mut changed);
            changed
        };
        assert_eq!(changed("/a/b~1c/0", None), json!({"a": {"b/c": [2]}}));
        assert_eq!(changed("/a/x", Some(json!(1)))["a"]["x"], 1);
        assert_eq!(changed("/a/b~1c/9", Some(json!(3)))["a"]["b/c"][2], 3);
        assert_eq!(changed("/nowhere/x", Some(json!(1))), object);
    }

    #[test]
    fn the_same_seed_makes_the_same_mutation() {
        let object = json!({"a": [{"b": "c"}], "d": 1});
        let made = |case| Mutation::of(&object, &mut Random::of(1, case));
        assert_eq!(made(3), made(3));
        assert!((0..20).any(|case| made(case) != made(3)));
    }
}
