//! Resource quantities such as `50Mi`: from Kubernetes 1.28 on.

use std::sync::Arc;

use std::cmp::Ordering;
use std::fmt;

use super::foreign::{Foreign, LibraryValue};
use super::{Row, Run, global, member, no_such_overload};
use crate::{RunError, Value};

/// `value * 10^scale`. As in Kubernetes a quantity written `1.0` keeps its scale of -1 and
/// is then no integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    value: i128,
    scale: i32,
    /// Whether it was added or subtracted: the API server keeps such a one in another form,
    /// which its own equality does not know on the right side.
    computed: bool,
    /// Whether it is kept as a big decimal, which the API server takes for no integer.
    big: bool,
    form: Form,
}

/// How a quantity was written, and is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `5k`
    Decimal,
    /// `5Ki`
    Binary,
    /// `5e3`
    Exponent,
}

/// The finest scale; what is finer is rounded away from zero.
const NANO: i32 = -9;
/// What a big decimal is cut to.
const MOST: i128 = i64::MAX as i128;
/// Digits that are looked at, so that all arithmetic stays in range: those of [`MOST`], nine
/// behind the point and more to round up.
const MOST_DIGITS: usize = 36;

macro_rules! of_two {
    ($(($function:literal, $id:literal, $result:literal, $run:expr)),* $(,)?) => {
        &[
            global("quantity", "string_to_quantity", "string -> kubernetes.Quantity", quantity),
            global("isQuantity", "is_quantity_string", "string -> bool", is_quantity),
            global("sign", "quantity_sign", "kubernetes.Quantity -> int", sign),
            member(
                "asApproximateFloat",
                "quantity_get_float",
                "kubernetes.Quantity -> double",
                as_float,
            ),
            member("asInteger", "quantity_get_int", "kubernetes.Quantity -> int", as_integer),
            member(
                "isInteger",
                "quantity_is_integer",
                "kubernetes.Quantity -> bool",
                is_integer,
            ),
            $(member(
                $function,
                $id,
                concat!("kubernetes.Quantity, ", $result),
                $run,
            ),)*
        ]
    };
}

pub(super) const ROWS: &[Row] = of_two![
    (
        "isGreaterThan",
        "quantity_is_greater_than",
        "kubernetes.Quantity -> bool",
        GREATER
    ),
    (
        "isLessThan",
        "quantity_is_less_than",
        "kubernetes.Quantity -> bool",
        LESS
    ),
    (
        "compareTo",
        "quantity_compare_to",
        "kubernetes.Quantity -> int",
        compare
    ),
    (
        "add",
        "quantity_add",
        "kubernetes.Quantity -> kubernetes.Quantity",
        ADD
    ),
    ("add", "quantity_add_int", "int -> kubernetes.Quantity", ADD),
    (
        "sub",
        "quantity_sub",
        "kubernetes.Quantity -> kubernetes.Quantity",
        SUB
    ),
    ("sub", "quantity_sub_int", "int -> kubernetes.Quantity", SUB),
];

const GREATER: Run = |args| order(args).map(|order| Value::Bool(order.is_gt()));
const LESS: Run = |args| order(args).map(|order| Value::Bool(order.is_lt()));
const ADD: Run = |args| sum(args, 1);
const SUB: Run = |args| sum(args, -1);

/// Why text is no quantity, in Kubernetes' words.
const FORMAT: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// Why `text` is no quantity, in the words of Kubernetes' `ParseQuantity`; none if it is one.
pub fn quantity_error(text: &str) -> Option<&'static str> {
    Quantity::parse(text).err()
}

impl Quantity {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Without any digit it is zero: `k` and `+` are quantities, only no text is none.
        if text.is_empty() || fraction.contains('.') {
            return Err(FORMAT);
        }
        if !is_suffix(suffix) {
            return Err(FORMAT);
        }
        let (factor, exponent) = factor(suffix)?;
        let whole = whole.trim_start_matches('0');
        let places = i32::try_from(fraction.len()).map_err(|_| FORMAT)?;
        let form = Form::of(suffix);
        let scale = exponent.saturating_sub(places);
        let big = form.is_big(whole.len(), fraction.len(), factor) || scale < NANO;
        let digits = format!("0{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let (value, scale) = product(digits, factor, scale)?;
        let (mut value, mut scale) = at_most_nano(value, scale);
        // What binary suffixes make of a fraction is again decimal.
        while factor != 1 && scale < 0 && value % 10 == 0 {
            (value, scale) = (value / 10, scale + 1);
        }
        if big && is_above_most(value, scale) {
            (value, scale) = (MOST, 0);
        }
        if text.starts_with('-') {
            value = -value;
        }
        Ok(Self {
            value,
            scale,
            computed: false,
            big,
            form,
        })
    }

