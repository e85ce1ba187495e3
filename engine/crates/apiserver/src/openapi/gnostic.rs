//! An OpenAPI v2 document in protobuf, which client-go asks for: the messages of
//! `OpenAPIv2.proto` in gnostic.

use serde_json::Value;

/// A message: the fields of its JSON object, and the number of its vendor extensions.
struct Message {
    fields: &'static [Field],
    extensions: u64,
}

/// The name in JSON, the number in protobuf, after the numbers of messages that only wrap the
/// value, and the form of the value.
type Field = (&'static str, &'static [u64], Form);

/// The form of a value. A value of another form is left out.
enum Form {
    Text,
    Flag,
    Integer,
    Double,
    /// Any value, as YAML.
    Yaml,
    Message(&'static Message),
    /// A list; each element is one occurrence of the field.
    Each(&'static Form),
    /// An object; each member is one message of the name (1) and of the value, which has
    /// these numbers.
    Named(&'static [u64], &'static Message),
    Parameters,
}

use Form::{Double, Each, Flag, Integer, Named, Parameters, Text, Yaml};

static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", &[1], Text),
        ("info", &[2], Form::Message(&INFO)),
        ("paths", &[8, 2], Named(&[2], &PATH_ITEM)),
        ("definitions", &[9, 1], Named(&[2], &SCHEMA)),
    ],
    extensions: 16,
};

static INFO: Message = Message {
    fields: &[("title", &[1], Text), ("version", &[2], Text)],
    extensions: 7,
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("get", &[2], Form::Message(&OPERATION)),
        ("put", &[3], Form::Message(&OPERATION)),
        ("post", &[4], Form::Message(&OPERATION)),
        ("delete", &[5], Form::Message(&OPERATION)),
        ("patch", &[8], Form::Message(&OPERATION)),
        ("parameters", &[9], Parameters),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", &[1], Each(&Text)),
        ("description", &[3], Text),
        ("operationId", &[5], Text),
        ("produces", &[6], Each(&Text)),
        ("consumes", &[7], Each(&Text)),
        ("parameters", &[8], Parameters),
        ("responses", &[9, 1], Named(&[2, 1], &RESPONSE)),
    ],
    extensions: 13,
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", &[1], Text),
        ("schema", &[2, 1], Form::Message(&SCHEMA)),
    ],
    extensions: 5,
};

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", &[1], Text),
        ("name", &[2], Text),
        ("in", &[3], Text),
        ("required", &[4], Flag),
        ("schema", &[5], Form::Message(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", &[1], Flag),
        ("in", &[2], Text),
        ("description", &[3], Text),
        ("name", &[4], Text),
        ("type", &[6], Text),
        ("uniqueItems", &[20], Flag),
    ],
    extensions: 23,
};

static PATH_PARAMETER: Message = Message {
    fields: &[
        ("required", &[1], Flag),
        ("in", &[2], Text),
        ("description", &[3], Text),
        ("name", &[4], Text),
        ("type", &[5], Text),
        ("uniqueItems", &[19], Flag),
    ],
    extensions: 22,
};

static EXTERNAL_DOCS: Message = Message {
    fields: &[("description", &[1], Text), ("url", &[2], Text)],
    extensions: 3,
};

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", &[1], Text),
        ("format", &[2], Text),
        ("title", &[3], Text),
        ("description", &[4], Text),
        ("multipleOf", &[6], Double),
        ("maximum", &[7], Double),
        ("exclusiveMaximum", &[8], Flag),
        ("minimum", &[9], Double),
        ("exclusiveMinimum", &[10], Flag),
        ("maxLength", &[11], Integer),
        ("minLength", &[12], Integer),
        ("pattern", &[13], Text),
        ("maxItems", &[14], Integer),
        ("minItems", &[15], Integer),
        ("uniqueItems", &[16], Flag),
        ("maxProperties", &[17], Integer),
        ("minProperties", &[18], Integer),
        ("required", &[19], Each(&Text)),
        ("enum", &[20], Each(&Yaml)),
        ("additionalProperties", &[21, 1], Form::Message(&SCHEMA)),
        ("additionalProperties", &[21, 2], Flag),
        ("type", &[22, 1], Text),
        ("items", &[23, 1], Form::Message(&SCHEMA)),
        ("properties", &[25, 1], Named(&[2], &SCHEMA)),
        ("externalDocs", &[29], Form::Message(&EXTERNAL_DOCS)),
        ("example", &[30], Yaml),
    ],
    extensions: 31,
};

/// The bytes of an OpenAPI v2 document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    message(&DOCUMENT, document)
}

fn message(message: &Message, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, numbers, form) in message.fields {
        if let Some(value) = value.get(key) {
            put(&mut bytes, numbers, form, value);
        }
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        if key.starts_with("x-") {
            let mut named = Vec::new();
            put_bytes(&mut named, 1, key.as_bytes());
            put(&mut named, &[2], &Yaml, value);
            put_bytes(&mut bytes, message.extensions, &named);
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, numbers: &[u64], form: &Form, value: &Value) {
    let (number, inner) = match numbers {
        [] => return,
        [number] => (*number, None),
        [number, inner @ ..] => (*number, Some(inner)),
    };
    if let Some(inner) = inner {
        let mut wrapped = Vec::new();
        put(&mut wrapped, inner, form, value);
        if !wrapped.is_empty() {
            put_bytes(bytes, number, &wrapped);
        }
        return;
    }
    match (form, value) {
        (Text, Value::String(text)) => put_bytes(bytes, number, text.as_bytes()),
        (Flag, Value::Bool(flag)) => {
            varint(bytes, number << 3);
            varint(bytes, u64::from(*flag));
        }
        (Integer, Value::Number(it)) => {
            varint(bytes, number << 3);
            varint(bytes, it.as_i64().unwrap_or_default().cast_unsigned());
        }
        (Double, Value::Number(it)) => {
            varint(bytes, number << 3 | 1);
            bytes.extend(it.as_f64().unwrap_or_default().to_le_bytes());
        }
        (Yaml, value) => {
            // JSON is YAML.
            let mut any = Vec::new();
            put_bytes(&mut any, 2, value.to_string().as_bytes());
            put_bytes(bytes, number, &any);
        }
        (Form::Message(shape), Value::Object(_)) => {
            put_bytes(bytes, number, &message(shape, value));
        }
        (Each(form), Value::Array(items)) => {
            for item in items {
                put(bytes, numbers, form, item);
            }
        }
        (Named(inner, shape), Value::Object(members)) => {
            for (name, member) in members {
                let mut named = Vec::new();
                put_bytes(&mut named, 1, name.as_bytes());
                put(&mut named, inner, &Form::Message(shape), member);
                put_bytes(bytes, number, &named);
            }
        }
        (Parameters, Value::Array(parameters)) => {
            for parameter in parameters {
                let mut item = Vec::new();
                let (inner, shape) = parameter_message(parameter);
                put(&mut item, inner, &Form::Message(shape), parameter);
                put_bytes(bytes, number, &item);
            }
        }
        _ => {}
    }
}

/// The numbers and the message of a parameter in a `ParametersItem`.
fn parameter_message(parameter: &Value) -> (&'static [u64], &'static Message) {
    match parameter["in"].as_str() {
        Some("body") => (&[1, 1], &BODY_PARAMETER),
        Some("path") => (&[1, 2, 4], &PATH_PARAMETER),
        _ => (&[1, 2, 3], &QUERY_PARAMETER),
    }
}

fn put_bytes(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(bytes, number << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend(content);
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
}
