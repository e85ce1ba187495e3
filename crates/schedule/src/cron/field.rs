//! One field of a cron expression: `*/15`, `9-17`, `mon,wed-fri`.

use std::fmt;

use crate::parse::{ParseError, Token};
use crate::set::Set;
use crate::week::print_runs;

/// What one field matches, and whether it was written with a leading `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Field {
    pub(super) matches: Set,
    pub(super) is_starred: bool,
}

/// The values that a field may have.
pub(super) struct Kind {
    least: u32,
    /// The greatest number that may be written.
    most: u32,
    /// The greatest distinct value: less than `most` where 7 is another name for 0.
    last: u32,
    expected: &'static str,
    names: &'static [&'static str],
}

pub(super) const MINUTES: Kind = Kind {
    least: 0,
    most: 59,
    last: 59,
    expected: "a minute from 0 to 59",
    names: &[],
};
pub(super) const HOURS: Kind = Kind {
    least: 0,
    most: 23,
    last: 23,
    expected: "an hour from 0 to 23",
    names: &[],
};
pub(super) const DAYS_OF_MONTH: Kind = Kind {
    least: 1,
    most: 31,
    last: 31,
    expected: "a day of the month from 1 to 31",
    names: &[],
};
pub(super) const MONTHS: Kind = Kind {
    least: 1,
    most: 12,
    last: 12,
    expected: "a month from 1 to 12 or jan to dec",
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
        "dec",
    ],
};
pub(super) const DAYS_OF_WEEK: Kind = Kind {
    least: 0,
    most: 7,
    last: 6,
    expected: "a day of the week from 0 to 7 or sun to sat",
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Field {
    pub(super) fn parse(word: Token<'_>, kind: &Kind) -> Result<Self, ParseError> {
        let mut matches = Set::default();
        for entry in word.split(',') {
            matches = matches.union(Self::parse_entry(entry, kind)?);
        }
        if kind.last < kind.most && matches.contains(kind.most) {
            let other_name = Set::range(kind.most, kind.most, 1);
            matches = matches.without(other_name).union(Set::range(0, 0, 1));
        }
        Ok(Self {
            matches,
            is_starred: word.text.starts_with('*'),
        })
    }

    fn parse_entry(entry: Token<'_>, kind: &Kind) -> Result<Set, ParseError> {
        let (range, step) = entry.split_once('/');
        let (first, last) = range.split_once('-');
        let (first, last) = match (first.text, last) {
            ("*", None) => (kind.least, kind.last),
            (_, None) if step.is_none() => {
                let only = kind.number(first)?;
                (only, only)
            }
            (_, None) => {
                return Err(range.error("'*' or a range before '/'"));
            }
            (_, Some(end)) => {
                let (low, high) = (kind.number(first)?, kind.range_end(end)?);
                if low > high {
                    return Err(range.error("a range that goes up"));
                }
                (low, high)
            }
        };
        let step = match step {
            None => 1,
            Some(step) => step
                .number()
                .filter(|step| *step > 0)
                .ok_or_else(|| step.error("a step of 1 or more"))?,
        };
        Ok(Set::range(first, last, step))
    }

    pub(super) fn is_full(self, kind: &Kind) -> bool {
        self.matches == Set::range(kind.least, kind.last, 1)
    }

    /// Prints the field. A starred field that does not match everything is printed as the
    /// smallest step whose numbers all match, followed by the other numbers.
    pub(super) fn print(self, f: &mut fmt::Formatter<'_>, kind: &Kind) -> fmt::Result {
        if !self.is_starred {
            return print_runs(f, &self.matches.runs(), |n| n);
        }
        let steps = (1..=kind.last + 1)
            .map(|step| (step, Set::range(kind.least, kind.last, step)));
        let (step, stepped) = steps
            .into_iter()
            .find(|(_, stepped)| stepped.is_subset(self.matches))
            .unwrap_or_default();
        match step {
            1 => f.write_str("*")?,
            step => write!(f, "*/{step}")?,
        }
        let others = self.matches.without(stepped);
        if !others.is_empty() {
            f.write_str(",")?;
        }
        print_runs(f, &others.runs(), |n| n)
    }
}

impl Kind {
    fn number(&self, token: Token<'_>) -> Result<u32, ParseError> {
        let named = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(token.text));
        let number = match named {
            Some(place) => u32::try_from(place).ok().map(|place| place + self.least),
            None => token.number(),
        };
        number
            .filter(|number| (self.least..=self.most).contains(number))
            .ok_or_else(|| token.error(self.expected))
    }

    /// As [`Kind::number`], but a Sunday given by name ends the week: `mon-sun`.
    fn range_end(&self, token: Token<'_>) -> Result<u32, ParseError> {
        let end = self.number(token)?;
        let is_named = token.number().is_none();
        let has_two_names = self.last < self.most && end == self.least;
        Ok(if is_named && has_two_names {
            self.most
        } else {
            end
        })
    }
}
