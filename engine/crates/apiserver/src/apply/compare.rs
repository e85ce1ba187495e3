//! The difference between two objects, path by path.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::Element;
use super::set::FieldSet;
use super::walk::{Division, division, element};
use crate::openapi::schema::ListType;
use crate::openapi::shape::Shape;

/// The paths at which two objects differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Comparison {
    /// Paths only in the second object.
    pub(super) added: FieldSet,
    /// Paths in both objects with different values.
    pub(super) modified: FieldSet,
    /// Paths only in the first object.
    pub(super) removed: FieldSet,
}

/// The change of a path itself, not of the paths below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    Added,
    Modified,
    Removed,
}

impl Comparison {
    pub(super) fn of(old: &Value, new: &Value, shape: Shape<'_>) -> Self {
        let mut found = Self::default();
        found.compare(Some(old), Some(new), shape);
        found
    }

    /// The comparison without `fields` and the paths below them.
    pub(super) fn without(mut self, fields: &FieldSet) -> Self {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.remove_recursively(fields);
        }
        self
    }

    /// The paths with new values.
    pub(super) fn set_values(&self) -> FieldSet {
        self.modified.clone().union(self.added.clone())
    }

    /// Collects the differences below a path; returns the change of the path itself.
    fn compare(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        shape: Shape<'_>,
    ) -> Change {
        let how = |value: Option<&Value>| value.map(|it| division(it, shape));
        let is_null = |value: Option<&Value>| value.is_some_and(Value::is_null);
        match (how(old), how(new)) {
            // A null list or object counts as present and empty.
            (Some(_), Some(how)) if is_null(old) && how != Division::Whole => {
                self.below(None, new, (&how, shape));
            }
            (Some(how), Some(_)) if is_null(new) && how != Division::Whole => {
                self.below(old, None, (&how, shape));
            }
            (Some(a), Some(b)) if a != b => {
                self.below(old, None, (&a, shape));
                self.below(None, new, (&b, shape));
                return Change::Modified;
            }
            (Some(how), _) | (None, Some(how)) => {
                if how != Division::Whole && !(is_empty(old) && is_empty(new)) {
                    self.below(old, new, (&how, shape));
                } else if old.is_some() && new.is_some() && old != new {
                    return Change::Modified;
                }
            }
            (None, None) => {}
        }
        match (old, new) {
            (None, Some(_)) => Change::Added,
            (Some(_), None) => Change::Removed,
            _ => Change::None,
        }
    }

    fn below(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        (how, shape): (&Division, Shape<'_>),
    ) {
        match how {
            Division::Whole => {}
            Division::Fields => {
                let (old, new) = (
                    old.and_then(Value::as_object),
                    new.and_then(Value::as_object),
                );
                let mut keys: Vec<&String> =
                    old.into_iter().flat_map(|it| it.keys()).collect();
                let more = new.into_iter().flat_map(|it| it.keys());
                keys.extend(
                    more.filter(|it| !old.is_some_and(|old| old.contains_key(*it))),
                );
                for key in keys {
                    let (a, b) = (
                        old.and_then(|it| it.get(key)),
                        new.and_then(|it| it.get(key)),
                    );
                    // Most of an object does not change: no paths are made of that.
                    if a == b {
                        continue;
                    }
                    self.step(Element::field(key), (a, b), shape.field(key));
                }
            }
            Division::Entries(list) => {
                let old = grouped(old, list, shape.items());
                let new = grouped(new, list, shape.items());
                let none = Vec::new();
                for (element, a) in &old {
                    let b = new.get(element).unwrap_or(&none);
                    self.entries(element, (a, b), shape.items());
                }
                for (element, b) in &new {
                    if !old.contains_key(element) {
                        self.entries(element, (&none, b), shape.items());
                    }
                }
            }
        }
    }

    /// Compares the entries with one key; a stored list may hold several.
    fn entries(
        &mut self,
        element: &Element,
        (old, new): (&Group<'_>, &Group<'_>),
        items: Shape<'_>,
    ) {
        if old == new {
            return;
        }
        match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => {
                let pair = (old.first().copied(), new.first().copied());
                self.step(element.clone(), pair, items);
            }
            ([_, _, ..], [_, _, ..]) => self.modified.insert(element.clone()),
            ([_, _, ..], _) => {
                if let Some(one) = new.first() {
                    self.step(element.clone(), (None, Some(one)), items);
                }
                self.removed.insert(element.clone());
            }
            (_, [_, _, ..]) => {
                if let Some(one) = old.first() {
                    self.step(element.clone(), (Some(one), None), items);
                }
                self.added.insert(element.clone());
            }
        }
    }

    fn step(
        &mut self,
        element: Element,
        (old, new): (Option<&Value>, Option<&Value>),
        shape: Shape<'_>,
    ) {
        let mut below = Self::default();
        match below.compare(old, new, shape) {
            Change::None => {}
            Change::Added => self.added.insert(element.clone()),
            Change::Modified => self.modified.insert(element.clone()),
            Change::Removed => self.removed.insert(element.clone()),
        }
        self.added.insert_below(element.clone(), below.added);
        self.modified.insert_below(element.clone(), below.modified);
        self.removed.insert_below(element, below.removed);
    }
}

type Group<'v> = Vec<&'v Value>;

/// The entries of a list by their path elements.
fn grouped<'v>(
    list: Option<&'v Value>,
    kind: &ListType,
    items: Shape<'_>,
) -> BTreeMap<Element, Group<'v>> {
    let mut groups: BTreeMap<Element, Group<'v>> = BTreeMap::new();
    for entry in list.and_then(Value::as_array).into_iter().flatten() {
        if let Ok(element) = element(entry, kind, items) {
            groups.entry(element).or_default().push(entry);
        }
    }
    groups
}

/// Whether the value is missing, or an empty list or object.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(entries)) => entries.is_empty(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
    }
}
