//! Reading request bodies with a common limit, so that slow clients do not block others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::Notify;

/// How many bytes of bodies are held at a time; beyond that, the oldest body is evicted.
const MAX_BYTES: usize = 32 << 20;
/// How many bodies are read at a time; likewise.
const MAX_BODIES: usize = 512;

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
    read: BTreeMap<u64, PendingBody>,
}

#[derive(Debug)]
struct PendingBody {
    bytes: usize,
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
        body: impl Body<Data = Bytes>,
        limit: usize,
    ) -> Result<(Bytes, Reservation<'_>), BodyError> {
        let reservation = self.begin();
        let reading = async {
            let mut body = std::pin::pin!(body);
            let mut bytes = BytesMut::new();
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
            }
            Ok(bytes.freeze())
        };
        let bytes = tokio::select! {
            biased;
            () = reservation.evicted.notified() => return Err(BodyError::Evicted),
            bytes = reading => bytes?,
        };
        Ok((bytes, reservation))
    }

    fn begin(&self) -> Reservation<'_> {
        let mut bodies = self.bodies();
        if bodies.read.len() >= MAX_BODIES {
            bodies.evict_oldest();
        }
        let (id, evicted) = (bodies.next, Arc::new(Notify::new()));
        bodies.next += 1;
        let reading = PendingBody {
            bytes: 0,
            evicted: evicted.clone(),
        };
        bodies.read.insert(id, reading);
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
    fn evict_oldest(&mut self) {
        if let Some((_, reading)) = self.read.pop_first() {
            self.bytes -= reading.bytes;
            reading.evicted.notify_one();
        }
    }
}

impl Reservation<'_> {
    /// Counts further bytes of this body, and evicts older bodies if necessary.
    fn grow(&self, more: usize) -> Result<(), BodyError> {
        let mut bodies = self.reader.bodies();
        while bodies.bytes + more > MAX_BYTES && bodies.read.contains_key(&self.id) {
            bodies.evict_oldest();
        }
        let reading = bodies.read.get_mut(&self.id).ok_or(BodyError::Evicted)?;
        reading.bytes += more;
        bodies.bytes += more;
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut bodies = self.reader.bodies();
        if let Some(reading) = bodies.read.remove(&self.id) {
            bodies.bytes -= reading.bytes;
        }
    }
}
