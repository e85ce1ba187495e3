//! Limits how many connections there are at a time, and chooses which one ends for a new one.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long a connection is not closed for another one. Without it, clients that connect again as
/// soon as they are cut off could push out one whose request is on its way.
const MIN_LIFETIME: Duration = Duration::from_millis(200);

/// How long connections may last.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// How long a connection may have no request under way.
    pub idle: Duration,
    /// How long requests may be under way on a connection without one of them beginning or
    /// ending. `None` if responses last, as those of watches do; then a connection with a request
    /// is never closed for another one.
    pub request: Option<Duration>,
}

/// The slots for connections. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSlots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    lifetimes: Lifetimes,
    connections: Mutex<Connections>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    by_id: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    /// How many requests are under way.
    requests: usize,
    /// When the connection or the last of its requests began or ended.
    since: Instant,
    evicted: Arc<Notify>,
}

/// One connection's slot, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<Inner>,
    id: u64,
    evicted: Arc<Notify>,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Inner>, u64);

impl ConnectionSlots {
    pub(crate) fn new(limit: usize, lifetimes: Lifetimes) -> Self {
        Self(Arc::new(Inner {
            limit,
            lifetimes,
            connections: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    /// A slot for a connection of `peer`: a free one, or that of a connection which is closed
    /// for it. Waits while each connection has a request that may last, and at most for
    /// [`MIN_LIFETIME`] otherwise.
    pub(crate) async fn take(&self, peer: IpAddr) -> ConnectionSlot {
        loop {
            let freed = self.0.freed.notified();
            match self.try_take(peer) {
                Ok(slot) => return slot,
                Err(None) => freed.await,
                Err(Some(due)) => {
                    tokio::select! {
                        () = freed => {}
                        () = sleep_until(due) => {}
                    }
                }
            }
        }
    }

    /// A slot; or when to try again, if that is known.
    fn try_take(&self, peer: IpAddr) -> Result<ConnectionSlot, Option<Instant>> {
        let mut connections = self.0.connections();
        if connections.by_id.len() >= self.0.limit {
            let is_short = self.0.lifetimes.request.is_some();
            let (id, since) = connections.connection_to_evict(is_short).ok_or(None)?;
            let due = since + MIN_LIFETIME;
            if due > Instant::now() {
                return Err(Some(due));
            }
            if let Some(connection) = connections.by_id.remove(&id) {
                connection.evicted.notify_one();
            }
        }
        let (id, evicted) = (connections.next, Arc::new(Notify::new()));
        connections.next += 1;
        let connection = Connection {
            peer,
            requests: 0,
            since: Instant::now(),
            evicted: evicted.clone(),
        };
        connections.by_id.insert(id, connection);
        Ok(ConnectionSlot {
            slots: self.0.clone(),
            id,
            evicted,
        })
    }
}

impl Inner {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request has begun or ended.
    fn count(&self, id: u64, change: impl FnOnce(usize) -> usize) {
        if let Some(connection) = self.connections().by_id.get_mut(&id) {
            connection.requests = change(connection.requests);
            connection.since = Instant::now();
        }
    }
}

impl Connections {
    /// The connection that ends for a new one, and since when nothing has begun or ended on it: of
    /// the peer with the most, the one that has been idle for longest. If none of its connections
    /// is idle, any of them, if requests are `short`.
    fn connection_to_evict(&self, short: bool) -> Option<(u64, Instant)> {
        let may_end = |it: &&Connection| short || it.requests == 0;
        let mut shares: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.by_id.values().filter(may_end) {
            *shares.entry(connection.peer).or_default() += 1;
        }
        let of_peer = |it: &Connection| shares.get(&it.peer).copied().unwrap_or_default();
        let most = shares.values().copied().max()?;
        let candidates = self
            .by_id
            .iter()
            .filter(|(_, it)| may_end(it) && of_peer(it) == most);
        let first = candidates.min_by_key(|(id, it)| (it.requests > 0, it.since, **id));
        first.map(|(id, of)| (*id, of.since))
    }
}

impl ConnectionSlot {
    /// Records that a request has begun.
    pub(crate) fn begin(&self) -> ActiveRequest {
        self.slots.count(self.id, |requests| requests + 1);
        ActiveRequest(self.slots.clone(), self.id)
    }

    /// Waits until the slot has been given to another connection.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Waits until the connection has exceeded its lifetime.
    pub(crate) async fn overdue(&self) {
        while let Some(deadline) = self.deadline() {
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
        self.evicted().await;
    }

    /// When the connection will exceed its lifetime, as of now; or, if it never will, when to
    /// check again. `None` if the slot has been given to another connection.
    fn deadline(&self) -> Option<Instant> {
        let lifetimes = self.slots.lifetimes;
        let connections = self.slots.connections();
        let connection = connections.by_id.get(&self.id)?;
        Some(match (connection.requests, lifetimes.request) {
            (0, _) => connection.since + lifetimes.idle,
            (_, Some(request)) => connection.since + request,
            (_, None) => Instant::now() + lifetimes.idle,
        })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.connections().by_id.remove(&self.id);
        self.slots.freed.notify_waiters();
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.count(self.1, |requests| requests.saturating_sub(1));
        // A connection that has become idle may be closed for one that waits.
        self.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Lifetimes = Lifetimes {
        idle: Duration::from_mins(1),
        request: Some(Duration::from_secs(20)),
    };
    const LASTING: Lifetimes = Lifetimes {
        request: None,
        ..SHORT
    };

    fn peer(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn is_evicted(slots: &ConnectionSlots, slot: &ConnectionSlot) -> bool {
        !slots.0.connections().by_id.contains_key(&slot.id)
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_has_been_idle_for_longest_is_closed_for_a_new_one() {
        let slots = ConnectionSlots::new(2, SHORT);
        let (first, second) = (slots.take(peer(1)).await, slots.take(peer(1)).await);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(first.begin());
        let _third = slots.take(peer(1)).await;
        assert!(!is_evicted(&slots, &first));
        assert!(is_evicted(&slots, &second));
        second.evicted().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_has_a_moment_for_its_request_before_another_takes_its_place()
     {
        let slots = ConnectionSlots::new(1, SHORT);
        let first = slots.take(peer(1)).await;
        let mut next = Box::pin(slots.take(peer(1)));
        let early = tokio::time::timeout(MIN_LIFETIME / 2, &mut next).await;
        assert!(early.is_err() && !is_evicted(&slots, &first));
        let began = Instant::now();
        next.await;
        assert!(is_evicted(&slots, &first));
        assert!(began.elapsed() <= MIN_LIFETIME);
    }

    #[tokio::test(start_paused = true)]
    async fn the_peer_with_the_most_connections_loses_one() {
        let slots = ConnectionSlots::new(3, SHORT);
        let honest = slots.take(peer(1)).await;
        let (first, second) = (slots.take(peer(2)).await, slots.take(peer(2)).await);
        let _active = (first.begin(), second.begin());
        let _third = slots.take(peer(3)).await;
        assert!(is_evicted(&slots, &first));
        assert!(!is_evicted(&slots, &honest) && !is_evicted(&slots, &second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_may_last_is_never_cut_and_its_end_frees_the_place() {
        let slots = ConnectionSlots::new(1, LASTING);
        let watching = slots.take(peer(1)).await;
        let watch = watching.begin();
        let mut waiting = Box::pin(slots.take(peer(2)));
        let waited = tokio::time::timeout(Duration::from_hours(1), &mut waiting).await;
        assert!(waited.is_err());
        drop(watch);
        waiting.await;
        assert!(is_evicted(&slots, &watching));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_it_has_been_idle_for_too_long() {
        let slots = ConnectionSlots::new(1, LASTING);
        let slot = slots.take(peer(1)).await;
        let began = Instant::now();
        let watch = slot.begin();
        let lasted = tokio::time::timeout(Duration::from_hours(1), slot.overdue()).await;
        assert!(lasted.is_err(), "a watch is under way");
        drop(watch);
        slot.overdue().await;
        let lasted = began.elapsed();
        assert_eq!(lasted, Duration::from_hours(1) + SHORT.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_end_ends_its_connection() {
        let slots = ConnectionSlots::new(1, SHORT);
        let slot = slots.take(peer(1)).await;
        let _active = slot.begin();
        let began = Instant::now();
        slot.overdue().await;
        assert_eq!(Some(began.elapsed()), SHORT.request);
    }
}
