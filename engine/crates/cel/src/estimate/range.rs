//! Arithmetic on ranges of sizes and costs.

/// A size or a cost between two bounds, both included. The arithmetic saturates at the largest
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Range {
    pub(crate) const ZERO: Self = Self::exactly(0);
    pub(crate) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(crate) const fn exactly(value: u64) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    pub(crate) const fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(crate) const fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Each bound times a factor, rounded up; computed with floats as in the API server.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self {
            min: scaled(self.min, factor),
            max: scaled(self.max, factor),
        }
    }

    /// The cost of traversing text of this size.
    pub(crate) fn tenths(self) -> Self {
        self.scaled(0.1)
    }

    /// The smallest range that contains both.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the API server loses the same digits, and the cast saturates"
)]
fn scaled(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let unknown = Range::UNKNOWN;
        assert_eq!(unknown.plus(Range::exactly(1)).max, u64::MAX);
        assert_eq!(unknown.times(Range::exactly(2)).max, u64::MAX);
        assert_eq!(unknown.scaled(2.0).max, u64::MAX);
        assert_eq!(unknown.times(Range::ZERO), Range::ZERO);
    }
}
