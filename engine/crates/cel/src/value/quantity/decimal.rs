//! Decimal numbers of any length, as far as quantities need them: the results of
//! `gopkg.in/inf.v0` for Kubernetes' `resource.Quantity`, without storing the trailing zeros.

use std::cmp::Ordering;

/// The maximum number of digits of a sum. Kubernetes has no limit; there, a sum with an exponent
/// of ten digits takes minutes.
const MAX_SUMMED: i64 = 4096;

/// `digits * 10^exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    pub(super) is_negative: bool,
    /// The digits, most significant first, each below 10; without leading and trailing zeros.
    /// Empty for zero.
    digits: Vec<u8>,
    exponent: i64,
    /// The number of decimal places as written, zeros included: the last digit of a conversion
    /// to a float depends on them.
    places: i64,
}

impl Decimal {
    /// The number with these digits, in ASCII, of which `places` are after the point.
    pub(super) fn new(digits: impl Iterator<Item = u8>, places: i64) -> Self {
        let digits = digits.map(|digit| digit.wrapping_sub(b'0')).collect();
        Self::normal(digits, -places, places)
    }

    pub(super) fn of(value: i64, scale: i32) -> Self {
        let digits = value.unsigned_abs().to_string();
        let mut decimal = Self::new(digits.bytes(), -i64::from(scale));
        decimal.is_negative = value < 0;
        decimal
    }

