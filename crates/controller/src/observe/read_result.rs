//! What a live read returns, which several reconciles may share.

use fivespot_plan::Unknown;
use serde_json::Value;

/// The result of a live read.
#[derive(Clone, Debug)]
pub(crate) struct ReadResult {
    pub(super) found: Result<Option<Value>, ReadError>,
    /// How many lists the cache had begun before the read was sent.
    pub(super) lists_begun: u64,
}

/// Why a read failed.
#[derive(Clone, Debug)]
pub(super) struct ReadError {
    /// The HTTP status; `None` without a response.
    pub(super) code: Option<u16>,
    pub(super) unknown: Unknown,
}
