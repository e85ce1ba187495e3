//! The limits of a class for its machines in one namespace. Whose turn it is follows from the same
//! order as in [`fivespot_plan::limits`], which decides at one instant.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use fivespot_api::LimitsOfClass;
use fivespot_plan::limits::{Limit, Week};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::opening::{Needs, Opening};
use crate::{FleetMachine, ForecastSpan};

/// How far after the end of the forecast a machine is seen to wait: more than a week.
const FURTHER: SignedDuration = SignedDuration::from_hours(8 * 24);

/// What happens at an instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The machine is not needed any more.
    Ends,
    /// It is too late to make it.
    GivesUp,
    /// It is needed for its opening at that place.
    Needed(usize),
}

/// A machine of the class. Their places are in the order in which they may be made.
struct Member {
    place: usize,
    /// The opening that it waits for, and until when it is needed.
    waits: Option<(usize, i64)>,
    /// Until when it may exist.
    until: Option<i64>,
}

struct Turns<'n, 'm> {
    needs: &'n mut [Needs<'m>],
    members: Vec<Member>,
    most: usize,
    /// The seconds of a week; `None` if they are not limited.
    most_seconds: Option<i64>,
    zone: TimeZone,
    waiting: BTreeSet<usize>,
    /// The same by the end of what they wait for.
    waiting_by_end: BTreeSet<(i64, usize)>,
    open: usize,
    /// The seconds of this week that are used, or will be by those that may exist.
    spent: i64,
    week_end: i64,
    horizon: i64,
}