    fn normal(mut digits: Vec<u8>, mut exponent: i64, places: i64) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        Self {
            is_negative: false,
            digits,
            exponent,
            places,
        }
    }

    pub(super) const fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(super) const fn signum(&self) -> i64 {
        match (self.is_zero(), self.is_negative) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        }
    }

    pub(super) const fn negated(mut self) -> Self {
        self.is_negative = !self.is_negative;
        self
    }

    /// The number times ten to the `power`.
    pub(super) const fn shifted(mut self, power: i64) -> Self {
        self.exponent += power;
        self.places -= power;
        self
    }

    /// The number times 1024.
    pub(super) fn times_1024(self) -> Self {
        let mut digits = Vec::with_capacity(self.digits.len() + 4);
        let mut carry = 0_u32;
        for digit in self.digits.iter().rev() {
            carry += u32::from(*digit) * 1024;
            digits.push(last_digit(carry));
            carry /= 10;
        }
        while carry > 0 {
            digits.push(last_digit(carry));
            carry /= 10;
        }
        digits.reverse();
        let product = Self::normal(digits, self.exponent, self.places);
        Self {
            is_negative: self.is_negative,
            ..product
        }
    }

    /// The number divided by 1024, which must be an integer multiple.
    pub(super) fn over_1024(&self) -> Option<Self> {
        let zeros = usize::try_from(self.exponent).ok()?;
        let mut digits = Vec::with_capacity(self.digits.len() + zeros);
        let mut rest = 0_u32;
        for digit in self.digits.iter().chain(std::iter::repeat_n(&0, zeros)) {
            rest = rest * 10 + u32::from(*digit);
            digits.push(last_digit(rest / 1024));
            rest %= 1024;
        }
        let quotient = Self::normal(digits, 0, self.places);
        let is_negative = self.is_negative;
        (rest == 0).then_some(Self {
            is_negative,
            ..quotient
        })
    }

    /// The number with this many decimal places, rounded away from zero.
    pub(super) fn rounded_up(mut self, places: i64) -> Self {
        let finer = -places - self.exponent;
        if finer > 0 && !self.is_zero() {
            let finer = usize::try_from(finer).unwrap_or(usize::MAX);
            let kept = self.digits.len().saturating_sub(finer);
            self.digits.truncate(kept);
            // The removed part is never zero, because the last digit is not zero.
            add_one(&mut self.digits);
            let rounded = Self::normal(self.digits, -places, places);
            return Self {
                is_negative: self.is_negative,
                ..rounded
            };
        }
        Self { places, ..self }
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.is_zero() || self.exponent >= 0
    }

    /// The sum; `None` if it would have too many digits.
    pub(super) fn sum(&self, other: &Self) -> Option<Self> {
        let places = self.places.max(other.places);
        if self.is_zero() || other.is_zero() {
            let left = if self.is_zero() { other } else { self };
            return Some(Self {
                places,
                ..left.clone()
            });
        }
        let exponent = self.exponent.min(other.exponent);
        let top = self.top().max(other.top());
        if top - exponent > MAX_SUMMED {
            return None;
        }
        let (left, right) = (self.aligned(exponent, top), other.aligned(exponent, top));
        if self.is_negative == other.is_negative {
            let sum = Self::normal(added(&left, &right), exponent, places);
            return Some(Self {
                is_negative: self.is_negative,
                ..sum
            });
        }
        let (more, less, is_negative) = if left >= right {
            (left, right, self.is_negative)
        } else {
            (right, left, other.is_negative)
        };
        let difference = Self::normal(subtracted(&more, &less), exponent, places);
        Some(Self {
            is_negative,
            ..difference
        })
    }

    /// The number of digits before the point; negative for small fractions.
    fn top(&self) -> i64 {
        i64::try_from(self.digits.len())
            .unwrap_or(i64::MAX)
            .saturating_add(self.exponent)
    }

    /// The digits from the place `top` down to that of 10^`exponent`. The two must enclose the
    /// number and be within [`MAX_SUMMED`] of each other.
    fn aligned(&self, exponent: i64, top: i64) -> Vec<u8> {
        let zeros = |count: i64| {
            std::iter::repeat_n(0, usize::try_from(count).unwrap_or_default())
        };
        zeros(top - self.top())
            .chain(self.digits.iter().copied())
            .chain(zeros(self.exponent - exponent))
            .collect()
    }

    /// The digits, and the power of ten to multiply them by.
    pub(super) fn text(&self) -> (String, i64) {
        let digits: String = self.digits.iter().map(|it| char::from(b'0' + it)).collect();
        (digits, self.exponent)
    }

    /// As Go's `AsApproximateFloat64`: the written digits as a float, times a power of ten as a
    /// float.
    pub(super) fn to_float(&self) -> f64 {
        let (digits, exponent) = self.text();
        let sign = if self.is_negative { "-" } else { "" };
        let whole = if self.is_zero() {
            0.0
        } else {
            format!("{sign}{digits}e{}", exponent + self.places)
                .parse()
                .unwrap_or(f64::NAN)
        };
        if self.places == 0 {
            whole
        } else {
            whole * power_of_ten(-self.places)
        }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.signum().cmp(&other.signum());
        if signs.is_ne() || self.is_zero() {
            return signs;
        }
        let sizes = self.top().cmp(&other.top());
        let sizes = sizes.then_with(|| self.digits.cmp(&other.digits));
        if self.is_negative {
            sizes.reverse()
        } else {
            sizes
        }
    }
}

/// Go's `math.Pow10`: exact below 10^32, and a product or quotient of two powers beyond.
pub(super) fn power_of_ten(power: i64) -> f64 {
    let exact = |power: i64| format!("1e{power}").parse::<f64>().unwrap_or(f64::NAN);
    match power {
        0..=308 => exact(power / 32 * 32) * exact(power % 32),
        -323..0 => exact(power / 32 * 32) / exact(-power % 32),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

fn last_digit(number: u32) -> u8 {
    u8::try_from(number % 10).unwrap_or_default()
}

fn add_one(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

/// The sum of two numbers with the same number of digits.
fn added(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut digits: Vec<u8> = Vec::with_capacity(left.len() + 1);
    for (one, other) in left.iter().zip(right).rev() {
        let sum = one + other + carry;
        digits.push(sum % 10);
        carry = sum / 10;
    }
    digits.push(carry);
    digits.reverse();
    digits
}

/// The difference of two numbers with the same number of digits; the first is not smaller.
fn subtracted(more: &[u8], less: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut digits: Vec<u8> = Vec::with_capacity(more.len());
    for (one, other) in more.iter().zip(less).rev() {
        let difference = 10 + one - other - borrow;
        digits.push(difference % 10);
        borrow = u8::from(difference < 10);
    }
    digits.reverse();
    digits
}
