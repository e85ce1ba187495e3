//! The signals by which a person or a system ends a command that runs until then.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Failure;

/// Interrupt (Ctrl-C) and terminate.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed = |error| Failure::new("waiting for signals", error);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// Waits for the first of them.
    pub(crate) async fn heard(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
