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
fn needs(desk: &Desk, has_host: bool) -> Vec<(i64, i64)> {
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
    let own = |minute: i64| {
        let mut wanted = wanted.iter();
        wanted.any(|(from, to)| (*from..*to).contains(&minute))
    };
    if desk.delay == 0 {
        return runs(own);
    }
    // What is there stays until the later one of both ends, unless it must be gone by its own.
    let mut is_there = has_host;
    runs(|minute| {
        if minute < -desk.lead - 1 {
            return false;
        }
        let (is_own, is_later) = (own(minute), own(minute - desk.delay));
        is_there = match (is_there, desk.is_gone_at_end) {
            (true, true) => is_own,
            (true, false) => is_own || is_later,
            (false, true) => wanted
                .iter()
                .any(|(from, to)| (from + desk.delay..*to).contains(&minute)),
            (false, false) => is_later,
        };
        is_there
    })
}

/// The spans of minutes for which something is true.
fn runs(mut is_true: impl FnMut(i64) -> bool) -> Vec<(i64, i64)> {
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
    /// Whether it has begun.
    is_made: bool,
    /// When its host is free.
    leaves: Option<i64>,
    /// When it had a host for each of its needs, by their places.
    hosted: Vec<Option<i64>>,
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
            let host = fleet.host_of(desk);
            let mut needs = needs(&fleet.desks[desk], host.is_some());
            needs.retain(|(from, to)| *to > 0 && *from < WEEK);
            State {
                is_made: host.is_some(),
                hosted: vec![None; needs.len()],
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
    let (mut used, mut last) = ([0; 2], [None; 2]);
    for minute in 0..WEEK + MARGIN {
        for (is_other, used) in [false, true].into_iter().zip(&mut used) {
            if minute % WEEK == 0 {
                *used = 0;
            }
            *used += limit(fleet, &mut states, (&turns, is_other), minute, *used);
        }
        step(fleet, &mut states, &turns, minute);
        begin(fleet, &mut states, &turns, minute, &mut last);
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

impl State {
    /// The need of a minute for which the machine is there, or may still begin.
    fn allowed_need(&self, desk: &Desk, minute: i64) -> Option<usize> {
        let need = self.need(desk, minute)?;
        let is_enough = self.needs[need].1 - minute >= desk.minimum_run;
        (self.allowed[need].is_some() && (self.is_made || is_enough)).then_some(need)
    }
}

/// One minute: machines leave, hosts become free, and those that need one take one in their turn.
fn step(fleet: &Fleet, states: &mut [State], turns: &[usize], minute: i64) {
    for (desk, state) in fleet.desks.iter().zip(states.iter_mut()) {
        if state.allowed_need(desk, minute).is_some() {
            state.leaves = None;
        } else if state.host.is_some() {
            let grace = if state.is_made { desk.grace } else { 0 };
            let leaves = *state.leaves.get_or_insert(minute + grace);
            if leaves <= minute {
                (state.host, state.leaves, state.is_made) = (None, None, false);
            }
        }
    }
    for desk in turns {
        let need = states[*desk].allowed_need(&fleet.desks[*desk], minute);
        let Some(need) = need else { continue };
        if states[*desk].host.is_none() {
            let is_free = |host: &usize| states.iter().all(|it| it.host != Some(*host));
            let mut hosts = match fleet.named(*desk) {
                Some(host) => host..host + 1,
                None => 0..fleet.hosts,
            };
            states[*desk].host = hosts.find(is_free);
        }
        if states[*desk].host.is_some() {
            states[*desk].hosted[need].get_or_insert(minute);
        }
    }
}

/// Those that have a host begin, as many as the class says: each time one of the namespace of which
/// fewer have begun in this minute, and if that is none, of which the last one began earlier.
fn begin(
    fleet: &Fleet,
    states: &mut [State],
    turns: &[usize],
    minute: i64,
    last: &mut [Option<i64>; 2],
) {
    let mut begun = [0; 2];
    let before = *last;
    for (desk, state) in states.iter_mut().enumerate() {
        if state.is_made {
            begun_for(fleet, state, desk, minute);
        }
    }
    while fleet.starts.is_none_or(|most| begun[0] + begun[1] < most) {
        let waits = |desk: &&usize| {
            let state = &states[**desk];
            let need = state.allowed_need(&fleet.desks[**desk], minute);
            need.is_some() && state.host.is_some() && !state.is_made
        };
        let next = turns.iter().filter(waits).min_by_key(|desk| {
            let of = usize::from(fleet.desks[**desk].is_other);
            (begun[of], before[of])
        });
        let Some(desk) = next else { return };
        let of = usize::from(fleet.desks[*desk].is_other);
        begun[of] += 1;
        last[of] = Some(minute);
        begun_for(fleet, &mut states[*desk], *desk, minute);
    }
}

/// The machine is there for what it is needed for.
fn begun_for(fleet: &Fleet, state: &mut State, desk: usize, minute: i64) {
    state.is_made = true;
    if let Some(need) = state.allowed_need(&fleet.desks[desk], minute) {
        state.met[need].get_or_insert(minute);
    }
}

fn report(fleet: &Fleet, states: &[State]) -> Found {
    let mut found = Found::default();
    for (place, (desk, state)) in fleet.desks.iter().zip(states).enumerate() {
        for (need, (from, to)) in state.needs.iter().enumerate() {
            let (met, allowed) = (&state.met[need], &state.allowed[need]);
            let hosted = &state.hosted[need];
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
                // It has waited for its turn to begin.
                _ if hosted.is_some() && hosted == allowed => "LimitReached",
                Some(_) => "HostTaken",
                None => "NoHostFree",
            };
            found.broken.push((opens, place, reason, late));
        }
    }
    found.broken.sort_unstable();
    found
}
