//! Which machines of a class in one namespace may be made, where the class limits how many are
//! needed at the same time, or for how many hours a week.
//!
//! What counts is when machines are needed according to their schedules, whatever objects exist. So
//! all replicas come to the same result, and none has to tell another. The decision is made for all
//! machines that are needed at one instant, in one pass.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fivespot_api::{LimitsOfClass, WeeklyUse};
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::act::memory::after;

/// A week, from Monday to Monday at 00:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Week {
    /// The first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
}

impl Week {
    /// The week of an instant in a zone.
    ///
    /// # Example
    /// ```
    /// use fivespot_plan::limits::Week;
    /// let zone = fivespot_schedule::zone("Europe/Zurich").unwrap();
    /// let week = Week::at("2026-03-29T12:00:00Z".parse()?, &zone);
    /// assert_eq!(week.start.to_string(), "2026-03-22T23:00:00Z");
    /// assert_eq!(week.end.to_string(), "2026-03-29T22:00:00Z", "an hour less");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(now: Timestamp, zone: &TimeZone) -> Self {
        let date = now.to_zoned(zone.clone()).date();
        let monday = i64::from(date.weekday().since(Weekday::Monday));
        let begin = |days: i64| {
            let date = date.checked_add(days.days()).ok()?;
            Some(date.to_zoned(zone.clone()).ok()?.timestamp())
        };
        Self {
            start: begin(-monday).unwrap_or(Timestamp::MIN),
            end: begin(7 - monday).unwrap_or(Timestamp::MAX),
        }
    }

    /// For how long a machine was needed in the week, up to `now`, which is in it.
    pub fn used(&self, of: &WeeklyUse, now: Timestamp) -> SignedDuration {
        let before = if of.week_start == self.start {
            SignedDuration::from_secs(of.seconds.max(0))
        } else {
            SignedDuration::ZERO
        };
        let open = of.since.map_or(SignedDuration::ZERO, |since| {
            now.duration_since(since.max(self.start))
        });
        before.saturating_add(open.max(SignedDuration::ZERO))
    }

    /// The use of a machine that is needed and allowed. Nothing changes while it is.
    pub fn begin(&self, before: Option<&WeeklyUse>, now: Timestamp) -> WeeklyUse {
        let begun = before.filter(|of| of.since.is_some());
        begun.copied().unwrap_or_else(|| WeeklyUse {
            since: Some(now),
            ..self.ended(before, now)
        })
    }

    /// The use of a machine that is not needed, or not allowed. Nothing changes while it is not.
    pub fn stop(&self, before: &WeeklyUse, now: Timestamp) -> WeeklyUse {
        if before.since.is_none() {
            return *before;
        }
        self.ended(Some(before), now)
    }

    fn ended(&self, before: Option<&WeeklyUse>, now: Timestamp) -> WeeklyUse {
        let used = before.map_or(SignedDuration::ZERO, |of| self.used(of, now));
        WeeklyUse {
            week_start: self.start,
            seconds: used.as_secs(),
            since: None,
        }
    }
}

/// A machine of the class that is needed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender<'a> {
    /// Its name, which decides between equal priorities.
    pub name: &'a str,
    /// Its priority: the highest comes first.
    pub priority: u8,
    /// Whether it was allowed before and has been needed since, or exists: then nothing refuses it.
    pub holds: bool,
    /// When it is not needed any more; `None` if that is not known.
    pub until: Option<Timestamp>,
}

/// A limit of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// How many machines are needed at the same time.
    Machines,
    /// For how many hours a week machines are needed.
    Hours,
}

/// Whether a machine may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It may, or exists.
    Open,
    /// It may not.
    Wait {
        /// Why.
        limit: Limit,
        /// When it may at the earliest, if nothing changes but the time; `None` if that is not
        /// known. For hours it is not later than the next week, which begins with all of them.
        again: Option<Timestamp>,
    },
}

