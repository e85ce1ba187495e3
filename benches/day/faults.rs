//! Random faults between an operator and its API servers.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fivespot_testkit::{Delivery, ProxiedRequest, Proxy, RequestOutcome, WatchStart};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Injects faults into this many of a thousand requests and events. Leases are excluded.
#[derive(Debug)]
pub(crate) struct Faults {
    of_a_thousand: u32,
    dice: Mutex<Xoshiro256PlusPlus>,
    injected: AtomicU64,
}

impl Faults {
    pub(crate) fn new(of_a_thousand: u32) -> Self {
        Self {
            of_a_thousand,
            dice: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(1)),
            injected: AtomicU64::new(0),
        }
    }

    /// The number of faults injected so far.
    pub(crate) fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    /// One of this many kinds of faults. `None` if the request gets no fault.
    fn draw(&self, kinds: u32) -> Option<u32> {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let has_fault = dice.next_u32() % 1_000 < self.of_a_thousand;
        if has_fault {
            self.injected.fetch_add(1, Ordering::Relaxed);
        }
        has_fault.then(|| dice.next_u32() % kinds)
    }
}

impl Proxy for Faults {
    fn request<'a>(
        &'a self,
        request: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        let is_write = request.event.is_write();
        let outcome = match self.draw(if is_write { 6 } else { 5 }) {
            None => RequestOutcome::Pass,
            Some(0) => RequestOutcome::Refuse(429, Some(1)),
            Some(1) => RequestOutcome::Refuse(500, None),
            Some(2) => RequestOutcome::Refuse(503, None),
            Some(3) => RequestOutcome::Reset,
            Some(4) => RequestOutcome::Lose,
            Some(_) => RequestOutcome::Refuse(409, None),
        };
        Box::pin(std::future::ready(outcome))
    }

    fn watch_start(&self, _: &ProxiedRequest) -> WatchStart {
        match self.draw(2) {
            None => WatchStart::Pass,
            Some(0) => WatchStart::Refuse(410),
            Some(_) => WatchStart::Refuse(500),
        }
    }

    fn event(&self, _: &ProxiedRequest, _: &[u8]) -> Delivery {
        match self.draw(3) {
            None => Delivery::Pass,
            Some(0) => Delivery::End,
            Some(1) => Delivery::Break,
            Some(_) => Delivery::Twice,
        }
    }
}
