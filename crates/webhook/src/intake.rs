//! Bodies of questions that are being read: bounded together, so that nobody who is slow holds up
//! those who are not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::Notify;

/// How many bytes of bodies are held at a time; the body that began first is given up for more.
const MOST_BYTES: usize = 32 << 20;
/// How many bodies are read at a time; likewise.
const MOST_BODIES: usize = 512;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is larger than one may be.
    TooLarge,
    /// It was given up for those that came after it.
    Crowded,
    /// It ended before it was whole.
    Broken,
}

/// Where bodies are read.
#[derive(Debug, Default)]
pub(crate) struct Intake(Mutex<Bodies>);

#[derive(Debug, Default)]
struct Bodies {
    next: u64,
    bytes: usize,
    /// In the order in which they began.
    read: BTreeMap<u64, Reading>,
}

#[derive(Debug)]
struct Reading {
    bytes: usize,
    given_up: Arc<Notify>,
}

/// A body that is being read, or whose bytes are held still.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    intake: &'a Intake,
    id: u64,
    given_up: Arc<Notify>,
}

impl Intake {
    /// Reads a body of at most `limit` bytes. What is returned beside it counts its bytes until
    /// it is dropped.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(crate) async fn read(
        &self,
        body: impl Body<Data = Bytes>,
        limit: usize,
    ) -> Result<(Bytes, Held<'_>), Refusal> {
        let held = self.begin();
        let reading = async {
            let mut body = std::pin::pin!(body);
            let mut bytes = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| Refusal::Broken)?;
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                if bytes.len() + data.len() > limit {
                    return Err(Refusal::TooLarge);
                }
                held.grow(data.len())?;
                bytes.extend_from_slice(&data);
            }
            Ok(bytes.freeze())
        };
        let bytes = tokio::select! {
            biased;
            () = held.given_up.notified() => return Err(Refusal::Crowded),
            bytes = reading => bytes?,
        };
        Ok((bytes, held))
    }

    fn begin(&self) -> Held<'_> {
        let mut bodies = self.bodies();
        if bodies.read.len() >= MOST_BODIES {
            bodies.give_up_the_oldest();
        }
        let (id, given_up) = (bodies.next, Arc::new(Notify::new()));
        bodies.next += 1;
        let reading = Reading {
            bytes: 0,
            given_up: given_up.clone(),
        };
        bodies.read.insert(id, reading);
        Held {
            intake: self,
            id,
            given_up,
        }
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies {
    fn give_up_the_oldest(&mut self) {
        if let Some((_, reading)) = self.read.pop_first() {
            self.bytes -= reading.bytes;
            reading.given_up.notify_one();
        }
    }
}

impl Held<'_> {
    /// Counts further bytes of this body, for which older ones are given up if need be.
    fn grow(&self, more: usize) -> Result<(), Refusal> {
        let mut bodies = self.intake.bodies();
        while bodies.bytes + more > MOST_BYTES && bodies.read.contains_key(&self.id) {
            bodies.give_up_the_oldest();
        }
        let reading = bodies.read.get_mut(&self.id).ok_or(Refusal::Crowded)?;
        reading.bytes += more;
        bodies.bytes += more;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut bodies = self.intake.bodies();
        if let Some(reading) = bodies.read.remove(&self.id) {
            bodies.bytes -= reading.bytes;
        }
    }
}
