//! Reading request bodies with a common limit, so that slow clients do not block others.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::Notify;

/// How many bytes of bodies are held at a time; beyond that, one is evicted.
const MAX_BYTES: usize = 32 << 20;
/// How many bodies are held at a time; likewise.
const MAX_BODIES: usize = 512;
/// After how many bytes of one body others are read.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is larger than allowed.
    TooLarge,
    /// It was evicted for a later one.
    Evicted,
    /// It ended early.
    Broken,
}

/// Reads bodies, within common limits.
#[derive(Debug, Default)]
pub(crate) struct BodyReader(Mutex<Bodies>);

#[derive(Debug, Default)]
struct Bodies {
    next: u64,
    bytes: usize,
    /// In the order in which they began.
    held: BTreeMap<u64, HeldBody>,
}

#[derive(Debug)]
struct HeldBody {
    peer: IpAddr,
    bytes: usize,
    /// Whether it is being reviewed: its memory would not become free.
    is_pinned: bool,
    evicted: Arc<Notify>,
}

/// A body that is being read, or whose bytes still count.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    reader: &'a BodyReader,
    id: u64,
    evicted: Arc<Notify>,
}

impl BodyReader {
    /// Reads a body of at most `limit` bytes. The bytes count until the returned reservation is
    /// dropped.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub(crate) async fn read(
        &self,
        peer: IpAddr,
        body: impl Body<Data = Bytes>,
        limit: usize,
    ) -> Result<(Bytes, Reservation<'_>), BodyError> {
        let reservation = self.begin(peer);
        let reading = async {
            let mut body = std::pin::pin!(body);
            let mut bytes = BytesMut::new();
            let mut at_once = 0;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| BodyError::Broken)?;
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                if bytes.len() + data.len() > limit {
                    return Err(BodyError::TooLarge);
                }
                reservation.grow(data.len())?;
                bytes.extend_from_slice(&data);
                at_once += data.len();
                if at_once >= BYTES_AT_ONCE {
                    at_once = 0;
                    tokio::task::yield_now().await;
                }
            }
            Ok(bytes.freeze())
        };
        let bytes = tokio::select! {
            biased;
            () = reservation.evicted() => return Err(BodyError::Evicted),
            bytes = reading => bytes?,
        };
        Ok((bytes, reservation))
    }

    fn begin(&self, peer: IpAddr) -> Reservation<'_> {
        let mut bodies = self.bodies();
        if bodies.held.len() >= MAX_BODIES {
            bodies.evict(|_| 1);
        }
        let (id, evicted) = (bodies.next, Arc::new(Notify::new()));
        bodies.next += 1;
        let held = HeldBody {
            peer,
            bytes: 0,
            is_pinned: false,
            evicted: evicted.clone(),
        };
        bodies.held.insert(id, held);
        Reservation {
            reader: self,
            id,
            evicted,
        }
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies {
    /// Evicts one body of the address that holds most: its largest one, of equal ones the oldest.
    /// An address with little never loses it to another that has more. Returns `false` if none
    /// can be evicted.
    fn evict(&mut self, size: impl Fn(&HeldBody) -> usize) -> bool {
        let mut shares: HashMap<IpAddr, usize> = HashMap::new();
        for held in self.held.values() {
            *shares.entry(held.peer).or_default() += size(held);
        }
        let share = |held: &HeldBody| shares.get(&held.peer).copied().unwrap_or_default();
        let candidates = self.held.iter().filter(|(_, held)| !held.is_pinned);
        let largest = candidates
            .max_by_key(|(id, held)| (share(held), size(held), std::cmp::Reverse(**id)));
        let largest = largest.map(|(id, _)| *id);
        let Some(held) = largest.and_then(|id| self.held.remove(&id)) else {
            return false;
        };
        self.bytes -= held.bytes;
        held.evicted.notify_one();
        true
    }
}

impl Reservation<'_> {
    /// Waits until the body has been evicted.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Keeps the body from being evicted. Returns `false` if it already was.
    pub(crate) fn pin(&self) -> bool {
        match self.reader.bodies().held.get_mut(&self.id) {
            Some(held) => {
                held.is_pinned = true;
                true
            }
            None => false,
        }
    }

    /// Counts further bytes of this body, and evicts others if necessary.
    fn grow(&self, more: usize) -> Result<(), BodyError> {
        let mut bodies = self.reader.bodies();
        while bodies.bytes + more > MAX_BYTES && bodies.held.contains_key(&self.id) {
            if !bodies.evict(|held| held.bytes) {
                break;
            }
        }
        let held = bodies.held.get_mut(&self.id).ok_or(BodyError::Evicted)?;
        held.bytes += more;
        bodies.bytes += more;
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut bodies = self.reader.bodies();
        if let Some(held) = bodies.held.remove(&self.id) {
            bodies.bytes -= held.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test]
    async fn a_large_body_of_the_address_with_most_bytes_is_evicted_not_the_oldest() {
        let reader = BodyReader::default();
        let honest = reader.begin(address(1));
        honest.grow(5_000).unwrap();
        let hostile: Vec<_> = (0..8).map(|_| reader.begin(address(2))).collect();
        let grown: Vec<_> = hostile.iter().map(|it| it.grow(5 << 20)).collect();
        assert!(grown.iter().all(Result::is_ok));
        hostile[0].evicted().await;
        hostile[1].evicted().await;
        assert_eq!(reader.bodies().held.len(), 7);
        assert!(honest.pin());
        assert!(!hostile[0].pin() && hostile[2].pin());
    }

    #[test]
    fn a_body_that_is_reviewed_is_not_evicted() {
        let reader = BodyReader::default();
        let reviewed = reader.begin(address(1));
        reviewed.grow(MAX_BYTES).unwrap();
        assert!(reviewed.pin());
        let other = reader.begin(address(2));
        assert_eq!(other.grow(1), Err(BodyError::Evicted));
        assert!(reviewed.pin());
    }

    #[test]
    fn of_too_many_bodies_the_oldest_of_the_address_with_most_is_evicted() {
        let reader = BodyReader::default();
        let honest = reader.begin(address(1));
        let hostile: Vec<_> = (0..MAX_BODIES).map(|_| reader.begin(address(2))).collect();
        assert!(honest.pin());
        assert!(!hostile[0].pin() && hostile[1].pin());
    }
}
