//! An operator that crashes after a number of writes.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Cluster, CrashableOperator, ProxiedRequest, Proxy, RequestOutcome};

/// The last write is served, and its response is lost. Events do not count as writes, because nothing
/// depends on them.
struct CrashAfterWrites {
    limit: usize,
    writes: AtomicUsize,
}

impl Proxy for CrashAfterWrites {
    fn request<'a>(
        &'a self,
        request: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        let event = &request.event;
        let is_counted = event.is_write() && event.resource != "events";
        let is_last =
            is_counted && self.writes.fetch_add(1, Ordering::Relaxed) + 1 == self.limit;
        Box::pin(ready(if is_last {
            RequestOutcome::CrashAfter
        } else {
            RequestOutcome::Pass
        }))
    }
}

impl Cluster {
    /// Starts an operator that crashes after this many writes.
    pub fn operator_crashing_after(&self, limit: usize) -> CrashableOperator {
        let writes = AtomicUsize::new(0);
        self.operator_behind(Arc::new(CrashAfterWrites { limit, writes }), |_| {})
    }
}
