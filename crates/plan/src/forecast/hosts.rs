//! The hosts of one class, given out in the order of the operator.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::opening::Needs;
use super::{BrokenBy, Findings, FleetMachine, ForecastSpan};

/// How many of the machines that have hosts a finding names.
const NAMED: usize = 3;

/// What happens at an instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The machine is not needed any more.
    Leaves,
    /// It is too late to create it.
    GivesUp,
    /// Its host is free, unless it is needed again.
    Left,
    /// It is needed for its opening at that place.
    Needed(usize),
}

/// A machine of the class. Their places are in the order in which hosts are given out.
struct Member<'f, 'm> {
    place: usize,
    needs: &'f Needs<'m>,
    /// The place of the only host that it takes.
    named: Option<usize>,
    /// The place of the host that it has.
    host: Option<usize>,
    /// The place of the opening that it is needed for.
    needed_for: Option<usize>,
    /// When its host is free, after it has left.
    free_at: i64,
    /// Why it waits.
    waits: Option<BrokenBy>,
}

struct Pool<'f, 'm> {
    names: Vec<&'m str>,
    members: Vec<Member<'f, 'm>>,
    free: BTreeSet<usize>,
    /// The member that has each host that is not free.
    holders: BTreeMap<usize, usize>,
    /// The members that wait for any host.
    waiting: BTreeSet<usize>,
    /// The members that wait for a host, by that host.
    waiting_for: BTreeMap<usize, BTreeSet<usize>>,
}

/// Gives the hosts of a class to those machines of the fleet that are its members.
pub(super) fn give_out<'f, 'm>(
    fleet: &[FleetMachine<'m>],
    needs: &'f [Needs<'m>],
    members: Vec<usize>,
    span: ForecastSpan,
    found: &mut Findings<'f, 'm>,
) {
    let since = span.since.as_second();
    let Some(mut pool) = Pool::of(fleet, needs, members) else {
        return;
    };
    let changes = pool.changes(since);
    for at_once in changes.chunk_by(|(one, ..), (other, ..)| one == other) {
        let at = at_once.first().map_or(since, |(at, ..)| *at);
        let mut candidates = BTreeSet::new();
        let mut arrived = Vec::new();
        for (_, change, member) in at_once.iter().copied() {
            match change {
                Change::Leaves => pool.leaves(member, at, found),
                Change::Left => candidates.extend(pool.left(member, at)),
                Change::GivesUp => pool.gives_up(member, found),
                Change::Needed(opening) => {
                    candidates.extend(pool.needed(member, opening, found));
                    arrived.push(member);
                }
            }
        }
        pool.give(candidates, at, found);
        for member in arrived {
            pool.note_why(member);
        }
    }
}

impl<'f, 'm> Pool<'f, 'm> {
    fn of(
        fleet: &[FleetMachine<'m>],
        needs: &'f [Needs<'m>],
        mut places: Vec<usize>,
    ) -> Option<Self> {
        let class = |place: usize| fleet.get(place)?.object.spec.class.as_ref();
        let hosts = places.iter().find_map(|place| class(*place)?.pool.as_ref());
        let names: Vec<&str> = hosts?.names().collect();
        places.sort_by_key(|place| {
            let machine = fleet.get(*place);
            machine.map(|it| {
                let name = it.object.metadata.name.as_deref();
                (Reverse(it.object.spec.priority), it.namespace, name)
            })
        });
        let host_place = |name: &str| names.binary_search(&name).ok();
        let members = places.into_iter().filter_map(|place| {
            Some(Member {
                place,
                needs: needs.get(place)?,
                named: class(place)?.host.as_deref().and_then(host_place),
                host: None,
                needed_for: None,
                free_at: i64::MIN,
                waits: None,
            })
        });
        let mut pool = Self {
            free: (0..names.len()).collect(),
            members: members.collect(),
            holders: BTreeMap::new(),
            waiting: BTreeSet::new(),
            waiting_for: BTreeMap::new(),
            names,
        };
        for (member, of) in pool.members.iter_mut().enumerate() {
            let names = &pool.names;
            let host = of.needs.host;
            let host = host.and_then(|host| names.binary_search(&host).ok());
            if let Some(host) = host.filter(|host| pool.free.remove(host)) {
                of.host = Some(host);
                pool.holders.insert(host, member);
            }
        }
        Some(pool)
    }

    /// All that happens, in order.
    fn changes(&self, since: i64) -> Vec<(i64, Change, usize)> {
        let mut changes = Vec::new();
        for (member, of) in self.members.iter().enumerate() {
            let leaves_within = of.needs.leaves_within;
            let first = of.needs.openings.first();
            if of.host.is_some() && first.is_none_or(|first| first.start > since) {
                let left = since.saturating_add(leaves_within);
                changes.push((left, Change::Left, member));
            }
            let openings = of.needs.openings.iter().enumerate();
            for (place, opening) in openings.filter(|(_, it)| !it.is_refused()) {
                changes.push((opening.start, Change::Needed(place), member));
                changes.push((opening.end, Change::Leaves, member));
                let left = opening.end.saturating_add(leaves_within);
                changes.push((left, Change::Left, member));
                let too_late = of.needs.too_late(opening);
                changes.push((too_late, Change::GivesUp, member));
            }
        }
        changes.sort_unstable();
        changes
    }

