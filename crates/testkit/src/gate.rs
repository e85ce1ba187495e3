//! A connection to the server that can be shut.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Asked, Delivery, Fate, Opening, Proxy};

/// A connection to the server, which is open at first. While it is shut, no request reaches the
/// server, and a watch breaks at its next event. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Shuts it; no effect if it is shut.
    pub fn shut(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Opens it; no effect if it is open.
    pub fn open(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it is shut.
    pub fn is_shut(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Proxy for Gate {
    fn request<'a>(
        &'a self,
        _: &'a Asked,
    ) -> Pin<Box<dyn Future<Output = Fate> + Send + 'a>> {
        let is_shut = self.is_shut();
        Box::pin(ready(if is_shut { Fate::Reset } else { Fate::Pass }))
    }

    fn opening(&self, _: &Asked) -> Opening {
        if self.is_shut() {
            Opening::Refuse(503)
        } else {
            Opening::Pass
        }
    }

    fn event(&self, _: &Asked, _: &[u8]) -> Delivery {
        if self.is_shut() {
            Delivery::Break
        } else {
            Delivery::Pass
        }
    }
}
