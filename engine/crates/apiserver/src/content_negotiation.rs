//! Content negotiation: the response as objects, metadata only, or a table.

use std::sync::Arc;

use bytes::Bytes;
use kubemu_clock::Clock;
use serde_json::{Value, json};

use crate::api_response::{Content, List};
use crate::meta;
use crate::protobuf;
use crate::resource::Resource;
use crate::status::{Details, Reason, Status};
use crate::store::{Change, Object};
use crate::table::{self, IncludeObject, TablePrinter};
use crate::watch::{Event, frame};

/// The negotiated format of an `Accept` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    view: View,
    /// Whether metadata and tables are those of `meta.k8s.io/v1beta1`.
    beta: bool,
    pub(crate) yaml: bool,
}

/// Which part of an object the response contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum View {
    /// The whole object.
    #[default]
    Whole,
    /// `PartialObjectMetadata` and lists of them.
    Metadata,
    /// A `Table`.
    Table,
}

/// The media types that are offered.
const OFFERED: [&str; 2] = ["application/json", "application/yaml"];

/// The client accepts none of the offered formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAcceptable {
    /// None of the media types is offered.
    Media,
    /// The media type is offered, but not with the requested parameters.
    View,
}

impl NotAcceptable {
    /// The error. For built-in kinds other media types are rejected before the request is
    /// processed.
    pub(crate) fn to_status(self, built_in: bool) -> Status {
        if self == Self::View || !built_in {
            return Status::not_acceptable(&OFFERED);
        }
        let list = OFFERED.join(", ");
        let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
        Status::new(406, Reason::NotAcceptable, message).with_details(Details::default())
    }
}

impl Form {
    /// Parses an `Accept` header; returns the first format that is offered. A table is offered if
    /// `has_table`, which is asked only if a table would be chosen.
    ///
    /// # Errors
    /// No format is offered.
    pub(crate) fn negotiate(
        accept: &str,
        has_table: impl Fn() -> bool,
    ) -> Result<Self, NotAcceptable> {
        if accept.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut refused = NotAcceptable::Media;
        for clause in accept.split(',') {
            match Self::of(clause) {
                Ok(form) if form.view == View::Table && !has_table() => {
                    refused = NotAcceptable::View;
                }
                Err(NotAcceptable::Media) => {}
                Err(NotAcceptable::View) => refused = NotAcceptable::View,
                accepted => return accepted,
            }
        }
        Err(refused)
    }

    fn of(clause: &str) -> Result<Self, NotAcceptable> {
        let mut parts = clause.split(';').map(str::trim);
        let mut form = Self::default();
        match parts.next() {
            Some("application/json" | "application/*" | "*/*") => {}
            Some("application/yaml") => form.yaml = true,
            // Protobuf is recognized, but not offered.
            Some(protobuf::MEDIA) => return Err(NotAcceptable::View),
            _ => return Err(NotAcceptable::Media),
        }
        let mut requested = "";
        for part in parts {
            match part.split_once('=') {
                Some(("as", kind)) => requested = kind,
                Some(("g", "meta.k8s.io") | ("v", "v1")) => {}
                Some(("v", "v1beta1")) => form.beta = true,
                Some(("g" | "v", _)) => return Err(NotAcceptable::View),
                _ => {}
            }
        }
        form.view = match requested {
            "" => View::Whole,
            "Table" => View::Table,
            "PartialObjectMetadata" | "PartialObjectMetadataList" => View::Metadata,
            _ => return Err(NotAcceptable::View),
        };
        Ok(form)
    }

    /// The media type of the response.
    pub(crate) fn content_type(self) -> &'static str {
        if self.yaml {
            "application/yaml"
        } else {
            "application/json"
        }
    }

    /// Checks the `includeObject` parameter for tables.
    ///
    /// # Errors
    /// 400 for an unknown value.
    pub(crate) fn check(self, include: &str) -> Result<(), Status> {
        if self.view != View::Table || IncludeObject::parse(include).is_some() {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: \
             {include:?}: must be 'Metadata', 'Object', 'None', or empty"
        )))
    }

    /// Sets the requested `meta.k8s.io` version of tables and metadata.
    fn versioned(self, mut shown: Value) -> Value {
        if !self.beta {
            return shown;
        }
        let beta = "meta.k8s.io/v1beta1";
        let rows = shown.get_mut("rows").and_then(Value::as_array_mut);
        let objects = rows.into_iter().flatten().map(|it| &mut it["object"]);
        for object in objects.filter(|it| it["kind"] == "PartialObjectMetadata") {
            object["apiVersion"] = beta.into();
        }
        shown["apiVersion"] = beta.into();
        shown
    }
}

/// JSON as YAML, with sorted keys as from Kubernetes' encoder.
fn yaml(json: &Bytes) -> Bytes {
    let Ok(mut value) = serde_json::from_slice::<Value>(json) else {
        return json.clone();
    };
    value.sort_all_objects();
    // JSON is also YAML, so that there is a response in any case.
    serde_saphyr::to_string(&value).map_or_else(|_| json.clone(), Bytes::from)
}

/// The part of an object that a table row contains.
fn include(word: &str) -> IncludeObject {
    IncludeObject::parse(word).unwrap_or_default()
}

/// Encodes a response.
pub(crate) struct Writer<'a> {
    pub(crate) form: Form,
    /// The `includeObject` parameter.
    pub(crate) include: &'a str,
    pub(crate) clock: &'a Clock,
    /// The write that the response is about, whose text watchers get too.
    pub(crate) change: Option<&'a Change>,
}

