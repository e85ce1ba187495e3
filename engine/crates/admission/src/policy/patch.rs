//! The result of a mutation's expression, as JSON.

use kubemu_cel::{Map, Struct, Value};
use serde_json::{Map as JsonMap, Number, Value as Json};

use super::mutating_policy::PatchType;

/// The approximate maximum size of a patch, in bytes.
const MAX_SIZE: usize = 4 << 20;
/// The largest integer that a JSON patch has as a number; larger ones are text.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// The largest integral float that is written without a fraction.
const MAX_WHOLE_NUMBER: f64 = 9_007_199_254_740_992.0;

/// The object to merge, or the operations to apply.
///
/// # Errors
/// Why the value is not a patch, with the API server's message.
pub(super) fn of(value: &Value<'_>, kind: PatchType) -> Result<Json, String> {
    let mut writer = Writer {
        kind,
        left: MAX_SIZE,
        mismatches: Vec::new(),
    };
    match (kind, value) {
        (PatchType::ApplyConfiguration, Value::Struct(object)) => {
            let object = writer.object(object, object.name())?;
            writer.finish(object)
        }
        (PatchType::ApplyConfiguration, other) => Err(format!(
            "unsupported return type from ApplyConfiguration expression: {}",
            other.type_name()
        )),
        (PatchType::JsonPatch, Value::List(list)) => {
            let mut operations = Vec::new();
            for item in list.iter() {
                operations.push(writer.operation(item)?);
            }
            writer.finish(Json::Array(operations))
        }
        (PatchType::JsonPatch, _) => Err(
            "type mismatch: JSONPatchType.expression should evaluate to array".to_owned(),
        ),
    }
}

struct Writer {
    kind: PatchType,
    /// The number of bytes that may still be written.
    left: usize,
    /// The type names that do not match their position.
    mismatches: Vec<String>,
}

impl Writer {
    fn finish(self, written: Json) -> Result<Json, String> {
        if self.mismatches.is_empty() {
            return Ok(written);
        }
        Err(format!("type mismatch: {}", self.mismatches.join("\n")))
    }

