//! Numbers: types, bounds and multiples as in Go's validator, for which a JSON number without
//! fraction and exponent is an `int64` if it fits, and otherwise a `float64`.

use serde_json::{Number, Value};

use super::node::Node;
use super::validation_error::{Location, Outcome};
use crate::KubeVersion;
use kubemu_gostd::strconv::format_float;

/// The type of a value and, for numbers, the format of its Go type.
pub(super) fn kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.as_i64().is_some() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a number is an exact integer: `5.0` is accepted as an integer.
pub(super) fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(is_json_integer)
}

/// Whether a float is an integer in the range that JSON represents exactly, up to rounding.
fn is_json_integer(float: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    if !(-EXACT..=EXACT).contains(&float) {
        return false;
    }
    if float.fract() == 0.0 {
        return true;
    }
    // Go rounds via an unsigned integer, so a negative number with a fraction never qualifies.
    if float < 0.0 {
        return false;
    }
    let nearest = float.trunc();
    let distance = (float - nearest).abs();
    distance / (float.abs() + nearest.abs()) < 1e-9
}

/// Equality as in the enumeration check of Go's validator: numbers by value, other values by
/// type and value.
pub(super) fn same(value: &Value, one: &Value) -> bool {
    match (value, one) {
        (Value::Number(value), Value::Number(one)) => {
            match (value.as_i64(), one.as_i64()) {
                (Some(value), Some(one)) => value == one,
                // The value is converted to the type of the entry.
                (None, Some(one)) => {
                    value.as_f64().is_some_and(|float| truncated(float) == one)
                }
                _ => value.as_f64() == one.as_f64(),
            }
        }
        (value, one) => value == one,
    }
}