/// Which machines may be made, in the order of `contenders`: all machines of the class in one
/// namespace that are needed at `now`. `used` is for how long any of its machines was needed this
/// week up to `now`.
///
/// Those that hold their turn keep it, and count. The others follow by priority, then by name; each
/// that is allowed counts until it is not needed any more, or until the end of the week. One that
/// does not fit is passed over.
///
/// # Guarantees
/// Total and deterministic. It takes n log n steps. A machine of another namespace or class makes no
/// difference, nor does the order of the contenders.
///
/// # Example
/// ```
/// use fivespot_api::LimitsOfClass;
/// use fivespot_plan::limits::{Contender, Limit, Turn, Week, turns};
/// use jiff::{SignedDuration, tz::TimeZone};
///
/// let limits = LimitsOfClass { machines: Some(1), ..LimitsOfClass::default() };
/// let now = "2026-03-06T19:00:00Z".parse()?;
/// let until = Some("2026-03-06T23:00:00Z".parse()?);
/// let night = |name, priority| Contender { name, priority, holds: false, until };
/// let week = Week::at(now, &TimeZone::UTC);
/// let all = [night("desk-1", 50), night("desk-2", 60)];
/// assert_eq!(
///     turns(&limits, &week, SignedDuration::ZERO, &all, now),
///     [Turn::Wait { limit: Limit::Machines, again: until }, Turn::Open],
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn turns(
    limits: &LimitsOfClass,
    week: &Week,
    used: SignedDuration,
    contenders: &[Contender<'_>],
    now: Timestamp,
) -> Vec<Turn> {
    let most = limits.machines.map_or(usize::MAX, |most| most as usize);
    let hours = |hours| SignedDuration::from_hours(i64::from(hours));
    let hours = limits.hours.map_or(SignedDuration::MAX, hours);
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    order.sort_unstable_by_key(|place| {
        let of = &contenders[*place];
        (!of.holds, Reverse(of.priority), of.name)
    });
    let mut turns = vec![Turn::Open; contenders.len()];
    let (mut open, mut spent) = (Vec::new(), used);
    let (mut waiting, mut too_long) = (Vec::new(), Vec::new());
    for place in order {
        let of = &contenders[place];
        let end = of.until.map_or(week.end, |until| until.min(week.end));
        let rest = end.duration_since(now).max(SignedDuration::ZERO);
        let total = spent.saturating_add(rest);
        if !of.holds && open.len() >= most {
            waiting.push(place);
        } else if !of.holds && total > hours {
            too_long.push((place, end));
        } else {
            open.push(of.until);
            spent = total;
        }
    }
    // Also those that passed by use their hours.
    let left = hours.saturating_sub(spent);
    for (place, end) in too_long {
        turns[place] = Turn::Wait {
            limit: Limit::Hours,
            again: Some(fits_at(end, left, week)),
        };
    }
    // The first that waits takes the place of the first that leaves.
    let mut ends: Vec<Timestamp> = open.iter().copied().flatten().collect();
    ends.sort_unstable();
    let leave_first = open.len().saturating_sub(most);
    for (rank, place) in waiting.into_iter().enumerate() {
        turns[place] = Turn::Wait {
            limit: Limit::Machines,
            again: ends.get(leave_first.saturating_add(rank)).copied(),
        };
    }
    turns
}

/// When the hours that are left suffice until `end`; the next week if none is left.
fn fits_at(end: Timestamp, left: SignedDuration, week: &Week) -> Timestamp {
    if left.is_positive() {
        after(end, -left)
    } else {
        week.end
    }
}

/// A span of time in which a machine is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub start: Timestamp,
    /// The first instant after it; `None` if that is not known.
    pub end: Option<Timestamp>,
}

impl Span {
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.start <= now && self.end.is_none_or(|end| end > now)
    }
}

/// The first instant after `now` at which one of these begins or ends.
pub(crate) fn next_edge(spans: &[Span], now: Timestamp) -> Option<Timestamp> {
    let edges = spans.iter().flat_map(|span| [Some(span.start), span.end]);
    edges.flatten().filter(|edge| *edge > now).min()
}

/// What a machine claims of the limits of its class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its priority.
    pub priority: u8,
    /// As in [`Contender`].
    pub holds: bool,
    /// When it is needed next, in order; the first one may have begun. Not the whole future: the
    /// claim has to be made again before the end of the last one.
    pub spans: Vec<Span>,
    /// For how long it was needed this week.
    pub used: Option<WeeklyUse>,
}

impl Claim {
    /// The machine at an instant; `None` if it is not needed then.
    pub fn at<'a>(&self, name: &'a str, now: Timestamp) -> Option<Contender<'a>> {
        let mut spans = self.spans.iter();
        let open = spans.find(|span| span.is_open(now));
        open.map(|span| Contender {
            name,
            priority: self.priority,
            holds: self.holds,
            until: span.end,
        })
    }

    /// The next instant at which it is needed or not any more.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        next_edge(&self.spans, now)
    }

    /// Whether it claims the same as `other` from `now` on, as far as both are known: an end that
    /// has passed, and a span further ahead, make no difference.
    pub fn is_same_from(&self, other: &Self, now: Timestamp) -> bool {
        let horizon = self.known_until().min(other.known_until());
        let ahead = |claim: &Self| -> Vec<(Timestamp, Timestamp)> {
            let spans = claim.spans.iter().map(|span| {
                let end = span.end.unwrap_or(Timestamp::MAX);
                (span.start.max(now), end.min(horizon))
            });
            spans.filter(|(start, end)| start < end).collect()
        };
        (self.priority, self.holds) == (other.priority, other.holds)
            && ahead(self) == ahead(other)
    }

    fn known_until(&self) -> Timestamp {
        let last = self.spans.last().and_then(|span| span.end);
        last.unwrap_or(Timestamp::MAX)
    }

    /// For how long it was needed in a week, not counting what comes after its end.
    fn used_in(&self, week: &Week, now: Timestamp) -> SignedDuration {
        let first = self.spans.first().filter(|span| span.start <= now);
        let end = first.and_then(|span| span.end).unwrap_or(now);
        let used = self.used.as_ref();
        used.map_or(SignedDuration::ZERO, |used| week.used(used, end.min(now)))
    }
}

/// Whose turn it is, for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The first instant at which it may be another one, if no claim changes.
    pub until: Timestamp,
    /// Those that wait, by name.
    pub waiting: BTreeMap<String, Turn>,
}

/// Whose turn it is of all machines of a class in one namespace, by name. In one pass over them, as
/// [`turns`].
pub fn rule(
    limits: &LimitsOfClass,
    week: &Week,
    claims: &BTreeMap<String, Claim>,
    now: Timestamp,
) -> Ruling {
    let contenders: Vec<Contender<'_>> = claims
        .iter()
        .filter_map(|(name, claim)| claim.at(name, now))
        .collect();
    let mut used = SignedDuration::ZERO;
    let mut until = week.end;
    for claim in claims.values() {
        used = used.saturating_add(claim.used_in(week, now));
        until = claim.next_change(now).map_or(until, |next| until.min(next));
    }
    let turns = turns(limits, week, used, &contenders, now);
    let mut waiting = BTreeMap::new();
    for (of, turn) in contenders.iter().zip(turns) {
        if let Turn::Wait { again, .. } = turn {
            let again = again.filter(|again| *again > now);
            until = again.map_or(until, |again| until.min(again));
            waiting.insert(of.name.to_owned(), turn);
        }
    }
    Ruling { until, waiting }
}
