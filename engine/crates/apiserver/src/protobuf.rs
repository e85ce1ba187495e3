//! Decodes protobuf request bodies to JSON.
//!
//! The numbers, names and types of the fields are in a table that is generated from
//! Kubernetes' own types; this module contains no kinds. See
//! `internals/decisions/0034-protobuf-by-table.md`.

#[cfg(test)]
mod encode;
mod form;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use form::{Field, Shape, TABLE};
use wire::{Raw, Reader};

#[cfg(test)]
pub(crate) use encode::encode;

/// The media type of protobuf bodies.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of each message.
const MAGIC: &[u8] = b"k8s\0";
/// The maximum nesting depth of messages.
const DEPTH: usize = 100;
/// The maximum number of values in one body. It bounds the memory of a decoded body; objects of
/// the built-in kinds have far fewer.
const VALUES: usize = 1_000_000;

/// The reason why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    #[error("unexpected EOF")]
    End,
    #[error("proto: illegal wireType {0}")]
    Wire(u64),
    #[error("no kind \"{kind}\" is registered for version \"{version}\"")]
    Kind { version: String, kind: String },
    #[error("proto: wrong wireType for field {0}")]
    Type(String),
    #[error("proto: invalid UTF-8 in field {0}")]
    Text(String),
    #[error("the message has more values, or is nested deeper, than an object may be")]
    Size,
}

/// Decodes a message of any kind in the table.
///
/// # Errors
/// The bytes are not such a message.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Error> {
    let message = bytes.strip_prefix(MAGIC).ok_or(Error::Prefix)?;
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &b""[..]);
    for (number, part) in Reader(message).fields()? {
        match (number, part) {
            (1, Raw::Bytes(meta)) => {
                for (number, part) in Reader(meta).fields()? {
                    let text = match part {
                        Raw::Bytes(bytes) => text("typeMeta", bytes)?,
                        _ => continue,
                    };
                    match number {
                        1 => version = text,
                        2 => kind = text,
                        _ => {}
                    }
                }
            }
            (2, Raw::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let Some(message) = TABLE.of_kind(&version, &kind) else {
        return Err(Error::Kind { version, kind });
    };
    let mut reading = Decoder { values: 0 };
    let fields = reading.message(message, raw, DEPTH)?;
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), version.into());
    object.insert("kind".to_owned(), kind.into());
    object.extend(fields);
    Ok(Value::Object(object))
}

fn text(field: &str, bytes: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|_| Error::Text(field.to_owned()))
}

struct Decoder {
    values: usize,
}

