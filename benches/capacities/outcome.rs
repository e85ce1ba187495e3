//! What was measured, and the bounds.

use std::fmt;

use serde::Serialize;

/// The time from the edge within which everything must be written.
const MAX_EDGE_SECONDS: f64 = 60.0;
/// The most memory of the operator.
const MAX_MEMORY_MIB: u64 = 512;

/// What was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub(crate) capacities: usize,
    /// How many kinds the targets have.
    pub(crate) kinds: usize,
    /// From the edge until all are written.
    pub(crate) edge_seconds: f64,
    pub(crate) target_writes: usize,
    pub(crate) status_writes: usize,
    /// Requests since the edge that are neither; watches and those about Leases are not counted.
    pub(crate) other_requests: usize,
    pub(crate) idle_seconds: u64,
    /// Such requests afterwards.
    pub(crate) idle_requests: usize,
    /// The CPU time of the API server, from the edge until all are written.
    pub(crate) server_cpu_seconds: f64,
    /// The same of the operator.
    pub(crate) operator_cpu_seconds: f64,
    /// The peak of the operator.
    pub(crate) memory_mib: u64,
}

impl Outcome {
    pub(crate) fn is_within_bounds(&self) -> bool {
        self.edge_seconds <= MAX_EDGE_SECONDS
            && self.target_writes == self.capacities
            && self.status_writes == self.capacities
            && self.idle_requests == 0
            && self.memory_mib <= MAX_MEMORY_MIB
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |seconds: f64| format!("{seconds:.1} s");
        let rows = [
            (
                "from the edge until all are written",
                seconds(self.edge_seconds),
            ),
            (
                "CPU time of the API server",
                seconds(self.server_cpu_seconds),
            ),
            (
                "CPU time of the operator",
                seconds(self.operator_cpu_seconds),
            ),
            ("writes of targets", self.target_writes.to_string()),
            ("writes of the status", self.status_writes.to_string()),
            ("other requests", self.other_requests.to_string()),
            ("requests afterwards", self.idle_requests.to_string()),
            (
                "peak memory of the operator",
                format!("{} MiB", self.memory_mib),
            ),
        ];
        for (what, value) in rows {
            writeln!(formatter, "{what:<42} {value:>12}")?;
        }
        Ok(())
    }
}