    /// The machine is needed. Returns it with its host, if that may be the only one that it takes
    /// and is free.
    fn needed(
        &mut self,
        member: usize,
        opening: usize,
        found: &mut Findings<'f, 'm>,
    ) -> Option<(usize, usize)> {
        let of = self.members.get_mut(member)?;
        of.needed_for = Some(opening);
        if of.host.is_some() {
            let opening = of.needs.openings.get(opening)?;
            found.created(of.place, opening, opening.start, None);
            return None;
        }
        match of.named {
            None => {
                self.waiting.insert(member);
                None
            }
            Some(host) => {
                self.waiting_for.entry(host).or_default().insert(member);
                self.free.contains(&host).then_some((member, host))
            }
        }
    }

    fn leaves(&mut self, member: usize, at: i64, found: &mut Findings<'f, 'm>) {
        self.gives_up(member, found);
        if let Some(of) = self.members.get_mut(member) {
            of.needed_for = None;
            of.free_at = at.saturating_add(of.needs.leaves_within);
        }
    }

    /// The machine waits no longer, if it does.
    fn gives_up(&mut self, member: usize, found: &mut Findings<'f, 'm>) {
        let Some(of) = self.members.get_mut(member) else {
            return;
        };
        let opening = of.needed_for.and_then(|at| of.needs.openings.get(at));
        if let (Some(cause), Some(opening)) = (of.waits.take(), opening) {
            found.broken(of.place, opening, None, cause);
        }
        self.stop_waiting(member);
    }

    fn stop_waiting(&mut self, member: usize) {
        self.waiting.remove(&member);
        let named = self.members.get(member).and_then(|of| of.named);
        if let Some(waiting) = named.and_then(|host| self.waiting_for.get_mut(&host)) {
            waiting.remove(&member);
        }
    }

    /// The host of the machine is free. Returns who waits for it alone.
    fn left(&mut self, member: usize, at: i64) -> Option<(usize, usize)> {
        let of = self.members.get_mut(member)?;
        let has_left = of.needed_for.is_none() && of.free_at <= at;
        let host = of.host.take_if(|_| has_left)?;
        self.holders.remove(&host);
        self.free.insert(host);
        let first = self.waiting_for.get(&host)?.first().copied()?;
        Some((first, host))
    }

    /// Gives free hosts to those that wait. `candidates` wait for one host alone, which is free.
    fn give(
        &mut self,
        mut candidates: BTreeSet<(usize, usize)>,
        at: i64,
        found: &mut Findings<'f, 'm>,
    ) {
        loop {
            let any = self.waiting.first().filter(|_| !self.free.is_empty());
            let (member, host) = match (candidates.first(), any) {
                (None, None) => return,
                (Some(named), Some(any)) if named.0 > *any => (*any, None),
                (Some(named), _) => (named.0, Some(named.1)),
                (None, Some(any)) => (*any, None),
            };
            let host = match host {
                None => self.free.pop_first(),
                Some(host) => {
                    candidates.pop_first();
                    self.free.remove(&host).then_some(host)
                }
            };
            let Some(host) = host else { continue };
            self.stop_waiting(member);
            self.holders.insert(host, member);
            let Some(of) = self.members.get_mut(member) else {
                return;
            };
            of.host = Some(host);
            let cause = of.waits.take();
            let opening = of.needed_for.and_then(|at| of.needs.openings.get(at));
            if let Some(opening) = opening {
                found.created(of.place, opening, at, cause);
            }
        }
    }

    /// Remembers why the machine waits, if it does.
    fn note_why(&mut self, member: usize) {
        let place = |member: &usize| Some(self.members.get(*member)?.place);
        let Some(of) = self.members.get(member) else {
            return;
        };
        if of.host.is_some() || of.needed_for.is_none() {
            return;
        }
        let cause = match of.named {
            None => Some(BrokenBy::NoHostFree {
                hosts: self.names.len(),
                holders: self
                    .holders
                    .values()
                    .take(NAMED)
                    .filter_map(place)
                    .collect(),
            }),
            Some(host) => self.names.get(host).and_then(|name| {
                Some(BrokenBy::HostTaken {
                    host: (*name).to_owned(),
                    holder: self.holders.get(&host).and_then(place)?,
                })
            }),
        };
        if let Some(of) = self.members.get_mut(member) {
            of.waits = cause;
        }
    }
}