/// Moves the start of each opening to when its machine may be made. One that never may starts when it
/// is needed no longer. `places` are the machines of a class in a namespace.
pub(super) fn keep(
    fleet: &[FleetMachine<'_>],
    needs: &mut [Needs<'_>],
    limits: &LimitsOfClass,
    mut places: Vec<usize>,
    span: ForecastSpan,
) {
    let object = |place: usize| fleet.get(place).map(|it| it.object);
    places.sort_by_key(|place| {
        let object = object(*place);
        object.map(|it| (Reverse(it.spec.priority), it.metadata.name.as_deref()))
    });
    let known = fivespot_schedule::zone(&limits.timezone);
    let zone = known.clone().unwrap_or(TimeZone::UTC);
    let week = Week::at(span.since, &zone);
    let hours = limits.hours.map(|hours| i64::from(hours) * 3_600);
    let mut turns = Turns {
        most: limits.machines.map_or(usize::MAX, |most| most as usize),
        // While it is not known when weeks begin, the operator makes nothing.
        most_seconds: hours.map(|hours| if known.is_some() { hours } else { 0 }),
        zone,
        waiting: BTreeSet::new(),
        waiting_by_end: BTreeSet::new(),
        open: 0,
        spent: 0,
        week_end: week.end.as_second(),
        horizon: (span.to + FURTHER).as_second(),
        members: Vec::new(),
        needs,
    };
    for place in places {
        let status = object(place).and_then(|it| it.status.as_ref());
        let used = status.and_then(|status| status.weekly_use);
        let seconds = used.map_or(0, |used| week.used(&used, span.since).as_secs());
        turns.spent = turns.spent.saturating_add(seconds);
        let is_made = status.is_some_and(|status| status.machine_ref.is_some());
        let holds = is_made || used.is_some_and(|used| used.since.is_some());
        turns.add(place, holds, span.since.as_second());
    }
    turns.take();
}

impl Turns<'_, '_> {
    /// Adds a machine; one that holds its turn keeps it.
    fn add(&mut self, place: usize, holds: bool, since: i64) {
        let first = self.needs.get(place).and_then(|it| it.openings.first());
        let first = first.filter(|first| holds && first.start <= since);
        let until = first.map(|first| first.needed_until);
        if let Some(until) = until {
            self.open += 1;
            self.spend(since, until);
        }
        self.members.push(Member {
            place,
            waits: None,
            until,
        });
    }

    fn changes(&self) -> Vec<(i64, Change, usize)> {
        let mut changes = Vec::new();
        for (member, of) in self.members.iter().enumerate() {
            let Some(needs) = self.needs.get(of.place) else {
                continue;
            };
            for (place, opening) in needs.openings.iter().enumerate() {
                changes.push((opening.start, Change::Needed(place), member));
                changes.push((opening.needed_until, Change::Ends, member));
                changes.push((needs.too_late(opening), Change::GivesUp, member));
            }
        }
        changes.sort_unstable();
        changes
    }

    /// Goes through all that happens.
    fn take(&mut self) {
        let changes = self.changes();
        let mut rest = changes.as_slice();
        while let Some((next, ..)) = rest.first() {
            let at = self.chance().map_or(*next, |chance| chance.min(*next));
            self.begin_week(at);
            let now = rest.partition_point(|(due, ..)| *due <= at);
            let (happens, later) = rest.split_at(now);
            for (_, change, member) in happens {
                self.apply(*change, *member);
            }
            self.allow(at);
            for (_, _, member) in happens {
                self.refuse(*member);
            }
            rest = later;
        }
    }

    /// When time alone lets one that waits be made: when what is left of its window, or of the week,
    /// is short enough, or in the next week.
    fn chance(&self) -> Option<i64> {
        let most = self.most_seconds.filter(|_| !self.is_full())?;
        let (first, _) = self.waiting_by_end.first()?;
        let left = most.saturating_sub(self.spent);
        let chance = if left > 0 {
            (*first).min(self.week_end).saturating_sub(left)
        } else {
            self.week_end
        };
        (chance <= self.horizon).then_some(chance)
    }

    /// Begins the week of an instant, unless it is this one.
    fn begin_week(&mut self, at: i64) {
        let instant = Timestamp::from_second(at).ok();
        let Some(instant) = instant.filter(|_| at >= self.week_end) else {
            return;
        };
        let week = Week::at(instant, &self.zone);
        self.week_end = week.end.as_second();
        self.spent = 0;
        let open: Vec<i64> = self.members.iter().filter_map(|of| of.until).collect();
        for until in open {
            self.spend(week.start.as_second(), until);
        }
    }

    fn spend(&mut self, from: i64, until: i64) {
        let seconds = self.rest(from, until);
        self.spent = self.spent.saturating_add(seconds);
    }

    /// The seconds of this week from an instant until another one.
    fn rest(&self, from: i64, until: i64) -> i64 {
        until.min(self.week_end).saturating_sub(from).max(0)
    }

    fn is_full(&self) -> bool {
        self.open >= self.most
    }

    fn apply(&mut self, change: Change, member: usize) {
        match change {
            Change::Ends => {
                let of = self.members.get_mut(member);
                if of.and_then(|of| of.until.take()).is_some() {
                    self.open = self.open.saturating_sub(1);
                }
                self.start(member, None);
            }
            Change::GivesUp => self.start(member, None),
            Change::Needed(place) => {
                let Some(of) = self.members.get_mut(member) else {
                    return;
                };
                let needs = self.needs.get(of.place);
                let opening = needs.and_then(|it| it.openings.get(place));
                if let Some(opening) = opening.filter(|_| of.until.is_none()) {
                    of.waits = Some((place, opening.needed_until));
                    self.waiting.insert(member);
                    self.waiting_by_end.insert((opening.needed_until, member));
                }
            }
        }
    }

    /// Ends the wait of a machine, if it waits: it may be made at an instant, or never.
    fn start(&mut self, member: usize, at: Option<i64>) {
        let Some(of) = self.members.get_mut(member) else {
            return;
        };
        let Some((place, until)) = of.waits.take() else {
            return;
        };
        of.until = at.map(|_| until);
        self.waiting.remove(&member);
        self.waiting_by_end.remove(&(until, member));
        let needs = self.needs.get_mut(of.place);
        if let Some(opening) = needs.and_then(|it| it.openings.get_mut(place)) {
            opening.start = at.unwrap_or(until);
        }
        if let Some(at) = at {
            self.open += 1;
            self.spend(at, until);
        }
    }

    /// Allows those that wait in their order. One for which there is no room is passed over.
    fn allow(&mut self, at: i64) {
        while let Some(member) = self.first_with_room(at) {
            self.start(member, Some(at));
        }
    }

    fn first_with_room(&self, at: i64) -> Option<usize> {
        let (first_end, _) = self.waiting_by_end.first().filter(|_| !self.is_full())?;
        let Some(most) = self.most_seconds else {
            return self.waiting.first().copied();
        };
        let left = most.saturating_sub(self.spent);
        if self.rest(at, *first_end) > left {
            return None;
        }
        let mut waiting = self.waiting.iter().copied();
        waiting.find(|member| {
            let waits = self.members.get(*member).and_then(|of| of.waits);
            waits.is_some_and(|(_, until)| self.rest(at, until) <= left)
        })
    }

    /// Notes for a machine that waits which limit refuses it.
    fn refuse(&mut self, member: usize) {
        let limit = if self.is_full() {
            Limit::Machines
        } else {
            Limit::Hours
        };
        let of = self.members.get(member);
        let Some((of, (place, _))) = of.and_then(|of| Some((of, of.waits?))) else {
            return;
        };
        let needs = self.needs.get_mut(of.place);
        let opening: Option<&mut Opening> =
            needs.and_then(|it| it.openings.get_mut(place));
        if let Some(opening) = opening {
            opening.limit.get_or_insert(limit);
        }
    }
}
