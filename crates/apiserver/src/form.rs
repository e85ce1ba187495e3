//! The form in which a client wants its answer: objects, metadata alone, or a table.

use std::sync::Arc;

use bytes::Bytes;
use fivespot_clock::Clock;
use serde_json::{Value, json};

use crate::answer::{Content, List};
use crate::meta;
use crate::resource::Resource;
use crate::status::Status;
use crate::store::Object;
use crate::table::{self, IncludeObject, TablePrinter};
use crate::watch::{Event, frame};

/// What an `Accept` header asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    #[default]
    Whole,
    /// `PartialObjectMetadata` and lists of them.
    Metadata,
    /// A `Table`.
    Table,
}

/// What is offered.
const OFFERED: [&str; 1] = ["application/json"];

impl Form {
    /// Reads an `Accept` header; the first form that is offered is taken.
    ///
    /// # Errors
    /// 406 when none is.
    pub(crate) fn negotiate(accept: &str) -> Result<Self, Status> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        let found = accept.split(',').find_map(Self::of);
        found.ok_or_else(|| Status::not_acceptable(&OFFERED))
    }

    fn of(clause: &str) -> Option<Self> {
        let mut parts = clause.split(';').map(str::trim);
        if !matches!(parts.next()?, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let mut wanted = "";
        for part in parts {
            match part.split_once('=') {
                Some(("as", kind)) => wanted = kind,
                Some(("g", group)) if group != "meta.k8s.io" => return None,
                Some(("v", version)) if !matches!(version, "v1" | "v1beta1") => {
                    return None;
                }
                _ => {}
            }
        }
        match wanted {
            "" => Some(Self::Whole),
            "Table" => Some(Self::Table),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(Self::Metadata),
            _ => None,
        }
    }
}

/// How much of an object a table's row carries.
fn include(word: &str) -> IncludeObject {
    IncludeObject::parse(word).unwrap_or_default()
}

/// One answer as bytes.
pub(crate) struct Writer<'a> {
    pub(crate) form: Form,
    /// The `includeObject` parameter.
    pub(crate) include: &'a str,
    pub(crate) clock: &'a Clock,
}

impl Writer<'_> {
    /// The text of a content that is no watch.
    pub(crate) fn text(&self, content: &Content) -> Bytes {
        match content {
            Content::Plain(value) => meta::json(value),
            Content::Document { body, .. } => body.clone(),
            Content::Object(resource, object) => self.object(resource, object),
            Content::List(list) => self.list(list),
            Content::Watch(_) => Bytes::new(),
        }
    }

    fn object(&self, resource: &Resource, object: &Object) -> Bytes {
        match self.form {
            Form::Whole => meta::json(object),
            Form::Metadata => meta::json(&partial(object)),
            Form::Table => {
                let table = self
                    .printer(resource)
                    .table(object, std::slice::from_ref(&**object));
                meta::json(&table)
            }
        }
    }

    fn printer<'r>(&self, resource: &'r Resource) -> TablePrinter<'r> {
        TablePrinter::new(resource, include(self.include), self.clock.now())
    }

    fn list(&self, list: &List) -> Bytes {
        let resource = &list.resource;
        match self.form {
            Form::Whole => {
                let items = list.items.iter().map(|it| item(resource, it));
                whole_list(&resource.list_kind, &resource.api_version(), list, items)
            }
            Form::Metadata => {
                let items = list.items.iter().map(|it| meta::json(&partial(it)));
                whole_list("PartialObjectMetadataList", "meta.k8s.io/v1", list, items)
            }
            Form::Table => {
                let head = json!({"metadata": list.metadata()});
                let items: Vec<Value> =
                    list.items.iter().map(|it| Value::clone(it)).collect();
                meta::json(&self.printer(resource).table(&head, &items))
            }
        }
    }
}

/// A list's text, put together from its items' so that none is copied as a value.
fn whole_list(
    kind: &str,
    api_version: &str,
    list: &List,
    items: impl Iterator<Item = Bytes>,
) -> Bytes {
    let head =
        json!({"kind": kind, "apiVersion": api_version, "metadata": list.metadata()});
    let mut text = head.to_string().into_bytes();
    text.pop();
    text.extend_from_slice(b",\"items\":[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&item);
    }
    text.extend_from_slice(b"]}");
    text.into()
}

/// An object in a list: a built-in one does not say again of which kind it is.
fn item(resource: &Resource, object: &Object) -> Bytes {
    if resource.custom {
        return meta::json(object);
    }
    let fields = object.as_object().into_iter().flatten();
    let kept = fields.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind"));
    let kept: serde_json::Map<_, _> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
    meta::json(&Value::Object(kept))
}

/// An object's metadata as an object of its own.
fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// How the events of a watch are written.
#[derive(Debug)]
pub(crate) struct WatchForm {
    form: Form,
    include: IncludeObject,
    clock: Clock,
    /// A table's headings are sent with its first event alone.
    begun: bool,
}

impl WatchForm {
    pub(crate) fn new(form: Form, include_word: &str, clock: Clock) -> Self {
        Self {
            form,
            include: include(include_word),
            clock,
            begun: false,
        }
    }

    /// One event as one line.
    pub(crate) fn line(&mut self, event: &Event, resource: &Arc<Resource>) -> Vec<u8> {
        let object = match self.form {
            Form::Whole => return event.line(resource),
            Form::Metadata | Form::Table => event.object(resource),
        };
        let Some(object) = object else {
            return event.line(resource);
        };
        let shown = if self.form == Form::Metadata {
            partial(&object)
        } else {
            let turn = if self.begun {
                table::Event::Later
            } else {
                table::Event::First
            };
            self.begun = true;
            let printer = TablePrinter::new(resource, self.include, self.clock.now());
            printer.event(&object, turn)
        };
        frame(event.kind(), &meta::json(&shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_offered_is_taken() {
        let rows = [
            ("", Form::Whole),
            ("*/*", Form::Whole),
            (
                "application/vnd.kubernetes.protobuf, application/json",
                Form::Whole,
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Form::Table,
            ),
            (
                "application/json;as=Other;v=v1;g=meta.k8s.io,application/json",
                Form::Whole,
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Form::Metadata,
            ),
        ];
        for (accept, form) in rows {
            assert_eq!(Form::negotiate(accept), Ok(form), "{accept}");
        }
        assert_eq!(Form::negotiate("application/xml").unwrap_err().code, 406);
    }
}