    /// Both as multiples of the finer scale; saturates.
    fn aligned(self, other: Self) -> (i128, i128, i32) {
        let scale = self.scale.min(other.scale);
        let at = |quantity: Self| {
            let up = quantity.scale.saturating_sub(scale).unsigned_abs();
            let power = 10_i128.checked_pow(up).unwrap_or(i128::MAX);
            quantity.value.saturating_mul(power)
        };
        (at(self), at(other), scale)
    }

    fn to_integer(self) -> Option<i64> {
        if self.big {
            return None;
        }
        let power = 10_i128.checked_pow(u32::try_from(self.scale).ok()?)?;
        i64::try_from(self.value.checked_mul(power)?).ok()
    }
}

/// Digits times a factor, and the scale of the product. Digits that cannot matter, because
/// they are finer than what is kept, make the last one larger.
fn product(digits: &str, factor: i128, scale: i32) -> Result<(i128, i32), &'static str> {
    let kept = digits.len().min(MOST_DIGITS);
    let (kept, cut) = digits.split_at(kept);
    let mut value: i128 = if kept.is_empty() {
        0
    } else {
        kept.parse().map_err(|_| FORMAT)?
    };
    let places = i32::try_from(cut.len()).map_err(|_| FORMAT)?;
    let mut scale = scale.saturating_add(places);
    let mut is_more = cut.bytes().any(|byte| byte != b'0');
    loop {
        let rounded = value.saturating_add(i128::from(is_more));
        if let Some(product) = rounded.checked_mul(factor) {
            return Ok((product, scale));
        }
        is_more |= value % 10 != 0;
        (value, scale) = (value / 10, scale.saturating_add(1));
    }
}

/// The same at a scale that is not too fine, rounded away from zero.
fn at_most_nano(value: i128, scale: i32) -> (i128, i32) {
    let finer = NANO.saturating_sub(scale);
    let Ok(finer @ 1..) = u32::try_from(finer) else {
        return (value, scale);
    };
    let rounded = match 10_i128.checked_pow(finer) {
        Some(power) => value / power + i128::from(value % power != 0),
        None => i128::from(value != 0),
    };
    (rounded, NANO)
}

fn is_above_most(value: i128, scale: i32) -> bool {
    let Some(power) = 10_i128.checked_pow(scale.unsigned_abs()) else {
        return value != 0 && scale > 0;
    };
    if scale > 0 {
        value.checked_mul(power).is_none_or(|value| value > MOST)
    } else {
        value > MOST.saturating_mul(power)
    }
}

impl Quantity {
    pub(crate) const fn is_computed(self) -> bool {
        self.computed
    }
}

impl Form {
    /// Whether a quantity of so many digits before and behind the point is parsed as a big
    /// decimal. Those of binary form are where they have a fraction.
    fn is_big(self, whole: usize, fraction: usize, factor: i128) -> bool {
        match self {
            Self::Binary => {
                let bits = usize::try_from(factor.trailing_zeros()).unwrap_or(0);
                fraction > 0 || whole + bits * 3 / 10 + 1 > 15
            }
            Self::Decimal | Self::Exponent => whole + fraction > 18,
        }
    }

    fn of(suffix: &str) -> Self {
        if suffix.ends_with('i') {
            Self::Binary
        } else if suffix.len() > 1 {
            Self::Exponent
        } else {
            Self::Decimal
        }
    }
}