impl Writer<'_> {
    /// The encoded content; not for a watch.
    pub(crate) fn text(&self, content: &Content) -> Bytes {
        let text = self.json(content);
        match content {
            Content::Document { .. } | Content::Watch(_) => text,
            _ if self.form.yaml => yaml(&text),
            // Go's encoder ends its output with a newline.
            _ => {
                let mut line = Vec::with_capacity(text.len() + 1);
                line.extend_from_slice(&text);
                line.push(b'\n');
                line.into()
            }
        }
    }

    fn json(&self, content: &Content) -> Bytes {
        match content {
            Content::Plain(value) => meta::json(value),
            Content::Document { body, .. } => body.clone(),
            Content::Object(resource, object) => self.object(resource, object),
            Content::List(list) => self.list(list),
            Content::Watch(_) => Bytes::new(),
        }
    }

    fn object(&self, resource: &Resource, object: &Object) -> Bytes {
        match self.form.view {
            View::Whole => match self.change {
                Some(change) if Arc::ptr_eq(&change.object, object) => {
                    change.json().clone()
                }
                _ => meta::json(object),
            },
            View::Metadata => meta::json(&self.form.versioned(partial(object))),
            View::Table => {
                let table = self
                    .printer(resource)
                    .table(object, std::slice::from_ref(&**object));
                meta::json(&self.form.versioned(table))
            }
        }
    }

    fn printer<'r>(&self, resource: &'r Resource) -> TablePrinter<'r> {
        TablePrinter::new(resource, include(self.include), self.clock.now())
    }

    fn list(&self, list: &List) -> Bytes {
        let resource = &list.resource;
        match self.form.view {
            View::Whole => {
                let items = list.items.iter().map(|it| item(resource, it));
                let mut metadata = list.metadata();
                // For custom objects Kubernetes also writes the empty `continue`.
                if resource.custom && metadata.get("continue").is_none() {
                    metadata["continue"] = "".into();
                }
                whole_list(
                    (&resource.list_kind, &resource.api_version()),
                    &metadata,
                    items,
                )
            }
            View::Metadata => {
                let form = self.form;
                let items = list.items.iter();
                let items = items.map(|it| meta::json(&form.versioned(partial(it))));
                let version = if form.beta { "v1beta1" } else { "v1" };
                let version = format!("meta.k8s.io/{version}");
                whole_list(
                    ("PartialObjectMetadataList", &version),
                    &list.metadata(),
                    items,
                )
            }
            View::Table => {
                let head = json!({"metadata": list.metadata()});
                let items: Vec<Value> =
                    list.items.iter().map(|it| Value::clone(it)).collect();
                let table = self.printer(resource).table(&head, &items);
                meta::json(&self.form.versioned(table))
            }
        }
    }
}

/// A list's JSON, built from the JSON of its items so that no value is copied.
fn whole_list(
    (kind, api_version): (&str, &str),
    metadata: &Value,
    items: impl Iterator<Item = Bytes>,
) -> Bytes {
    let head = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
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

/// An object in a list; a built-in one omits apiVersion and kind.
fn item(resource: &Resource, object: &Object) -> Bytes {
    if resource.custom {
        return meta::json(object);
    }
    let fields = object.as_object().into_iter().flatten();
    let retained =
        fields.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind"));
    let retained: serde_json::Map<_, _> =
        retained.map(|(k, v)| (k.clone(), v.clone())).collect();
    meta::json(&Value::Object(retained))
}

/// An object's metadata as a `PartialObjectMetadata`.
fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// How the events of a watch are encoded.
#[derive(Debug)]
pub(crate) struct WatchForm {
    form: Form,
    include: IncludeObject,
    clock: Clock,
    /// The column definitions of a table are sent only with its first event.
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
        let object = match self.form.view {
            View::Whole => return event.line(),
            View::Metadata | View::Table => event.object(),
        };
        let Some(object) = object else {
            return event.line();
        };
        let shown = if self.form.view == View::Metadata {
            partial(object)
        } else {
            let turn = if self.begun {
                table::Event::Later
            } else {
                table::Event::First
            };
            self.begun = true;
            let printer = TablePrinter::new(resource, self.include, self.clock.now());
            printer.event(object, turn)
        };
        frame(event.kind(), &meta::json(&self.form.versioned(shown)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_offered_format_is_used() {
        let form = |view, beta, yaml| Form { view, beta, yaml };
        let rows = [
            ("", form(View::Whole, false, false)),
            ("*/*", form(View::Whole, false, false)),
            ("application/yaml", form(View::Whole, false, true)),
            (
                "application/vnd.kubernetes.protobuf, application/json",
                form(View::Whole, false, false),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                form(View::Table, false, false),
            ),
            (
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                form(View::Table, true, false),
            ),
            (
                "application/json;as=Other;v=v1;g=meta.k8s.io,application/json",
                form(View::Whole, false, false),
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                form(View::Metadata, false, false),
            ),
        ];
        for (accept, form) in rows {
            assert_eq!(Form::negotiate(accept, || true), Ok(form), "{accept}");
        }
        let refused = |accept| Form::negotiate(accept, || true).unwrap_err();
        assert_eq!(refused("application/xml"), NotAcceptable::Media);
        assert_eq!(refused("application/json;as=Other"), NotAcceptable::View);
        assert_eq!(
            refused("application/json;as=Other,application/xml"),
            NotAcceptable::View
        );
    }

    #[test]
    fn yaml_keys_are_sorted() {
        let json = Bytes::from_static(br#"{"b":"yes","a":[1,{"d":null,"c":""}]}"#);
        let text = yaml(&json);
        let text = std::str::from_utf8(&text).unwrap();
        assert!(text.starts_with("a:"), "{text}");
        let read: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(read, serde_json::from_slice::<Value>(&json).unwrap());
    }
}