impl Decoder {
    fn message(
        &mut self,
        name: &str,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Map<String, Value>, Error> {
        let depth = depth.checked_sub(1).ok_or(Error::Size)?;
        let mut fields = Map::new();
        for (number, raw) in Reader(bytes).fields()? {
            let Some(field) = TABLE.field(name, number) else {
                continue;
            };
            self.values += 1;
            if self.values > VALUES {
                return Err(Error::Size);
            }
            self.field(field, raw, &mut fields, depth)?;
        }
        Ok(fields)
    }

    fn field(
        &mut self,
        field: &Field,
        raw: Raw<'_>,
        fields: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Error> {
        let name = field.name.as_str();
        match &field.shape {
            Shape::Message(message) if name == "-" => {
                let Raw::Bytes(bytes) = raw else {
                    return Err(Error::Type(message.clone()));
                };
                fields.extend(self.message(message, bytes, depth)?);
            }
            Shape::List(shape) => {
                let item = self.value(name, shape, raw, depth)?;
                let list = fields.entry(name).or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    list.push(item);
                }
            }
            Shape::Map(shape) => {
                let (key, value) = self.entry(name, shape, raw, depth)?;
                let map = fields.entry(name).or_insert_with(|| json!({}));
                if let Some(map) = map.as_object_mut() {
                    map.insert(key, value);
                }
            }
            shape => {
                let value = self.value(name, shape, raw, depth)?;
                let zero = value == "" || value == 0 || value == false || value == 0.0;
                if !value.is_null() && (field.has_explicit_zero || !zero) {
                    fields.insert(name.to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// One entry of a map: a message of a key and a value.
    fn entry(
        &mut self,
        name: &str,
        shape: &Shape,
        raw: Raw<'_>,
        depth: usize,
    ) -> Result<(String, Value), Error> {
        let Raw::Bytes(bytes) = raw else {
            return Err(Error::Type(name.to_owned()));
        };
        let (mut key, mut value) = (String::new(), None);
        for (number, raw) in Reader(bytes).fields()? {
            match (number, raw) {
                (1, Raw::Bytes(bytes)) => key = text(name, bytes)?,
                (2, raw) => value = Some(self.value(name, shape, raw, depth)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.value(name, shape, Raw::Bytes(b""), depth)?,
        };
        Ok((key, value))
    }

    fn value(
        &mut self,
        name: &str,
        shape: &Shape,
        raw: Raw<'_>,
        depth: usize,
    ) -> Result<Value, Error> {
        let wrong = || Error::Type(name.to_owned());
        Ok(match (shape, raw) {
            (Shape::Bool, Raw::Number(number)) => (number != 0).into(),
            (Shape::Int, Raw::Number(number)) => number.cast_signed().into(),
            (Shape::Double, Raw::Fixed(bits)) => f64::from_bits(bits).into(),
            (Shape::Text, Raw::Bytes(bytes)) => text(name, bytes)?.into(),
            (Shape::Bytes, Raw::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            (Shape::Message(message), Raw::Bytes(bytes)) => {
                self.message(message, bytes, depth)?.into()
            }
            (Shape::Items(shape), Raw::Bytes(bytes)) => {
                let mut items = Vec::new();
                for (number, raw) in Reader(bytes).fields()? {
                    if number == 1 {
                        items.push(self.value(name, shape, raw, depth)?);
                    }
                }
                items.into()
            }
            (Shape::Time { digits }, Raw::Bytes(bytes)) => time(bytes, *digits)?,
            (Shape::Raw, Raw::Bytes(bytes)) => match first(bytes)? {
                Some(Raw::Bytes(json)) => {
                    serde_json::from_slice(json).map_err(|_| wrong())?
                }
                _ => Value::Null,
            },
            (Shape::Quantity, Raw::Bytes(bytes)) => match first(bytes)? {
                Some(Raw::Bytes(bytes)) => text(name, bytes)?.into(),
                _ => "0".into(),
            },
            (Shape::IntOrString, Raw::Bytes(bytes)) => int_or_string(name, bytes)?,
            (Shape::Either { number, list }, Raw::Bytes(bytes)) => {
                self.either(name, (*number, list), bytes, depth)?
            }
            _ => return Err(wrong()),
        })
    }

    /// A schema (field 1 in most messages), or an alternative value.
    fn either(
        &mut self,
        name: &str,
        (schema, other): (u64, &Shape),
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, Error> {
        const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";
        let depth = depth.checked_sub(1).ok_or(Error::Size)?;
        let mut items = Vec::new();
        let mut plain = Value::Null;
        for (number, raw) in Reader(bytes).fields()? {
            match raw {
                Raw::Bytes(bytes) if number == schema => {
                    return Ok(self.message(SCHEMA, bytes, depth)?.into());
                }
                raw => match other {
                    Shape::List(shape) => {
                        items.push(self.value(name, shape, raw, depth)?);
                    }
                    shape => plain = self.value(name, shape, raw, depth)?,
                },
            }
        }
        Ok(if plain.is_null() { items.into() } else { plain })
    }
}

/// The value of the first field of a message.
fn first(bytes: &[u8]) -> Result<Option<Raw<'_>>, Error> {
    let fields = Reader(bytes).fields()?;
    let found = fields.into_iter().find(|(number, _)| *number == 1);
    Ok(found.map(|(_, raw)| raw))
}

/// A time of seconds and nanoseconds; an empty message is null.
fn time(bytes: &[u8], digits: usize) -> Result<Value, Error> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let fields = Reader(bytes).fields()?;
    if fields.is_empty() {
        return Ok(Value::Null);
    }
    for (number, raw) in fields {
        if let Raw::Number(value) = raw {
            match number {
                1 => seconds = value.cast_signed(),
                2 => nanos = i32::try_from(value).unwrap_or_default(),
                _ => {}
            }
        }
    }
    let at = Timestamp::new(seconds, if digits == 0 { 0 } else { nanos });
    let at = at.map_err(|_| Error::Type("time".to_owned()))?;
    Ok(if digits == 0 {
        at.to_string().into()
    } else {
        format!("{at:.digits$}").into()
    })
}

fn int_or_string(name: &str, bytes: &[u8]) -> Result<Value, Error> {
    let (mut is_text, mut number, mut words) = (false, 0_i64, String::new());
    for (field, raw) in Reader(bytes).fields()? {
        match (field, raw) {
            (1, Raw::Number(kind)) => is_text = kind == 1,
            (2, Raw::Number(value)) => number = value.cast_signed(),
            (3, Raw::Bytes(bytes)) => words = text(name, bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

#[cfg(test)]
mod tests;