/// As Kubernetes writes a quantity: as few digits as its form allows.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small = Self {
            big: false,
            ..*self
        };
        if let (Form::Binary, Some(whole)) = (self.form, small.to_integer())
            && whole.unsigned_abs() >= 1024
        {
            let (mut whole, mut power) = (whole, 0);
            while whole % 1024 == 0 && power < BINARY.len() {
                whole /= 1024;
                power += 1;
            }
            let suffix = power.checked_sub(1).and_then(|at| BINARY.get(at));
            return write!(f, "{whole}{}", suffix.unwrap_or(&""));
        }
        let (mut value, mut scale) = (self.value, self.scale);
        while value != 0 && value % 10 == 0 {
            value /= 10;
            scale += 1;
        }
        while value != 0 && scale % 3 != 0 {
            value = value.saturating_mul(10);
            scale -= 1;
        }
        let scale = if value == 0 { 0 } else { scale };
        let suffix = DECIMAL.iter().find(|(_, power)| *power == scale);
        match suffix {
            Some((suffix, _)) if self.form != Form::Exponent => {
                write!(f, "{value}{suffix}")
            }
            _ if scale == 0 => value.fmt(f),
            _ => write!(f, "{value}e{scale}"),
        }
    }
}

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        let (left, right, _) = self.aligned(*other);
        left == right
    }
}

impl Eq for Quantity {}

/// Whether it has the form of a suffix, known or not.
fn is_suffix(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A suffix as a factor and a power of ten.
fn factor(suffix: &str) -> Result<(i128, i32), &'static str> {
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return Ok((1_i128 << (10 * (power + 1)), 0));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Ok((1, *power));
    }
    let digits = suffix.strip_prefix(['e', 'E']).ok_or(SUFFIX)?;
    let power: i64 = digits.parse().map_err(|_| SUFFIX)?;
    let power = i32::try_from(power).map_err(|_| FORMAT)?;
    Ok((1, power))
}

fn value<'v>(quantity: Quantity) -> Value<'v> {
    Value::Library(LibraryValue(Foreign::Quantity(Arc::new(quantity))))
}

fn argument(args: &[Value<'_>], index: usize) -> Result<Quantity, RunError> {
    match args.get(index) {
        Some(Value::Library(LibraryValue(Foreign::Quantity(quantity)))) => Ok(**quantity),
        Some(Value::Int(value)) => Ok(Quantity {
            value: i128::from(*value),
            scale: 0,
            computed: false,
            big: false,
            form: Form::Decimal,
        }),
        _ => no_such_overload(),
    }
}

fn quantity<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Quantity::parse(text).map(value).map_err(RunError::text),
        _ => no_such_overload(),
    }
}

fn is_quantity<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        _ => no_such_overload(),
    }
}

fn sign<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Int(match argument(args, 0)?.value.signum() {
        0 => 0,
        negative if negative < 0 => -1,
        _ => 1,
    }))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the function promises an approximation"
)]
fn as_float<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let Quantity { value, scale, .. } = argument(args, 0)?;
    let power = format!("1e{scale}").parse().unwrap_or(f64::NAN);
    Ok(Value::Double(value as f64 * power))
}

fn as_integer<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    argument(args, 0)?
        .to_integer()
        .map(Value::Int)
        .ok_or_else(|| RunError::text("cannot convert value to integer"))
}

fn is_integer<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Bool(argument(args, 0)?.to_integer().is_some()))
}

fn order(args: &[Value<'_>]) -> Result<Ordering, RunError> {
    let (left, right, _) = argument(args, 0)?.aligned(argument(args, 1)?);
    Ok(left.cmp(&right))
}

fn compare<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Int(order(args)? as i64))
}

fn sum<'v>(args: &[Value<'v>], sign: i128) -> Result<Value<'v>, RunError> {
    let (left, right) = (argument(args, 0)?, argument(args, 1)?);
    // Nothing is of any form.
    let form = if left.value == 0 {
        right.form
    } else {
        left.form
    };
    if right.value == 0 {
        return Ok(value(Quantity {
            computed: true,
            form,
            ..left
        }));
    }
    let big = left.big || right.big;
    if left.value == 0 && !big {
        return Ok(value(Quantity {
            value: right.value.saturating_mul(sign),
            computed: true,
            ..right
        }));
    }
    let (left, right, scale) = left.aligned(right);
    let total = left.saturating_add(right.saturating_mul(sign));
    // What does not fit into the API server's numbers becomes a big decimal, and stays one.
    let big = big
        || [left, right, total]
            .iter()
            .any(|it| i64::try_from(*it).is_err());
    Ok(value(Quantity {
        value: total,
        scale,
        computed: true,
        big,
        form,
    }))
}
