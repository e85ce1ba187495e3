//! Encodes objects to protobuf as clients do, for tests of the decoder.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::MAGIC;
use super::form::{Shape, TABLE};

/// The body that a client sends for `object`; `None` for a kind that is not in the table.
pub(crate) fn encode(object: &Value) -> Option<Vec<u8>> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let message = TABLE.of_kind(text("apiVersion"), text("kind"))?;
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, text("apiVersion").as_bytes());
    put_bytes(&mut meta, 2, text("kind").as_bytes());
    let mut body = MAGIC.to_vec();
    put_bytes(&mut body, 1, &meta);
    put_bytes(&mut body, 2, &fields(message, object.as_object()?));
    Some(body)
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
}

fn put_number(bytes: &mut Vec<u8>, field: u64, number: i64) {
    varint(bytes, field << 3);
    varint(bytes, number.cast_unsigned());
}

fn put_bytes(bytes: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(bytes, field << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend(content);
}

/// One message.
fn fields(message: &str, object: &Map<String, Value>) -> Vec<u8> {
    let mut known: Vec<_> = TABLE.fields(message).collect();
    known.sort_by_key(|(number, _)| *number);
    let mut bytes = Vec::new();
    for (number, field) in known {
        if let (Shape::Message(inner), "-") = (&field.shape, field.name.as_str()) {
            put_bytes(&mut bytes, number, &fields(inner, object));
        } else if let Some(value) = object.get(&field.name).filter(|it| !it.is_null()) {
            put(&mut bytes, number, &field.shape, value);
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, number: u64, shape: &Shape, value: &Value) {
    let text = value.as_str().unwrap_or_default();
    let mut inner = Vec::new();
    match shape {
        Shape::Bool => put_number(bytes, number, (value == true).into()),
        Shape::Int => put_number(bytes, number, value.as_i64().unwrap_or_default()),
        Shape::Double => {
            varint(bytes, number << 3 | 1);
            bytes.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Shape::Text => put_bytes(bytes, number, text.as_bytes()),
        Shape::Bytes => {
            put_bytes(bytes, number, &STANDARD.decode(text).unwrap_or_default());
        }
        Shape::List(item) => {
            let items = value.as_array().into_iter().flatten();
            items.for_each(|it| put(bytes, number, item, it));
        }
        Shape::Map(shape) => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                put(&mut entry, 2, shape, value);
                put_bytes(bytes, number, &entry);
            }
        }
        shape => {
            put_message(&mut inner, shape, value);
            put_bytes(bytes, number, &inner);
        }
    }
}

/// Encodes a value that is a nested message.
fn put_message(inner: &mut Vec<u8>, shape: &Shape, value: &Value) {
    let text = value.as_str().unwrap_or_default();
    match shape {
        Shape::Message(message) => {
            inner.extend(
                value
                    .as_object()
                    .map(|it| fields(message, it))
                    .unwrap_or_default(),
            );
        }
        Shape::Items(item) => {
            let items = value.as_array().into_iter().flatten();
            items.for_each(|it| put(inner, 1, item, it));
        }
        Shape::Time { .. } => {
            let at: Timestamp = text.parse().unwrap_or_default();
            put_number(inner, 1, at.as_second());
            put_number(inner, 2, at.subsec_nanosecond().into());
        }
        Shape::Raw => put_bytes(inner, 1, value.to_string().as_bytes()),
        Shape::Quantity => put_bytes(inner, 1, text.as_bytes()),
        Shape::IntOrString => {
            if let Some(number) = value.as_i64() {
                put_number(inner, 2, number);
            } else {
                put_number(inner, 1, 1);
                put_bytes(inner, 3, text.as_bytes());
            }
        }
        Shape::Either { number, list } => {
            if let Some(schema) = value.as_object() {
                let schema = fields("apiextensions.v1.JSONSchemaProps", schema);
                put_bytes(inner, *number, &schema);
            } else {
                put(inner, 3 - number, list, value);
            }
        }
        _ => {}
    }
}
