//! Limits how many connections there are at a time, and chooses which one ends for a new one.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

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

/// The places for connections. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    lifetimes: Lifetimes,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    /// How many requests are under way.
    requests: usize,
    /// When the connection or the last of its requests began or ended.
    since: Instant,
    cut: Arc<Notify>,
}

/// One connection's place, released on drop.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Inner>,
    id: u64,
    cut: Arc<Notify>,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Inner>, u64);

impl Places {
    pub(crate) fn new(most: usize, lifetimes: Lifetimes) -> Self {
        Self(Arc::new(Inner {
            most,
            lifetimes,
            held: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    /// A place for a connection of `peer`: a free one, or that of a connection which is closed
    /// for it. Waits only while each connection has a request that may last.
    pub(crate) async fn take(&self, peer: IpAddr) -> Place {
        loop {
            let freed = self.0.freed.notified();
            if let Some(place) = self.try_take(peer) {
                return place;
            }
            freed.await;
        }
    }

    fn try_take(&self, peer: IpAddr) -> Option<Place> {
        let mut held = self.0.held();
        if held.connections.len() >= self.0.most {
            let victim = held.victim(self.0.lifetimes.request.is_some())?;
            if let Some(connection) = held.connections.remove(&victim) {
                connection.cut.notify_one();
            }
        }
        let (id, cut) = (held.next, Arc::new(Notify::new()));
        held.next += 1;
        let connection = Connection {
            peer,
            requests: 0,
            since: Instant::now(),
            cut: cut.clone(),
        };
        held.connections.insert(id, connection);
        Some(Place {
            places: self.0.clone(),
            id,
            cut,
        })
    }
}

impl Inner {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request has begun or ended.
    fn count(&self, id: u64, change: impl FnOnce(usize) -> usize) {
        if let Some(connection) = self.held().connections.get_mut(&id) {
            connection.requests = change(connection.requests);
            connection.since = Instant::now();
        }
    }
}

impl Held {
    /// The connection that ends for a new one: of the peer with the most, the one that has been
    /// idle for longest. If none of its connections is idle, it is the one on which nothing has
    /// begun or ended for longest, if requests are `short`.
    fn victim(&self, short: bool) -> Option<u64> {
        let may_end = |it: &&Connection| short || it.requests == 0;
        let mut shares: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.connections.values().filter(may_end) {
            *shares.entry(connection.peer).or_default() += 1;
        }
        let of_peer = |it: &Connection| shares.get(&it.peer).copied().unwrap_or_default();
        let most = shares.values().copied().max()?;
        let candidates = self
            .connections
            .iter()
            .filter(|(_, it)| may_end(it) && of_peer(it) == most);
        let first = candidates.min_by_key(|(id, it)| (it.requests > 0, it.since, **id));
        first.map(|(id, _)| *id)
    }
}

impl Place {
    /// Records that a request has begun.
    pub(crate) fn begin(&self) -> UnderWay {
        self.places.count(self.id, |requests| requests + 1);
        UnderWay(self.places.clone(), self.id)
    }

    /// Waits until the place has been given to another connection.
    pub(crate) async fn cut(&self) {
        self.cut.notified().await;
    }

    /// Waits until the connection has exceeded its lifetime.
    pub(crate) async fn overdue(&self) {
        while let Some(deadline) = self.deadline() {
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
        self.cut().await;
    }

    /// When the connection will exceed its lifetime, as of now; or, if it never will, when to
    /// check again. `None` if the place has been given to another connection.
    fn deadline(&self) -> Option<Instant> {
        let lifetimes = self.places.lifetimes;
        let held = self.places.held();
        let connection = held.connections.get(&self.id)?;
        Some(match (connection.requests, lifetimes.request) {
            (0, _) => connection.since + lifetimes.idle,
            (_, Some(request)) => connection.since + request,
            (_, None) => Instant::now() + lifetimes.idle,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held().connections.remove(&self.id);
        self.places.freed.notify_waiters();
    }
}

impl Drop for UnderWay {
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

    fn is_cut(places: &Places, place: &Place) -> bool {
        !places.0.held().connections.contains_key(&place.id)
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_has_been_idle_for_longest_is_closed_for_a_new_one() {
        let places = Places::new(2, SHORT);
        let (first, second) = (places.take(peer(1)).await, places.take(peer(1)).await);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(first.begin());
        let _third = places.take(peer(1)).await;
        assert!(!is_cut(&places, &first));
        assert!(is_cut(&places, &second));
        second.cut().await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_peer_with_the_most_connections_loses_one() {
        let places = Places::new(3, SHORT);
        let honest = places.take(peer(1)).await;
        let (first, second) = (places.take(peer(2)).await, places.take(peer(2)).await);
        let _asking = (first.begin(), second.begin());
        let _third = places.take(peer(3)).await;
        assert!(is_cut(&places, &first));
        assert!(!is_cut(&places, &honest) && !is_cut(&places, &second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_may_last_is_never_cut_and_its_end_frees_the_place() {
        let places = Places::new(1, LASTING);
        let watching = places.take(peer(1)).await;
        let watch = watching.begin();
        let mut waiting = Box::pin(places.take(peer(2)));
        let waited = tokio::time::timeout(Duration::from_hours(1), &mut waiting).await;
        assert!(waited.is_err());
        drop(watch);
        waiting.await;
        assert!(is_cut(&places, &watching));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_it_has_been_idle_for_too_long() {
        let places = Places::new(1, LASTING);
        let place = places.take(peer(1)).await;
        let began = Instant::now();
        let watch = place.begin();
        let lasted = tokio::time::timeout(Duration::from_hours(1), place.overdue()).await;
        assert!(lasted.is_err(), "a watch is under way");
        drop(watch);
        place.overdue().await;
        let lasted = began.elapsed();
        assert_eq!(lasted, Duration::from_hours(1) + SHORT.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_end_ends_its_connection() {
        let places = Places::new(1, SHORT);
        let place = places.take(peer(1)).await;
        let _asking = place.begin();
        let began = Instant::now();
        place.overdue().await;
        assert_eq!(Some(began.elapsed()), SHORT.request);
    }
}
