//! The value of a quantity, ported from Kubernetes' `resource.Quantity`
//! (k8s.io/apimachinery/pkg/api/resource, `quantity.go` and `amount.go`).

mod decimal;
mod measure;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use decimal::{Decimal, power_of_ten};

/// A resource quantity such as `50Mi`. It prints in Kubernetes' canonical form.
///
/// ```
/// use kubemu_cel::Quantity;
/// let half = Quantity::parse("0.5").unwrap();
/// assert_eq!(half.to_string(), "500m");
/// assert_eq!(half.sum(&half).unwrap().value(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    form: Form,
    /// The parsed text, if it is in canonical form.
    written: Option<Arc<str>>,
    /// Whether it is the result of an addition or subtraction. The API server stores such a
    /// quantity in another form, which its equality does not support on the right side.
    computed: bool,
}

#[derive(Clone, Debug)]
enum Amount {
    /// `value * 10^scale`. `1.0` keeps its scale of -1 and is not an integer.
    Small { value: i64, scale: i32 },
    /// A value that does not fit into `Small`, which Kubernetes never treats as an integer.
    Big(Decimal),
}

/// The form in which a quantity was written; it is printed in the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `5k`
    Decimal,
    /// `5Ki`
    Binary,
    /// `5e3`
    Exponent,
}

/// The smallest scale; finer values are rounded away from zero.
const NANO: i32 = -9;
/// A number of digits that always fits into 64 bits.
const SMALL_DIGITS: usize = 18;

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

const FORMAT: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// The parts of a quantity's text: digits before the point without leading zeros, digits after
/// it, and the suffix.
struct Parts<'t> {
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Result<Self, &'static str> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let unsigned = unsigned.trim_start_matches('0');
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let tail = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
        let tail = tail.strip_prefix(['+', '-']).unwrap_or(tail);
        if !digits(tail).1.is_empty() {
            return Err(FORMAT);
        }
        Ok(Self {
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes())
    }

    fn length(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }
}

/// The leading digits of text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// The factor of a suffix.
enum Factor {
    /// A power of 1024.
    Binary(u32),
    /// A power of ten.
    Decimal(i32),
}

