//! A set of small numbers, such as the hours of a day or the minutes of an hour.

/// A set of numbers from 0 to 63: bit `n` is set if `n` is in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Set(u64);

impl Set {
    /// Every `step`-th number from `first` to `last`, both included; nothing above 63.
    pub(crate) fn range(first: u32, last: u32, step: u32) -> Self {
        let bits = (first..=last.min(63)).step_by(step.max(1) as usize);
        Self(bits.fold(0, |bits, n| bits | 1 << n))
    }

    /// The numbers from `first` to `last` on a dial of `size` numbers. It wraps around to 0, so
    /// that `range_on_dial(22, 6, 24)` is evening, night and morning.
    pub(crate) fn range_on_dial(first: u32, last: u32, size: u32) -> Self {
        if first <= last {
            Self::range(first, last, 1)
        } else {
            Self::range(first, size.saturating_sub(1), 1).union(Self::range(0, last, 1))
        }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn is_subset(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn contains(self, n: u32) -> bool {
        n < 64 && self.0 >> n & 1 == 1
    }

    /// The smallest member.
    pub(crate) fn first(self) -> Option<u32> {
        self.first_from(0)
    }

    /// The greatest member.
    pub(crate) fn last(self) -> Option<u32> {
        self.last_upto(63)
    }

    /// The smallest member that is `n` or greater.
    pub(crate) fn first_from(self, n: u32) -> Option<u32> {
        let rest = self.0 & u64::MAX.checked_shl(n).unwrap_or(0);
        (rest != 0).then(|| rest.trailing_zeros())
    }

    /// The greatest member that is `n` or smaller.
    pub(crate) fn last_upto(self, n: u32) -> Option<u32> {
        let rest = self.0 & (u64::MAX >> (63 - n.min(63)));
        rest.checked_ilog2()
    }

    /// The members in ascending order.
    pub(crate) fn members(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |&n| self.contains(n))
    }

    /// The members as runs of consecutive numbers, `(first, last)`, in ascending order.
    pub(crate) fn runs(self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for n in self.members() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == n => *last = n,
                _ => runs.push((n, n)),
            }
        }
        runs
    }

    /// As [`Set::runs`], on a dial of `size` numbers: a run up to the end and one from 0 are
    /// joined and come last.
    pub(crate) fn runs_on_dial(self, size: u32) -> Vec<(u32, u32)> {
        let mut runs = self.runs();
        if let [(0, morning), .., (_, evening)] = runs.as_mut_slice()
            && *evening + 1 == size
        {
            *evening = *morning;
            runs.remove(0);
        }
        runs
    }
}
