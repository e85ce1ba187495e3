//! Places in objects, as their schema has them, and edits of objects there.

use std::fmt;

use serde_json::{Map, Value};

use super::minimal::minimal;

/// How deep places are looked for. Schemas of CRDs are at most 64 deep.
const MAX_DEPTH: usize = 24;
/// How many places of one schema are looked at.
const MAX_PLACES: usize = 5_000;

/// One step from a value to a value in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    /// The field of that name.
    Field(String),
    /// The first item of a list.
    Item,
    /// The first value of a map.
    Entry,
}

/// A place in an object. The root has no steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place(pub(super) Vec<Step>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(root)");
        }
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item => f.write_str("[]")?,
                Step::Entry => f.write_str("{}")?,
            }
        }
        Ok(())
    }
}

impl Place {
    pub(super) fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    pub(super) fn field(&self, name: &str) -> Self {
        self.then(Step::Field(name.to_owned()))
    }

    pub(super) fn parent(&self) -> Option<Self> {
        let (_, steps) = self.0.split_last()?;
        Some(Self(steps.to_vec()))
    }

    /// The name of the innermost field.
    pub(super) fn name(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Item | Step::Entry => None,
        })
    }

    /// Whether `other` is this place, or inside of it.
    pub(super) fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// The place of a field that an error names, such as `spec.list[0].name`.
    pub(super) fn of_error(field: &str, schema: &Value) -> Self {
        let mut place = Self::default();
        for part in field.split('.') {
            let (name, keys) = part.split_once('[').unwrap_or((part, ""));
            if !name.is_empty() {
                let at = place.schema_in(schema);
                let is_field = at.is_some_and(|it| !it["properties"][name].is_null());
                let is_entry =
                    at.is_some_and(|it| it["additionalProperties"].is_object());
                place = match (is_field, is_entry) {
                    (false, true) => place.then(Step::Entry),
                    _ => place.field(name),
                };
            }
            for _ in keys.split_terminator(']') {
                let at = place.schema_in(schema);
                let is_map = at.is_some_and(|it| it["additionalProperties"].is_object());
                place = place.then(if is_map { Step::Entry } else { Step::Item });
            }
        }
        place
    }

    /// The schema of the value at this place.
    pub(super) fn schema_in<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(root, |schema, step| child(schema, step))
    }

    /// The value at this place.
    pub(super) fn value_in<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Item => value.get(0),
            Step::Entry => value.as_object()?.values().next(),
        })
    }

    /// Sets the value at this place, with what has to be around it according to `schema`. Does
    /// nothing where the object has other values than objects and lists.
    pub(super) fn set(&self, object: &mut Value, value: Value, schema: &Value) {
        let (mut at, mut schema) = (object, Some(schema));
        for step in &self.0 {
            schema = schema.and_then(|it| child(it, step));
            let created = || schema.map_or(Value::Null, |it| minimal(it, 0));
            let next = match (step, &mut *at) {
                (Step::Field(name), Value::Object(fields)) => {
                    Some(fields.entry(name.clone()).or_insert_with(created))
                }
                (Step::Entry, Value::Object(fields)) => {
                    if fields.is_empty() {
                        fields.insert("a".to_owned(), created());
                    }
                    fields.values_mut().next()
                }
                (Step::Item, Value::Array(items)) => {
                    if items.is_empty() {
                        items.push(created());
                    }
                    items.first_mut()
                }
                _ => None,
            };
            let Some(next) = next else { return };
            if next.is_null() {
                *next = Value::Object(Map::new());
            }
            at = next;
        }
        *at = value;
    }

    /// Removes the value at this place.
    pub(super) fn remove(&self, object: &mut Value) {
        let Some((last, steps)) = self.0.split_last() else {
            return;
        };
        let mut at = object;
        for step in steps {
            let next = match (step, at) {
                (Step::Field(name), Value::Object(fields)) => fields.get_mut(name),
                (Step::Entry, Value::Object(fields)) => fields.values_mut().next(),
                (Step::Item, Value::Array(items)) => items.first_mut(),
                _ => None,
            };
            let Some(next) = next else { return };
            at = next;
        }
        match (last, at) {
            (Step::Field(name), Value::Object(fields)) => {
                fields.shift_remove(name);
            }
            (Step::Entry, Value::Object(fields)) => fields.clear(),
            (Step::Item, Value::Array(items)) => items.clear(),
            _ => {}
        }
    }
}

/// The schema of the values one step below.
pub(super) fn child<'a>(schema: &'a Value, step: &Step) -> Option<&'a Value> {
    let found = match step {
        Step::Field(name) => schema.get("properties")?.get(name),
        Step::Item => schema.get("items"),
        Step::Entry => schema.get("additionalProperties"),
    };
    found.filter(|it| it.is_object())
}

/// The schemas one step below, except those of the fields that every object has.
pub(super) fn children<'a>(schema: &'a Value, place: &Place) -> Vec<(Place, &'a Value)> {
    let mut all = Vec::new();
    if let Some(Value::Object(fields)) = schema.get("properties") {
        for (name, field) in fields {
            let of_every_object = ["apiVersion", "kind"].contains(&name.as_str());
            if !(place.0.is_empty() && of_every_object) {
                all.push((place.field(name), field));
            }
        }
    }
    for step in [Step::Item, Step::Entry] {
        if let Some(each) = child(schema, &step) {
            all.push((place.then(step), each));
        }
    }
    all
}

/// All places of a schema, from the root, with their schemas.
pub(super) fn places(root: &Value) -> Vec<(Place, &Value)> {
    let mut all = vec![(Place::default(), root)];
    let mut at = 0;
    while let Some((place, schema)) = all.get(at).cloned() {
        at += 1;
        if place.0.len() < MAX_DEPTH && all.len() < MAX_PLACES {
            all.extend(children(schema, &place));
        }
    }
    all
}
