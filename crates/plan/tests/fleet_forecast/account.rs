//! An account of a fleet that goes from minute to minute. It has nothing of the schedule engine, and
//! it knows each time no more than who needs a machine now and who has which host.

use std::cmp::Reverse;

use crate::fleet::{DAY, Desk, Fleet, WEEK};

/// What becomes of the openings of a week.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) openings: usize,
    /// When it opens, the machine, the reason, and how late it is there.
    pub(crate) broken: Vec<(i64, usize, &'static str, Option<i64>)>,
}

/// How far minutes are looked at before and after the week.
const MARGIN: i64 = 3 * DAY;

/// The minutes from which on a machine is needed, until one at which it is not any more.
fn needs(desk: &Desk) -> Vec<(i64, i64)> {
    let is_wanted = |minute: i64| {
        let of_week = minute.rem_euclid(WEEK);
        desk.windows.iter().any(|(day, start, length)| {
            let since = (of_week - day * DAY - start).rem_euclid(WEEK);
            since < *length
        })
    };
    let early = if desk.is_gone_at_end { desk.grace } else { 0 };
    let wanted = runs(is_wanted);
    let wanted = wanted.into_iter().filter(|(from, to)| to - from > early);
    let wanted: Vec<_> = wanted
        .map(|(from, to)| (from - desk.lead, to - early))
        .collect();
    runs(|minute| {
        wanted
            .iter()
            .any(|(from, to)| (*from..*to).contains(&minute))
    })
}

/// The spans of minutes for which something is true.
fn runs(is_true: impl Fn(i64) -> bool) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for minute in (-MARGIN..WEEK + MARGIN).filter(|minute| is_true(*minute)) {
        match runs.last_mut() {
            Some((_, end)) if *end == minute => *end += 1,
            _ => runs.push((minute, minute + 1)),
        }
    }
    runs
}

/// A machine at a minute.
struct State {
    needs: Vec<(i64, i64)>,
    host: Option<usize>,
    /// When its host is free.
    leaves: Option<i64>,
    /// When each of its needs was met, by their places.
    met: Vec<Option<i64>>,
    /// When each of its needs was allowed by the limits of the class.
    allowed: Vec<Option<i64>>,
}

impl State {
    /// The need of a minute for which a machine may be made.
    fn need(&self, desk: &Desk, minute: i64) -> Option<usize> {
        let mut needs = self.needs.iter();
        let found =
            needs.position(|(from, to)| (*from.max(&0)..*to).contains(&minute))?;
        let (from, to) = self.needs[found];
        (to - from.max(0) >= desk.minimum_run).then_some(found)
    }
}

pub(crate) fn account(fleet: &Fleet) -> Found {
    let mut states: Vec<State> = (0..fleet.desks.len())
        .map(|desk| {
            let mut needs = needs(&fleet.desks[desk]);
            needs.retain(|(from, to)| *to > 0 && *from < WEEK);
            let host = fleet.host_of(desk);
            State {
                met: vec![None; needs.len()],
                allowed: vec![None; needs.len()],
                leaves: host.map(|_| fleet.desks[desk].grace),
                needs,
                host,
            }
        })
        .collect();
    let mut turns: Vec<usize> = (0..states.len()).collect();
    turns.sort_by_key(|place| {
        let desk = &fleet.desks[*place];
        (Reverse(desk.priority), desk.is_other, *place)
    });
    let mut used = [0; 2];
    for minute in 0..WEEK + MARGIN {
        for (is_other, used) in [false, true].into_iter().zip(&mut used) {
            if minute % WEEK == 0 {
                *used = 0;
            }
            *used += limit(fleet, &mut states, (&turns, is_other), minute, *used);
        }
        step(fleet, &mut states, &turns, minute);
    }
    report(fleet, &states)
}

