//! When the machines of a class begin and leave, where the class says how many may do so within a
//! minute, or how many stay active.
//!
//! It is decided for all machines of the class in all namespaces at one instant, in one pass, from
//! when their schedules need them and from what their statuses record. So all replicas come to the
//! same result, also after a restart, and none has to tell another.
//!
//! Of one namespace the highest priority begins first and leaves last. Namespaces take turns, so that
//! none waits for all machines of another. Who stays is decided by priority alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use fivespot_api::RatesOfClass;
use fivespot_api::time::whole_seconds;
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::limits::{Span, next_edge};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// What exists of a machine, as far as it matters to others of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It neither waits nor counts: it is leaving, or something else keeps it from beginning.
    #[default]
    Aside,
    /// Nothing exists, and once it is needed only its turn is missing.
    Absent,
    /// As [`Absent`](Self::Absent), but the last try has failed. It comes after those that have not.
    Failed,
    /// Its Machine exists, and is not active.
    Present,
    /// It is active.
    Active,
    /// It is active, and stays whatever its schedule says.
    Fixed,
}

/// What a machine claims of the rates of its class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its priority: the highest begins first and leaves last.
    pub priority: u8,
    /// What exists of it.
    pub stage: Stage,
    /// When it is needed next, in order, as in [`limits::Claim`](crate::limits::Claim).
    pub spans: Vec<Span>,
    /// Those ends of the spans that nothing holds: a person stops it then.
    pub unheld_ends: Vec<Timestamp>,
    /// When it last began.
    pub started: Option<Timestamp>,
    /// When its last shutdown by schedule began.
    pub stopped: Option<Timestamp>,
}

/// What a machine is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing that matters to others.
    Nothing,
    /// To begin.
    Start,
    /// To stay active.
    Stay,
    /// To leave.
    Stop,
}

impl Claim {
    /// What the machine is about to do at an instant.
    pub fn wish(&self, now: Timestamp) -> Wish {
        let is_needed = self.spans.iter().any(|span| span.is_open(now));
        match self.stage {
            Stage::Absent | Stage::Failed if is_needed => Wish::Start,
            Stage::Active if is_needed => Wish::Stay,
            Stage::Fixed => Wish::Stay,
            Stage::Present | Stage::Active if !is_needed && self.is_held_since(now) => {
                Wish::Stop
            }
            Stage::Aside
            | Stage::Absent
            | Stage::Failed
            | Stage::Present
            | Stage::Active => Wish::Nothing,
        }
    }

    fn is_held_since(&self, now: Timestamp) -> bool {
        let ends = self.spans.iter().filter_map(|span| span.end);
        let last = ends.filter(|end| *end <= now).max();
        last.is_none_or(|end| !self.unheld_ends.contains(&end))
    }

    /// The next instant at which it is needed or not any more.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        next_edge(&self.spans, now)
    }

    /// Whether nothing of it counts any more.
    pub fn is_past(&self, now: Timestamp) -> bool {
        let is_recent = |at: Timestamp| after(at, MINUTE) > now;
        !self.started.is_some_and(is_recent) && !self.stopped.is_some_and(is_recent)
    }
}

/// What holds a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// `startsPerMinute`: it does not begin yet.
    Starts,
    /// `stopsPerMinute`: it does not leave yet.
    Stops,
    /// `minimumActive`: it does not leave.
    MinimumActive,
}

/// Whether a machine may begin or leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Nothing holds it.
    Free,
    /// It waits.
    Wait {
        /// What holds it.
        rate: Rate,
        /// When it may, if nothing changes but the time; `None` if others have to change.
        again: Option<Timestamp>,
    },
}

/// That a machine was allowed to begin or to leave. It counts for a minute, whether it has used that
/// or not, unless its status records a later beginning or shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When it was allowed.
    pub at: Timestamp,
    /// Whether it may leave; otherwise it may begin.
    pub is_stop: bool,
}

/// A machine of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it claims.
    pub claim: &'a Claim,
    /// What it was allowed last.
    pub grant: Option<Grant>,
}