    fn operation<E>(&mut self, item: Result<Value<'_>, E>) -> Result<Json, String> {
        let Ok(Value::Struct(operation)) = item else {
            return Err(
                "type mismatch: JSONPatchType.expression should evaluate to array of \
                 JSONPatch"
                    .to_owned(),
            );
        };
        let mut written = JsonMap::new();
        let text = |name: &str| {
            let value = operation.field(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        for name in ["op", "path", "from"] {
            let text = text(name);
            self.take(text.len())?;
            if name != "from" || !text.is_empty() {
                written.insert(name.to_owned(), text.into());
            }
        }
        if let Some(value) = operation.field("value") {
            let place = match value {
                Value::Struct(object) => object.name(),
                _ => "",
            };
            written.insert("value".to_owned(), self.json(value, place)?);
        }
        Ok(Json::Object(written))
    }

    /// Writes an object, whose type must be `place`.
    fn object(&mut self, object: &Struct<'_>, place: &str) -> Result<Json, String> {
        if object.name() != place {
            self.mismatches.push(format!(
                "unexpected type name {:?}, expected {place:?}, which matches field name \
                 path from root Object type",
                object.name()
            ));
        }
        let mut written = JsonMap::new();
        for (name, value) in object.fields() {
            self.take(name.len())?;
            if self.kind == PatchType::JsonPatch && matches!(value, Value::Null) {
                return Err(unwritable("proto: invalid type: structpb.NullValue"));
            }
            let value = self.json(value, &format!("{place}.{name}"))?;
            written.insert(name.to_owned(), value);
        }
        Ok(Json::Object(written))
    }

    /// Lists and maps have no type name: their contents must have the types of `place`.
    fn json(&mut self, value: &Value<'_>, place: &str) -> Result<Json, String> {
        self.take(1)?;
        Ok(match value {
            Value::Struct(object) => self.object(object, place)?,
            Value::List(list) => {
                let mut items = Vec::new();
                for item in list.iter() {
                    let item = item.map_err(|error| error.to_string())?;
                    items.push(self.json(&item, place)?);
                }
                Json::Array(items)
            }
            Value::Map(map) => Json::Object(self.map(map, place)?),
            Value::Optional(Some(inner)) => self.json(inner, place)?,
            other => {
                self.fits(other, place)?;
                self.scalar(other)?
            }
        })
    }

    /// Rejects, in an object to merge, values that no field accepts: the merge uses Go values
    /// and does not support these types.
    fn fits(&self, value: &Value<'_>, place: &str) -> Result<(), String> {
        let go = match value {
            Value::Null => "structpb.NullValue",
            Value::Uint(_) => "uint64",
            Value::Bytes(_) => "[]uint8",
            Value::Duration(_) => "time.Duration",
            Value::Timestamp(_) => "time.Time",
            _ => return Ok(()),
        };
        if self.kind == PatchType::JsonPatch {
            return Ok(());
        }
        let path = place.strip_prefix("Object").unwrap_or(place);
        Err(format!(
            "error applying patch: failed to convert patch object to typed object: {path}: \
             expected a value that JSON has, got {go}"
        ))
    }

    fn map(
        &mut self,
        map: &Map<'_>,
        place: &str,
    ) -> Result<JsonMap<String, Json>, String> {
        let mut written = JsonMap::new();
        for (key, value) in map.entries().map_err(|error| error.to_string())? {
            let name = match (&key, self.kind) {
                (Value::String(name), _) => name.to_string(),
                (_, PatchType::ApplyConfiguration) => {
                    return Err("invalid return type: *dynamic.ObjectVal".to_owned());
                }
                (Value::Bool(_), _) => {
                    return Err(unwritable(
                        "type conversion error from bool to 'string'",
                    ));
                }
                (other, _) => {
                    let name = other.type_name();
                    return Err(unwritable(&format!(
                        "unsupported type conversion from '{name}' to string"
                    )));
                }
            };
            self.take(name.len())?;
            written.insert(name, self.json(&value, place)?);
        }
        Ok(written)
    }

    fn scalar(&mut self, value: &Value<'_>) -> Result<Json, String> {
        let is_patch = self.kind == PatchType::JsonPatch;
        let is_large = |number: u64| is_patch && number > MAX_SAFE_INTEGER;
        Ok(match value {
            Value::Optional(None) if is_patch => {
                return Err(unwritable("optional.none() dereference"));
            }
            Value::Null | Value::Optional(None) => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) if is_large(value.unsigned_abs()) => {
                value.to_string().into()
            }
            Value::Uint(value) if is_large(*value) => value.to_string().into(),
            Value::Int(value) => (*value).into(),
            Value::Uint(value) => (*value).into(),
            Value::Double(double) => {
                let is_whole = double.fract() == 0.0 && double.abs() < MAX_WHOLE_NUMBER;
                let whole: Option<Number> = is_whole
                    .then(|| format!("{double:.0}").parse().ok())
                    .flatten();
                let number = whole.or_else(|| Number::from_f64(*double));
                number
                    .map(Json::Number)
                    .ok_or_else(|| not_finite(*double))?
            }
            Value::String(text) => {
                self.take(text.len())?;
                (**text).into()
            }
            Value::Bytes(bytes) => {
                self.take(bytes.len())?;
                value.to_json()
            }
            Value::Timestamp(_) | Value::Duration(_) if is_patch => value.to_json(),
            Value::Type(_) => {
                return Err(unwritable("type conversion not supported for 'type'"));
            }
            other => {
                let name = other.type_name();
                let short = name.rsplit_once('.').map_or(name, |(_, it)| it);
                return Err(unwritable(&format!(
                    "type conversion error from '{short}' to '*structpb.Value'"
                )));
            }
        })
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes);
        self.left =
            left.ok_or_else(|| format!("patch is too large: the maximum is {MAX_SIZE}"))?;
        Ok(())
    }
}

fn unwritable(why: &str) -> String {
    format!(
        "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
    )
}

/// Go's error for a float without a JSON form.
fn not_finite(double: f64) -> String {
    let name = if double.is_nan() {
        "NaN"
    } else if double > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    };
    unwritable(&format!(
        "json: error calling MarshalJSON for type *structpb.Value: proto: \
         google.protobuf.Value.number_value: invalid {name} value"
    ))
}
