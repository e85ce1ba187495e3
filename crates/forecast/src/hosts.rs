//! The machines of one class, which get their hosts and begin in the order of the operator.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::opening::Needs;
use crate::starts::Starts;
use crate::{BrokenBy, Findings, FleetMachine, ForecastSpan};

/// How many of the machines that have hosts a finding names.
const NAMED: usize = 3;

/// What happens at an instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The machine is not needed any more.
    Leaves,
    /// It is too late to create it.
    GivesUp,
    /// It is needed for its opening at that place.
    Needed(usize),
    /// Its host is free, unless it is needed again.
    Left,
}

/// A machine of the class. Their places are in the order in which hosts are given out.
struct Member<'f, 'm> {
    place: usize,
    needs: &'f Needs<'m>,
    /// The place of the only host that it takes.
    named: Option<usize>,
    /// The place of the host that it has.
    host: Option<usize>,
    /// Whether its Machine exists.
    is_made: bool,
    /// The place of the opening that it is needed for.
    needed_for: Option<usize>,
    /// When its host is free, after it has left.
    free_at: i64,
    /// Why it waits.
    waits: Option<BrokenBy>,
}

struct Pool<'f, 'm> {
    /// The names of the hosts; `None` if the class has no hosts, and its machines need none.
    names: Option<Vec<&'m str>>,
    starts: Starts<'m>,
    members: Vec<Member<'f, 'm>>,
    free: BTreeSet<usize>,
    /// The member that has each host that is not free.
    holders: BTreeMap<usize, usize>,
    /// The members that wait for any host.
    waiting: BTreeSet<usize>,
    /// The members that wait for a host, by that host.
    waiting_for: BTreeMap<usize, BTreeSet<usize>>,
}