/// Who may begin and leave, for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The first instant at which it may be another, if no claim changes.
    pub until: Timestamp,
    /// For each machine, in the order of the members.
    pub paces: Vec<Pace>,
    /// What each machine is allowed from now on, to be given to the next ruling.
    pub grants: Vec<Option<Grant>>,
}

/// Who may begin and leave of all machines of a class, in the order of `members`.
///
/// # Guarantees
/// Total and deterministic. It takes n log n steps; the order of the members makes no difference. If
/// rulings follow each other with the grants of the last one, and each machine begins or leaves
/// within a minute of its grant or not at all, then in no minute more begin or leave than the
/// class says, and no shutdown by schedule leaves fewer active than it says. Times count in whole
/// seconds, as statuses record them.
///
/// # Example
/// ```
/// use fivespot_api::RatesOfClass;
/// use fivespot_plan::limits::Span;
/// use fivespot_plan::rates::{Claim, Member, Pace, Rate, Stage, rule};
///
/// let rates = RatesOfClass { starts: Some(1), ..RatesOfClass::default() };
/// let now = "2026-03-06T19:00:00Z".parse()?;
/// let spans = vec![Span { start: now, end: None }];
/// let claim = |priority| Claim { priority, stage: Stage::Absent, spans: spans.clone(), ..Claim::default() };
/// let (low, high) = (claim(1), claim(9));
/// let member = |name, claim| Member { namespace: "team-a", name, claim, grant: None };
/// let ruling = rule(&rates, &[member("a", &low), member("b", &high)], now);
/// let again = Some("2026-03-06T19:01:00Z".parse()?);
/// assert_eq!(ruling.paces, [Pace::Wait { rate: Rate::Starts, again }, Pace::Free]);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn rule(rates: &RatesOfClass, members: &[Member<'_>], now: Timestamp) -> Ruling {
    let edges = members.iter().filter_map(|of| of.claim.next_change(now));
    let mut ruling = Ruling {
        until: edges.min().unwrap_or(Timestamp::MAX),
        paces: vec![Pace::Free; members.len()],
        grants: vec![None; members.len()],
    };
    for place in kept(rates, members, now) {
        ruling.paces[place] = Pace::Wait {
            rate: Rate::MinimumActive,
            again: None,
        };
    }
    for is_stop in [false, true] {
        let most = if is_stop { rates.stops } else { rates.starts };
        let line = Line {
            members,
            is_stop,
            now,
        };
        line.form(most, &mut ruling);
    }
    ruling
}

/// Those that stay so that enough are active: the highest priority first.
fn kept(rates: &RatesOfClass, members: &[Member<'_>], now: Timestamp) -> Vec<usize> {
    let line = Line {
        members,
        is_stop: true,
        now,
    };
    let mut staying = 0_usize;
    let mut leaving = Vec::new();
    for (place, of) in members.iter().enumerate() {
        match of.claim.wish(now) {
            Wish::Stay => staying = staying.saturating_add(1),
            Wish::Stop if of.claim.stage == Stage::Active => leaving.push(place),
            Wish::Nothing | Wish::Start | Wish::Stop => {}
        }
    }
    let lacking = (rates.minimum_active as usize).saturating_sub(staying);
    leaving.sort_unstable_by_key(|place| {
        let of = &members[*place];
        // One that was allowed to leave may be about to.
        let is_granted = line.open_grant(of).is_some();
        (
            is_granted,
            Reverse(of.claim.priority),
            of.namespace,
            of.name,
        )
    });
    leaving.truncate(lacking);
    leaving
}

/// Those that begin, or those that leave.
struct Line<'m> {
    members: &'m [Member<'m>],
    is_stop: bool,
    now: Timestamp,
}

/// What of a namespace counts.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// How many have begun or left within the last minute, or are next.
    round: usize,
    /// When the last one did.
    last: Option<Timestamp>,
}

impl<'m> Line<'m> {
    fn is_recent(&self, at: Timestamp) -> bool {
        after(at, MINUTE) > self.now
    }

    fn wish(&self) -> Wish {
        if self.is_stop {
            Wish::Stop
        } else {
            Wish::Start
        }
    }