impl Factor {
    fn of(suffix: &str) -> Result<(Self, Form), &'static str> {
        if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
            return Ok((Self::Decimal(*power), Form::Decimal));
        }
        if let Some(at) = (1..).zip(BINARY).find(|(_, known)| *known == suffix) {
            return Ok((Self::Binary(at.0), Form::Binary));
        }
        let power = suffix.strip_prefix(['e', 'E']).ok_or(SUFFIX)?;
        let power: i64 = power.parse().map_err(|_| SUFFIX)?;
        // Kubernetes reads 64 bits and keeps the lower 32.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "Kubernetes truncates it too"
        )]
        let power = power as i32;
        Ok((Self::Decimal(power), Form::Exponent))
    }
}

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    /// Why the text is not a quantity, with Kubernetes' message.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(FORMAT);
        }
        let parts = Parts::of(text)?;
        let (factor, form) = Factor::of(parts.suffix)?;
        match small(&parts, &factor) {
            Some((value, scale)) => Ok(Self::small(text, &parts, form, (value, scale))),
            None => Self::big(text, &parts, form, &factor),
        }
    }

    fn small(text: &str, parts: &Parts<'_>, form: Form, amount: (i64, i32)) -> Self {
        let (value, scale) = amount;
        let last = last_three(parts);
        let is_canonical = match form {
            Form::Binary => !last.is_multiple_of(8),
            Form::Decimal | Form::Exponent => {
                scale % 3 == 0
                    && parts.digits().next() != Some(b'0')
                    && (last != 0 || parts.length() < 3)
            }
        };
        let is_negative = text.starts_with('-');
        Self {
            amount: Amount::Small {
                value: if is_negative { -value } else { value },
                scale,
            },
            form,
            written: is_canonical.then(|| text.into()),
            computed: false,
        }
    }

    fn big(
        text: &str,
        parts: &Parts<'_>,
        mut form: Form,
        factor: &Factor,
    ) -> Result<Self, &'static str> {
        let number = text.trim_start_matches(['+', '-', '.']);
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(NUMERIC);
        }
        let places = i64::try_from(parts.fraction.len()).map_err(|_| NUMERIC)?;
        let mut amount = Decimal::new(parts.digits(), places);
        match factor {
            Factor::Decimal(power) => amount = amount.shifted(i64::from(*power)),
            Factor::Binary(power) => {
                for _ in 0..*power {
                    amount = amount.times_1024();
                }
            }
        }
        if !amount.is_zero() {
            amount = amount.rounded_up(-i64::from(NANO));
        }
        if form == Form::Binary {
            let most = Decimal::of(i64::MAX, 0);
            if amount > most {
                amount = most;
            }
            if amount.signum() > 0 && amount < Decimal::of(1, 0) {
                form = Form::Decimal;
            }
        }
        if text.starts_with('-') {
            amount = amount.negated();
        }
        Ok(Self {
            amount: Amount::Big(amount),
            form,
            written: None,
            computed: false,
        })
    }

    /// The quantity of an integer of the language.
    pub(crate) const fn of(value: i64) -> Self {
        Self {
            amount: Amount::Small { value, scale: 0 },
            form: Form::Exponent,
            written: None,
            computed: false,
        }
    }

    pub(crate) const fn is_computed(&self) -> bool {
        self.computed
    }

    /// -1, 0 or 1.
    pub const fn signum(&self) -> i64 {
        match &self.amount {
            Amount::Small { value, .. } => value.signum(),
            Amount::Big(amount) => amount.signum(),
        }
    }

    /// The integer value, if Kubernetes treats the quantity as an integer.
    pub(crate) fn to_integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Small {
                value: 0,
                scale: 0..,
            } => Some(0),
            Amount::Small { value, scale } => scaled(value, i64::from(scale)),
            Amount::Big(_) => None,
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the function returns an approximation"
    )]
    pub(crate) fn to_float(&self) -> f64 {
        match &self.amount {
            Amount::Small { value, scale: 0 } => *value as f64,
            Amount::Small { value, scale } => {
                *value as f64 * power_of_ten(i64::from(*scale))
            }
            Amount::Big(amount) => amount.to_float(),
        }
    }

    /// The sum, or the difference if `other` is negated; `None` if it has too many digits.
    pub fn sum(&self, other: &Self) -> Option<Self> {
        let form = if self.signum() == 0 {
            other.form
        } else {
            self.form
        };
        let amount = match (&self.amount, &other.amount) {
            (left @ Amount::Small { .. }, right @ Amount::Small { .. }) => {
                left.small_sum(right)
            }
            _ => None,
        };
        let amount = match amount {
            Some(amount) => amount,
            None => Amount::Big(self.to_decimal().sum(&other.to_decimal())?),
        };
        Some(Self {
            amount,
            form,
            written: None,
            computed: true,
        })
    }

    /// The negated quantity.
    #[must_use]
    pub fn negated(&self) -> Self {
        let amount = match &self.amount {
            Amount::Small { value, scale } => Amount::Small {
                // As in Kubernetes, where the smallest integer is its own negation.
                value: value.wrapping_neg(),
                scale: *scale,
            },
            Amount::Big(amount) => Amount::Big(amount.clone().negated()),
        };
        Self {
            amount,
            ..self.clone()
        }
    }

    fn to_decimal(&self) -> Decimal {
        match &self.amount {
            Amount::Small { value, scale } => Decimal::of(*value, *scale),
            Amount::Big(amount) => amount.clone(),
        }
    }
}