/// Goes through what happens to those machines of the fleet that are of a class, its `members`.
pub(super) fn give_out<'f, 'm>(
    fleet: &[FleetMachine<'m>],
    needs: &'f [Needs<'m>],
    members: Vec<usize>,
    span: ForecastSpan,
    found: &mut Findings<'f, 'm>,
) {
    let since = span.since.as_second();
    let mut pool = Pool::of(fleet, needs, members, since);
    let changes = pool.changes(since);
    let mut rest = changes.as_slice();
    loop {
        let next = rest.first().map(|(at, ..)| *at);
        let turn = pool.starts.next_turn();
        let Some(at) = next.into_iter().chain(turn).min() else {
            return;
        };
        let now = rest.partition_point(|(due, ..)| *due <= at);
        let (happens, later) = rest.split_at(now);
        rest = later;
        let mut candidates = BTreeSet::new();
        let mut arrived = Vec::new();
        for (_, change, member) in happens.iter().copied() {
            match change {
                Change::Leaves => candidates.extend(pool.leaves(member, at, found)),
                Change::Left => candidates.extend(pool.left(member, at)),
                Change::GivesUp => candidates.extend(pool.gives_up(member, found)),
                Change::Needed(opening) => {
                    candidates.extend(pool.needed(member, opening, found));
                    arrived.push(member);
                }
            }
        }
        pool.give(candidates);
        pool.begin(at, found);
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
        since: i64,
    ) -> Self {
        let class = |place: usize| fleet.get(place)?.object.spec.class.as_ref();
        let hosts = places.iter().find_map(|place| class(*place)?.pool.as_ref());
        let names: Option<Vec<&str>> = hosts.map(|hosts| hosts.names().collect());
        places.sort_by_key(|place| {
            let machine = fleet.get(*place);
            machine.map(|it| {
                let name = it.object.metadata.name.as_deref();
                (Reverse(it.object.spec.priority), it.namespace, name)
            })
        });
        let host_place = |name: &str| names.as_ref()?.binary_search(&name).ok();
        let most = places.iter().find_map(|place| class(*place)?.rates.starts);
        let mut starts = Starts::at_most(most);
        let mut free: BTreeSet<usize> = (0..names.as_ref().map_or(0, Vec::len)).collect();
        let mut holders = BTreeMap::new();
        let mut members = Vec::new();
        for place in places {
            let (Some(machine), Some(needs)) = (fleet.get(place), needs.get(place))
            else {
                continue;
            };
            let member = members.len();
            let host = needs.host.and_then(host_place);
            let host = host.filter(|host| free.remove(host));
            holders.extend(host.map(|host| (host, member)));
            starts.add(machine.namespace, needs.started.filter(|at| *at <= since));
            members.push(Member {
                place,
                needs,
                named: class(place).and_then(|it| host_place(it.host.as_deref()?)),
                host,
                is_made: host.is_some() || names.is_none() && needs.exists,
                needed_for: None,
                free_at: i64::MIN,
                waits: None,
            });
        }
        starts.forget(since);
        Self {
            names,
            starts,
            members,
            free,
            holders,
            waiting: BTreeSet::new(),
            waiting_for: BTreeMap::new(),
        }
    }

    /// All that happens, in order.
    fn changes(&self, since: i64) -> Vec<(i64, Change, usize)> {
        let mut changes = Vec::new();
        for (member, of) in self.members.iter().enumerate() {
            let leaves_within = of.needs.leaves_within;
            let first = of.needs.openings.first();
            if of.is_made && first.is_none_or(|first| first.start > since) {
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
        if of.is_made {
            let opening = of.needs.openings.get(opening)?;
            found.created(of.place, opening, opening.start, None);
            return None;
        }
        if self.names.is_none() {
            self.starts.join(member);
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

    /// The machine is not needed any more. Returns as [`free`](Self::free).
    fn leaves(
        &mut self,
        member: usize,
        at: i64,
        found: &mut Findings<'f, 'm>,
    ) -> Option<(usize, usize)> {
        let freed = self.gives_up(member, found);
        if let Some(of) = self.members.get_mut(member) {
            of.needed_for = None;
            of.free_at = at.saturating_add(of.needs.leaves_within);
        }
        freed
    }

    /// The machine waits no longer, if it does. Returns as [`free`](Self::free).
    fn gives_up(
        &mut self,
        member: usize,
        found: &mut Findings<'f, 'm>,
    ) -> Option<(usize, usize)> {
        let of = self.members.get_mut(member)?;
        let opening = of.needed_for.and_then(|at| of.needs.openings.get(at));
        if let (Some(cause), Some(opening)) = (of.waits.take(), opening) {
            found.broken(of.place, opening, None, cause);
        }
        let is_made = of.is_made;
        self.stop_waiting(member);
        self.starts.leave(member);
        if is_made { None } else { self.free(member) }
    }

    fn stop_waiting(&mut self, member: usize) {
        self.waiting.remove(&member);
        let named = self.members.get(member).and_then(|of| of.named);
        if let Some(waiting) = named.and_then(|host| self.waiting_for.get_mut(&host)) {
            waiting.remove(&member);
        }
    }

    /// What there was of the machine is gone, unless it is needed again. Returns as
    /// [`free`](Self::free).
    fn left(&mut self, member: usize, at: i64) -> Option<(usize, usize)> {
        let of = self.members.get_mut(member)?;
        if of.needed_for.is_some() || of.free_at > at {
            return None;
        }
        of.is_made = false;
        self.free(member)
    }

    /// The host of the machine is free, if it has one. Returns who is the first to wait for it alone.
    fn free(&mut self, member: usize) -> Option<(usize, usize)> {
        let host = self.members.get_mut(member)?.host.take()?;
        self.holders.remove(&host);
        self.free.insert(host);
        let first = self.waiting_for.get(&host)?.first().copied()?;
        Some((first, host))
    }

    /// Gives free hosts to those that wait. `candidates` wait for one host alone, which is free.
    fn give(&mut self, mut candidates: BTreeSet<(usize, usize)>) {
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
            if let Some(of) = self.members.get_mut(member) {
                of.host = Some(host);
            }
            self.starts.join(member);
        }
    }

    /// Those that have all that they need begin, as far as the class lets them.
    fn begin(&mut self, at: i64, found: &mut Findings<'f, 'm>) {
        for member in self.starts.begin(at) {
            let Some(of) = self.members.get_mut(member) else {
                continue;
            };
            of.is_made = true;
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
        if of.is_made || of.needed_for.is_none() {
            return;
        }
        let cause = match (&self.names, of.host, of.named) {
            (None, ..) | (_, Some(_), _) => self
                .starts
                .most()
                .map(|most| BrokenBy::StartsReached { most }),
            (Some(names), None, None) => Some(BrokenBy::NoHostFree {
                hosts: names.len(),
                holders: self
                    .holders
                    .values()
                    .take(NAMED)
                    .filter_map(place)
                    .collect(),
            }),
            (Some(names), None, Some(host)) => names.get(host).and_then(|name| {
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
