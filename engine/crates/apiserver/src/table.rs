//! Tables as shown by `kubectl get` (`meta.k8s.io/v1` `Table`).

mod age;
mod json_path;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::meta;
use crate::resource::{Column, Resource};
use json_path::JsonPath;

pub(crate) use age::human_duration;

const NAME: &str = "Name must be unique within a namespace. Is required when creating \
     resources, although some resources may allow a client to request the generation of an \
     appropriate name automatically. Name is primarily intended for creation idempotence \
     and configuration definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The part of each object that a row contains in addition to its cells (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, as `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Parses the query parameter; the empty text is the default. `None` for a text other than
    /// `None`, `Metadata` and `Object`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// Creates tables of one resource.
///
/// A built-in resource has the columns and cells of Kubernetes' own printers, any other its
/// `additionalPrinterColumns`, or Age if it declares none.
#[derive(Debug)]
pub struct TablePrinter<'a> {
    resource: &'a Resource,
    include: IncludeObject,
    now: Timestamp,
    paths: Vec<Option<JsonPath>>,
    age: [Column; 1],
}

impl<'a> TablePrinter<'a> {
    /// Ages are computed relative to `now`.
    pub fn new(resource: &'a Resource, include: IncludeObject, now: Timestamp) -> Self {
        let age = [Column {
            kind: "date".to_owned(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            ..Column::age()
        }];
        let mut printer = Self {
            resource,
            include,
            now,
            paths: Vec::new(),
            age,
        };
        printer.paths = printer
            .columns()
            .iter()
            .map(|it| JsonPath::parse(&it.json_path))
            .collect();
        printer
    }

    /// A table of `items` with the list metadata of `list` (a list, or the object itself for
    /// one object): resourceVersion, continue and remainingItemCount.
    pub fn table(&self, list: &Value, items: &[Value]) -> Value {
        let mut metadata = Map::new();
        for key in ["resourceVersion", "continue", "remainingItemCount"] {
            match list["metadata"].get(key) {
                Some(Value::String(text)) if text.is_empty() => {}
                Some(value) => {
                    metadata.insert(key.to_owned(), value.clone());
                }
                None => {}
            }
        }
        let rows: Vec<_> = items.iter().map(|it| self.row(it)).collect();
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": self.headings(),
            "rows": rows,
        })
    }

    /// The table of one row in a watch event; the column definitions are sent only with the
    /// first event of a watch.
    pub fn event(&self, object: &Value, event: Event) -> Value {
        let mut table = self.table(object, std::slice::from_ref(object));
        if event == Event::Later {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    fn columns(&self) -> &[Column] {
        if self.resource.columns.is_empty() {
            &self.age
        } else {
            &self.resource.columns
        }
    }

    fn headings(&self) -> Vec<Value> {
        let name = json!({"name": "Name", "type": "string", "format": "name",
            "description": NAME, "priority": 0});
        let builtin = self.resource.builtin.is_some();
        let names_itself = builtin && self.columns().iter().any(|it| it.name == "Name");
        let declared = self.columns().iter().map(|it| {
            let format = if names_itself && it.name == "Name" {
                "name"
            } else {
                &it.format
            };
            let description = if !it.description.is_empty() {
                it.description.clone()
            } else if self.resource.custom {
                let path = &it.json_path;
                format!("Custom resource definition column (in JSONPath format): {path}")
            } else {
                String::new()
            };
            json!({"name": it.name, "type": it.kind, "format": format,
                "description": description, "priority": it.priority})
        });
        // Kubernetes shows the name of an Event last, in the wide view.
        let first = (!names_itself).then_some(name);
        first.into_iter().chain(declared).collect()
    }

    fn row(&self, object: &Value) -> Value {
        let kind = self.resource.builtin.as_ref();
        let cells = kind.map(|it| it.cells(object, self.now));
        let mut cells = cells.unwrap_or_default();
        if cells.is_empty() {
            cells.push(meta::name(object).into());
            let columns = self.columns().iter().zip(&self.paths);
            cells.extend(columns.map(|(column, path)| {
                let found = path.as_ref().and_then(|it| it.first(object));
                found.map_or(Value::Null, |it| cell(&column.kind, it, self.now))
            }));
        }
        let mut row = json!({ "cells": cells });
        let conditions = kind.map(|it| it.row_conditions(object)).unwrap_or_default();
        if !conditions.is_null() {
            row["conditions"] = conditions;
        }
        row["object"] = match self.include {
            IncludeObject::None => Value::Null,
            IncludeObject::Object => object.clone(),
            IncludeObject::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        };
        row
    }
}

/// The position of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first event of the watch.
    First,
    /// Any later event.
    Later,
}

/// The cell of a column of `kind`, as in apiextensions-apiserver's table convertor.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match kind {
        "string" => text(value),
        "integer" => match value {
            #[expect(clippy::cast_possible_truncation, reason = "as Kubernetes' int64()")]
            Value::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().map(|it| it as i64))
                .map_or(Value::Null, Value::from),
            _ => Value::Null,
        },
        "number" if value.is_number() => value.clone(),
        "boolean" if value.is_boolean() => value.clone(),
        "date" => value.as_str().map_or(Value::Null, |it| {
            let age = it.parse().map(|since| human_duration(since, now));
            age.unwrap_or_else(|_| "<invalid>".to_owned()).into()
        }),
        _ => Value::Null,
    }
}

fn text(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::String(_) => value.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string().into()
        }
    }
}

#[cfg(test)]
mod tests;
