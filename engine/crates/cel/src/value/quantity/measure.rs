//! Quantities as integers.

use super::{Amount, Form, Quantity, scaled};

impl Quantity {
    /// A count, printed with decimal suffixes.
    pub const fn count(value: i64) -> Self {
        Self {
            amount: Amount::Small { value, scale: 0 },
            form: Form::Decimal,
            written: None,
            computed: false,
        }
    }

    /// The value rounded up to an integer, away from zero (`Value` in Kubernetes); saturates at
    /// 64 bits.
    pub fn value(&self) -> i64 {
        self.scaled(0)
    }

    /// The value in thousandths, rounded up away from zero (`MilliValue` in Kubernetes);
    /// saturates at 64 bits.
    pub fn milli_value(&self) -> i64 {
        self.scaled(3)
    }

    /// The value rounded up to a thousandth, away from zero (`RoundUp` in Kubernetes).
    #[must_use]
    pub fn rounded_up_to_milli(&self) -> Self {
        match &self.amount {
            Amount::Small { scale, .. } if *scale >= -3 => self.clone(),
            _ => {
                let amount = Amount::Big(self.to_decimal().rounded_up(3));
                Self {
                    amount,
                    written: None,
                    ..self.clone()
                }
            }
        }
    }

    /// The value in units of `10^-places`, rounded away from zero.
    fn scaled(&self, places: i64) -> i64 {
        let amount = self.to_decimal().rounded_up(places);
        let (digits, exponent) = amount.text();
        let limit = if amount.is_negative {
            i64::MIN
        } else {
            i64::MAX
        };
        if amount.is_zero() {
            return 0;
        }
        let sign = if amount.is_negative { "-" } else { "" };
        let number: Result<i64, _> = format!("{sign}{digits}").parse();
        let scaled = number.ok().and_then(|it| scaled(it, exponent + places));
        scaled.unwrap_or(limit)
    }
}
