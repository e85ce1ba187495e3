//! Conversions between types of values.

use std::sync::Arc;

use super::Value;
use crate::RunError;
use crate::time::{Duration, Timestamp};
use kubemu_gostd::strconv::{format_float, parse_float, parse_uint};

const OUT_OF_RANGE: &str = "integer overflow";
/// 2^63, the first float above every signed integer.
const ABOVE_INT: f64 = 9_223_372_036_854_775_808.0;
/// 2^64, the first float above every unsigned integer.
const ABOVE_UINT: f64 = 18_446_744_073_709_551_616.0;

/// The integer equal to this float, if there is one.
pub(crate) fn lossless_integer(value: f64) -> Option<Value<'static>> {
    if value.trunc().to_bits() != value.to_bits() && value != 0.0 {
        return None;
    }
    if (-ABOVE_INT..ABOVE_INT).contains(&value) {
        return Some(Value::Int(truncated(value)));
    }
    (0.0..ABOVE_UINT)
        .contains(&value)
        .then(|| Value::Uint(truncated_unsigned(value)))
}

/// The float truncated to an integer, for floats in the range of integers.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the caller has checked the range"
)]
pub(crate) fn truncated(value: f64) -> i64 {
    value as i64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller has checked the range"
)]
fn truncated_unsigned(value: f64) -> u64 {
    value as u64
}

/// The nearest float.
#[expect(clippy::cast_precision_loss, reason = "the language requires it")]
pub(crate) fn nearest(value: i64) -> f64 {
    value as f64
}

/// The nearest float.
#[expect(clippy::cast_precision_loss, reason = "the language requires it")]
pub(crate) fn nearest_unsigned(value: u64) -> f64 {
    value as f64
}

fn refused(value: &Value<'_>, to: &str) -> RunError {
    RunError::text(format!(
        "type conversion error from '{}' to '{to}'",
        value.type_name()
    ))
}

impl<'v> Value<'v> {
    /// `int(x)`
    pub(crate) fn to_int(&self) -> Result<Value<'v>, RunError> {
        let int = match self {
            Self::Int(value) => Some(*value),
            Self::Uint(value) => i64::try_from(*value).ok(),
            Self::Double(value) => {
                // Go's conversion excludes the ends of the range.
                let inside = *value > -ABOVE_INT && *value < ABOVE_INT;
                inside.then(|| truncated(*value))
            }
            Self::Timestamp(value) => Some(value.seconds()),
            Self::Duration(value) => Some(value.nanos()),
            Self::String(text) => {
                Some(go_integer(text).ok_or_else(|| refused(self, "int"))?)
            }
            _ => return Err(refused(self, "int")),
        };
        int.map(Value::Int)
            .ok_or_else(|| RunError::text(OUT_OF_RANGE))
    }

    /// `uint(x)`
    pub(crate) fn to_uint(&self) -> Result<Value<'v>, RunError> {
        let uint = match self {
            Self::Uint(value) => Some(*value),
            Self::Int(value) => u64::try_from(*value).ok(),
            Self::Double(value) => (0.0..ABOVE_UINT)
                .contains(value)
                .then(|| truncated_unsigned(*value)),
            Self::String(text) => {
                Some(parse_uint(text).ok_or_else(|| refused(self, "uint"))?)
            }
            _ => return Err(refused(self, "uint")),
        };
        uint.map(Value::Uint)
            .ok_or_else(|| RunError::text("unsigned integer overflow"))
    }

    /// `double(x)`
    pub(crate) fn to_double(&self) -> Result<Value<'v>, RunError> {
        Ok(Value::Double(match self {
            Self::Double(value) => *value,
            Self::Int(value) => nearest(*value),
            Self::Uint(value) => nearest_unsigned(*value),
            Self::String(text) => {
                parse_float(text).ok_or_else(|| refused(self, "double"))?
            }
            _ => return Err(refused(self, "double")),
        }))
    }

    /// `bool(x)`
    pub(crate) fn to_bool(&self) -> Result<Value<'v>, RunError> {
        match self {
            Self::Bool(value) => Ok(Value::Bool(*value)),
            Self::String(text) => match &**text {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
                _ => Err(refused(self, "bool")),
            },
            _ => Err(refused(self, "bool")),
        }
    }

    /// `bytes(x)`
    pub(crate) fn to_bytes(&self) -> Result<Value<'v>, RunError> {
        match self {
            Self::Bytes(value) => Ok(Value::Bytes(Arc::clone(value))),
            Self::String(text) => Ok(Value::Bytes(Arc::from(text.as_bytes()))),
            _ => Err(refused(self, "bytes")),
        }
    }

    /// `timestamp(x)`
    pub(crate) fn to_timestamp(&self) -> Result<Value<'v>, RunError> {
        match self {
            Self::Timestamp(value) => Ok(Value::Timestamp(*value)),
            Self::Int(seconds) => Timestamp::from_seconds(*seconds)
                .map(Value::Timestamp)
                .ok_or_else(|| RunError::text("timestamp overflow")),
            Self::String(text) => {
                Timestamp::parse(text).map(Value::Timestamp).ok_or_else(|| {
                    if Timestamp::is_rfc_3339(text) {
                        RunError::text("timestamp overflow")
                    } else {
                        refused(self, "google.protobuf.Timestamp")
                    }
                })
            }
            _ => Err(refused(self, "google.protobuf.Timestamp")),
        }
    }

    /// `duration(x)`
    pub(crate) fn to_duration(&self) -> Result<Value<'v>, RunError> {
        match self {
            Self::Duration(value) => Ok(Value::Duration(*value)),
            Self::String(text) => Duration::parse(text)
                .map(Value::Duration)
                .ok_or_else(|| refused(self, "google.protobuf.Duration")),
            _ => Err(refused(self, "google.protobuf.Duration")),
        }
    }

    /// `string(x)`
    pub(crate) fn to_string_value(&self) -> Result<Value<'v>, RunError> {
        match self {
            Self::String(_) => Ok(self.clone()),
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::text(text)),
                Err(_) => Err(RunError::text(
                    "invalid UTF-8 in bytes, cannot convert to string",
                )),
            },
            Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Timestamp(_)
            | Self::Duration(_)
            | Self::Library(_) => Ok(Value::text(self.to_text())),
            _ => Err(refused(self, "string")),
        }
    }

    /// The value as text: the result of `string(x)`, if that is defined.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Double(value) => format_float(*value),
            Self::String(text) => text.to_string(),
            Self::Timestamp(value) => value.to_string(),
            Self::Duration(value) => format!("{}s", value.seconds()),
            Self::Library(value) => value.to_string(),
            Self::Type(name) => name.to_string(),
            Self::List(list) if !list.is_unstructured() => {
                let items = list.readable_items();
                let items: Vec<_> = items.iter().map(Self::to_text).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(map) if !map.is_unstructured() => {
                let entries = map.entries().unwrap_or_default();
                let entries = entries.iter();
                let entries: Vec<_> = entries
                    .map(|(key, value)| format!("{}: {}", key.to_text(), value.to_text()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Optional(None) => "optional.none()".to_owned(),
            Self::Optional(Some(value)) => format!("optional({})", value.to_text()),
            // Go prints the memory addresses of these.
            Self::List(_) | Self::Map(_) => self.to_json().to_string(),
            other => other.type_name().to_owned(),
        }
    }
}

/// The integers that Go's `strconv.ParseInt(text, 10, 64)` accepts.
fn go_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}