/// The float as Go converts it to an `int64` on amd64, where most control planes run: truncated, or
/// the smallest `int64` if it is out of range. On arm64 it is the nearest one, so that a maximum of
/// `1e21` rejects every integer on the one and none on the other.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked before"
)]
const fn truncated(float: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if float >= -END && float < END {
        float as i64
    } else {
        i64::MIN
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are floats in Go too")]
const fn widened(integer: i64) -> f64 {
    integer as f64
}

/// Validates range, multiple and bounds.
pub(super) fn check(
    node: &Node,
    value: &Number,
    location: Location<'_>,
    version: KubeVersion,
) -> Outcome {
    let part = NumberCheck {
        node,
        value,
        location,
        ranged: version.is_at_least(36) && !node.int_or_string,
    };
    let mut outcome = Outcome::default();
    part.check(&mut outcome);
    outcome.matches += 1;
    outcome
}

struct NumberCheck<'a> {
    node: &'a Node,
    value: &'a Number,
    location: Location<'a>,
    /// Whether values and bounds must be in the range of the declared type and format, which is
    /// checked from 1.36 on.
    ranged: bool,
}

impl NumberCheck<'_> {
    fn check(&self, outcome: &mut Outcome) {
        let float = self.value.as_f64().unwrap_or(f64::NAN);
        let integer = self.value.as_i64();
        if !self.fits(integer, float) {
            outcome.add(self.out_of_range("Checked"));
        }
        self.check_multiple(integer, float, outcome);
        self.check_minimum(integer, float, outcome);
        self.check_maximum(integer, float, outcome);
    }

    fn fits(&self, integer: Option<i64>, float: f64) -> bool {
        if !self.ranged {
            return true;
        }
        // Go converts the shortest digits that parse back to the value, which Rust prints too.
        let digits = || match integer {
            Some(integer) => integer.to_string(),
            None => float.to_string(),
        };
        match (self.node.kind.as_str(), self.node.checks.format.as_str()) {
            ("integer", "int32") => digits().parse::<i32>().is_ok(),
            ("integer", _) => integer.is_some() || digits().parse::<i64>().is_ok(),
            ("number", "float") => digits().parse::<f32>().is_ok_and(f32::is_finite),
            _ => true,
        }
    }

    fn out_of_range(&self, what: &str) -> super::validation_error::ValidationError {
        let kind = &self.node.kind;
        // A format of another type is ignored.
        let format = match (kind.as_str(), self.node.checks.format.as_str()) {
            ("integer", format @ ("int32" | "int64"))
            | ("number", format @ ("float" | "double")) => {
                format!("with format {format}")
            }
            _ => "(default format)".to_owned(),
        };
        let place = self.location.text();
        self.location.plain(format!(
            "{what} value must be of type {kind} {format} in {place}"
        ))
    }

    /// Whether a bound can be compared in the value's own type; adds an error if not.
    fn native(&self, what: &str, bound: f64, outcome: &mut Outcome) -> bool {
        let fits = self.fits(None, bound);
        if !fits {
            outcome.add(self.out_of_range(what));
        }
        fits
    }

    fn check_multiple(&self, integer: Option<i64>, float: f64, outcome: &mut Outcome) {
        let Some(factor) = self.node.checks.multiple_of else {
            return;
        };
        let native = self.native("MultipleOf", factor, outcome);
        let integer = integer.filter(|_| native);
        let (positive, divides, shown) = if let Some(value) = integer {
            let factor = truncated(factor);
            let divides = value.checked_rem(factor) == Some(0);
            (factor > 0, divides, factor.to_string())
        } else {
            let quotient = if factor < 1.0 {
                1.0 / factor * float
            } else {
                float / factor
            };
            let shown = format_float(factor);
            (factor > 0.0, is_json_integer(quotient), shown)
        };
        if !positive {
            let place = self.location.text();
            let sentence = format!(
                "factor MultipleOf declared for {place} must be positive: {shown}"
            );
            let factor = match integer {
                Some(_) => truncated(factor).into(),
                None => factor.into(),
            };
            outcome.add(self.location.about(factor, sentence));
        } else if !divides {
            let detail = format!("should be a multiple of {shown}");
            let value = integer.map_or_else(|| Value::from(float), Value::from);
            outcome.add(self.location.invalid(&value, &detail));
        }
    }

    fn check_maximum(&self, integer: Option<i64>, float: f64, outcome: &mut Outcome) {
        let Some(bound) = self.node.checks.maximum else {
            return;
        };
        let exclusive = self.node.checks.exclusive_maximum;
        let native = self.native("Maximum boundary", bound, outcome);
        let (value, bound) = comparable(integer.filter(|_| native), float, bound);
        if value > bound || exclusive && value >= bound {
            let than = if exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            outcome.add(self.out_of_bound(than, value, bound));
        }
    }

    fn check_minimum(&self, integer: Option<i64>, float: f64, outcome: &mut Outcome) {
        let Some(bound) = self.node.checks.minimum else {
            return;
        };
        let exclusive = self.node.checks.exclusive_minimum;
        let native = self.native("Minimum boundary", bound, outcome);
        let (value, bound) = comparable(integer.filter(|_| native), float, bound);
        if value < bound || exclusive && value <= bound {
            let than = if exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            outcome.add(self.out_of_bound(than, value, bound));
        }
    }

    /// The error, with value and bound in the type in which they were compared.
    fn out_of_bound(
        &self,
        than: &str,
        value: Size,
        bound: Size,
    ) -> super::validation_error::ValidationError {
        let bound = match bound {
            Size::Int(bound) => bound.to_string(),
            Size::Float(bound) => format_float(bound),
        };
        let value = match value {
            Size::Int(value) => Value::from(value),
            Size::Float(value) => Value::from(value),
        };
        self.location
            .invalid(&value, &format!("should be {than} {bound}"))
    }
}

/// Value and bound in one type: integers if the value is one, with the bound's fraction
/// truncated.
fn comparable(integer: Option<i64>, float: f64, bound: f64) -> (Size, Size) {
    match integer {
        Some(value) => (Size::Int(value), Size::Int(truncated(bound))),
        None => (Size::Float(float), Size::Float(bound)),
    }
}

/// A number in the type in which it is compared.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    Int(i64),
    Float(f64),
}

impl PartialOrd for Size {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one.partial_cmp(other),
            _ => self.float().partial_cmp(&other.float()),
        }
    }
}

impl Size {
    const fn float(self) -> f64 {
        match self {
            Self::Int(integer) => widened(integer),
            Self::Float(float) => float,
        }
    }
}

/// A length as the type of the schema's limits.
pub(super) fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