/// The amount as `value * 10^scale`, if Kubernetes stores it that way.
fn small(parts: &Parts<'_>, factor: &Factor) -> Option<(i64, i32)> {
    let value = || {
        let mut digits = parts.digits();
        digits.try_fold(0_i64, |value, digit| {
            value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
        })
    };
    match factor {
        Factor::Decimal(power) => {
            let places = i32::try_from(parts.fraction.len()).ok()?;
            let scale = power.wrapping_sub(places);
            (parts.length() <= SMALL_DIGITS && scale >= NANO).then_some(())?;
            Some((value()?, scale))
        }
        Factor::Binary(power) => {
            let room = 14_usize.checked_sub(usize::try_from(*power).ok()? * 3)?;
            (parts.fraction.is_empty() && parts.whole.len() <= room).then_some(())?;
            Some((value()?.checked_mul(1024_i64.checked_pow(*power)?)?, 0))
        }
    }
}

/// The number formed by the last three digits.
fn last_three(parts: &Parts<'_>) -> u32 {
    let digits = parts.digits().skip(parts.length().saturating_sub(3));
    digits.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
}

/// `value * 10^scale` if that is an integer of 64 bits.
fn scaled(value: i64, scale: i64) -> Option<i64> {
    let power = u32::try_from(scale).ok()?;
    value.checked_mul(10_i64.checked_pow(power)?)
}

impl Amount {
    /// The sum, if it fits into 64 bits.
    fn small_sum(&self, other: &Self) -> Option<Self> {
        let (Self::Small { value: a, scale: s }, Self::Small { value: b, scale: t }) =
            (self, other)
        else {
            return None;
        };
        if *b == 0 {
            return Some(self.clone());
        }
        if *a == 0 {
            return Some(other.clone());
        }
        let finer = *s.min(t);
        let at =
            |value: i64, scale: i32| scaled(value, i64::from(scale) - i64::from(finer));
        Some(Self::Small {
            value: at(*a, *s)?.checked_add(at(*b, *t)?)?,
            scale: finer,
        })
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.amount, &other.amount) {
            (
                Amount::Small { value: a, scale: s },
                Amount::Small { value: b, scale: t },
            ) if s == t => a.cmp(b),
            _ => self.to_decimal().cmp(&other.to_decimal()),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

/// As Kubernetes prints it: with as few digits as its form allows. If a form has no suffix that
/// is large enough, no suffix is printed.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(written) = &self.written {
            return f.write_str(written);
        }
        let amount = self.to_decimal();
        if amount.is_zero() {
            return f.write_str("0");
        }
        let sign = if amount.is_negative { "-" } else { "" };
        let limit = Decimal::of(1024, 0);
        let is_large = amount >= limit || amount <= limit.negated();
        if self.form == Form::Binary && is_large && amount.is_whole() {
            let (mut amount, mut power) = (amount, 0_usize);
            while let Some(quotient) = amount.over_1024() {
                (amount, power) = (quotient, power + 1);
            }
            let suffix = power.checked_sub(1).and_then(|at| BINARY.get(at));
            let (digits, zeros) = amount.text();
            let zeros = usize::try_from(zeros).unwrap_or_default();
            let suffix = suffix.unwrap_or(&"");
            return write!(f, "{sign}{digits}{:0<zeros$}{suffix}", "");
        }
        let (digits, exponent) = amount.text();
        let zeros = usize::try_from(exponent.rem_euclid(3)).unwrap_or_default();
        let exponent = exponent - exponent.rem_euclid(3);
        write!(f, "{sign}{digits}{:0<zeros$}", "")?;
        let mut known = DECIMAL.iter();
        match known.find(|(_, power)| i64::from(*power) == exponent) {
            Some((suffix, _)) if self.form != Form::Exponent => f.write_str(suffix),
            _ if self.form != Form::Exponent || exponent == 0 => Ok(()),
            _ => write!(f, "e{exponent}"),
        }
    }
}

/// Why `text` is not a quantity, with the message of Kubernetes' `ParseQuantity`; `None` if it
/// is valid.
pub fn quantity_error(text: &str) -> Option<&'static str> {
    Quantity::parse(text).err()
}