/// Allows the machines of a namespace that the limits of the class leave room for. Returns for how
/// many minutes of this one its machines are needed and allowed.
fn limit(
    fleet: &Fleet,
    states: &mut [State],
    (turns, is_other): (&[usize], bool),
    minute: i64,
    used: i64,
) -> i64 {
    let week_end = (minute / WEEK + 1) * WEEK;
    let most = fleet.machines.map_or(i64::MAX, i64::from);
    let most_minutes = fleet.hours.map_or(i64::MAX, |hours| i64::from(hours) * 60);
    let (mut open, mut spent) = (0, used);
    for is_new in [false, true] {
        for place in turns.iter().copied() {
            let (desk, state) = (&fleet.desks[place], &mut states[place]);
            let need = state
                .need(desk, minute)
                .filter(|_| desk.is_other == is_other);
            let Some(need) = need else { continue };
            let until = state.needs[need].1;
            let rest = until.min(week_end) - minute;
            let is_counted = match state.allowed[need] {
                // It was counted in the first round.
                Some(_) => !is_new,
                None if is_new
                    && open < most
                    && spent + rest <= most_minutes
                    && until - minute >= desk.minimum_run =>
                {
                    state.allowed[need] = Some(minute);
                    true
                }
                None => false,
            };
            if is_counted {
                open += 1;
                spent += rest;
            }
        }
    }
    open
}

/// One minute: machines leave, hosts become free, and those that need one take one in their turn.
fn step(fleet: &Fleet, states: &mut [State], turns: &[usize], minute: i64) {
    for (desk, state) in fleet.desks.iter().zip(states.iter_mut()) {
        let need = state.need(desk, minute);
        let is_needed = need.is_some_and(|need| state.allowed[need].is_some());
        if is_needed {
            state.leaves = None;
        } else if state.host.is_some() {
            let leaves = *state.leaves.get_or_insert(minute + desk.grace);
            if leaves <= minute {
                (state.host, state.leaves) = (None, None);
            }
        }
    }
    for desk in turns {
        let Some(need) = states[*desk].need(&fleet.desks[*desk], minute) else {
            continue;
        };
        if states[*desk].allowed[need].is_none() {
            continue;
        }
        let (_, until) = states[*desk].needs[need];
        let is_enough = until - minute >= fleet.desks[*desk].minimum_run;
        if states[*desk].host.is_none() && is_enough {
            let is_free = |host: &usize| states.iter().all(|it| it.host != Some(*host));
            let mut hosts = match fleet.named(*desk) {
                Some(host) => host..host + 1,
                None => 0..fleet.hosts,
            };
            states[*desk].host = hosts.find(is_free);
        }
        if states[*desk].host.is_some() {
            states[*desk].met[need].get_or_insert(minute);
        }
    }
}

fn report(fleet: &Fleet, states: &[State]) -> Found {
    let mut found = Found::default();
    for (place, (desk, state)) in fleet.desks.iter().zip(states).enumerate() {
        let outcomes = state.met.iter().zip(&state.allowed);
        for ((from, to), (met, allowed)) in state.needs.iter().zip(outcomes) {
            let opens = from + desk.lead;
            let is_reported = (fleet.from..WEEK).contains(&opens) && *from >= -desk.lead;
            if !is_reported || to - from.max(&0) < desk.minimum_run {
                continue;
            }
            found.openings += 1;
            let took = desk.took.filter(|_| desk.lead > 0).unwrap_or(0);
            let late = met.map(|met| met + took - opens);
            if late.is_some_and(|late| late <= 0) {
                continue;
            }
            let begin = (*from).max(0);
            let is_allowed = allowed.is_some_and(|allowed| *met == Some(allowed));
            let reason = match fleet.named(place) {
                _ if allowed.is_none() || is_allowed && *allowed > Some(begin) => {
                    "LimitReached"
                }
                _ if *met == Some(begin) => "LeadTimeTooShort",
                Some(_) => "HostTaken",
                None => "NoHostFree",
            };
            found.broken.push((opens, place, reason, late));
        }
    }
    found.broken.sort_unstable();
    found
}