    /// When the machine last did what the line is about; not later than now, which another clock may
    /// say.
    fn done(&self, of: &Member<'_>) -> Option<Timestamp> {
        let done = if self.is_stop {
            of.claim.stopped
        } else {
            of.claim.started
        };
        done.map(|at| at.min(self.now))
    }

    /// A grant of the last minute after which nothing is recorded.
    fn open_grant(&self, of: &Member<'_>) -> Option<Grant> {
        let grant = of.grant.filter(|grant| grant.is_stop == self.is_stop)?;
        let done = self.done(of);
        let is_used = done.is_some_and(|done| done >= whole_seconds(grant.at));
        (!is_used && self.is_recent(grant.at)).then_some(grant)
    }

    /// Decides who may go now, and when the others may.
    fn form(&self, most: Option<u32>, ruling: &mut Ruling) {
        let mut tallies: BTreeMap<&'m str, Tally> = BTreeMap::new();
        let (mut taken, mut waiting) = (Vec::new(), Vec::new());
        for (place, of) in self.members.iter().enumerate() {
            let tally = tallies.entry(of.namespace).or_default();
            let (done, grant) = (self.done(of), self.open_grant(of));
            let counted = done.filter(|at| self.is_recent(*at));
            let granted = grant.map(|grant| grant.at);
            for at in counted.into_iter().chain(granted) {
                taken.push(at);
                tally.round = tally.round.saturating_add(1);
            }
            tally.last = tally.last.max(done).max(granted);
            if let Some(grant) = grant {
                ruling.grants[place] = Some(grant);
                ruling.until = ruling.until.min(after(grant.at, MINUTE));
            } else if of.claim.wish(self.now) == self.wish()
                && ruling.paces[place] == Pace::Free
            {
                waiting.push(place);
            }
        }
        taken.sort_unstable();
        let order = self.order(waiting, tallies);
        self.give(&order, most, &taken, ruling);
    }

    /// The order in which they go: of each namespace the next one, then of each the one after it. A
    /// namespace whose last one is the longest ago comes first.
    fn order(
        &self,
        mut waiting: Vec<usize>,
        mut tallies: BTreeMap<&'m str, Tally>,
    ) -> Vec<usize> {
        let key = |place: usize| {
            let of = &self.members[place];
            let priority = of.claim.priority;
            let rank = if self.is_stop {
                priority
            } else {
                u8::MAX.saturating_sub(priority)
            };
            (of.claim.stage == Stage::Failed, rank, of.namespace, of.name)
        };
        waiting.sort_unstable_by_key(|place| key(*place));
        let mut order: Vec<_> = waiting
            .into_iter()
            .map(|place| {
                let (has_failed, ..) = key(place);
                let tally = tallies.entry(self.members[place].namespace).or_default();
                let round = tally.round;
                tally.round = round.saturating_add(1);
                (has_failed, round, tally.last, key(place), place)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(.., place)| place).collect()
    }

    fn give(
        &self,
        order: &[usize],
        most: Option<u32>,
        taken: &[Timestamp],
        ruling: &mut Ruling,
    ) {
        let now = self.now;
        let grant = Grant {
            at: now,
            is_stop: self.is_stop,
        };
        let most = most.map_or(usize::MAX, |most| most as usize);
        // More may have gone before the rate was lowered.
        let too_many = taken.len().saturating_sub(most);
        let ends = taken.iter().skip(too_many).map(|at| after(*at, MINUTE));
        let mut ends: VecDeque<Timestamp> = ends.collect();
        let rate = if self.is_stop {
            Rate::Stops
        } else {
            Rate::Starts
        };
        for place in order {
            if ends.len() < most {
                ends.push_back(after(now, MINUTE));
                ruling.grants[*place] = Some(grant);
                ruling.until = ruling.until.min(after(now, MINUTE));
                continue;
            }
            let again = ends.pop_front();
            ends.extend(again.map(|at| after(at, MINUTE)));
            ruling.until = ruling.until.min(again.unwrap_or(Timestamp::MAX));
            ruling.paces[*place] = Pace::Wait { rate, again };
        }
    }
}
