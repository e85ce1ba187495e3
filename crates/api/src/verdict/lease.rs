//! Whether an operator runs, from its Leases.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::name;

/// Whether an operator holds a fresh Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It does.
    Held,
    /// It does not: no schedule applies.
    NotHeld {
        /// Why, in one sentence.
        cause: String,
        /// When a Lease was last renewed.
        since: Option<Timestamp>,
    },
    /// The Leases cannot be read. An operator may hold one.
    NotReadable {
        /// The error of the API server.
        cause: String,
    },
}

impl Lease {
    /// Reads the Leases of a namespace: that of the leader, by name, and those of the shards, of which
    /// an operator that was not divided before, or is not any more, leaves one behind.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::verdict::Lease;
    /// let lease = serde_json::json!({
    ///     "metadata": {"name": "5spot-leader"},
    ///     "spec": {
    ///         "holderIdentity": "5spot-0", "leaseDurationSeconds": 15,
    ///         "renewTime": "2026-03-06T15:00:00.000000Z",
    ///     },
    /// });
    /// let at = |now: &str| Lease::of(&[lease.clone()], "5spot-leader", "5spot-system", now.parse().unwrap());
    /// assert_eq!(at("2026-03-06T15:00:10Z"), Lease::Held);
    /// let Lease::NotHeld { cause, .. } = at("2026-03-06T15:05:00Z") else { unreachable!() };
    /// assert_eq!(cause, "no operator runs: 5spot-0 renewed the Lease 5m ago");
    /// ```
    pub fn of(leases: &[Value], leader: &str, namespace: &str, now: Timestamp) -> Self {
        match LeaseHolder::freshest(leases, leader, now) {
            None => Self::NotHeld {
                cause: format!(
                    "no operator holds a Lease in namespace {namespace}: no schedule applies"
                ),
                since: None,
            },
            Some(lease) if lease.age > lease.duration => Self::NotHeld {
                cause: format!(
                    "no operator runs: {} renewed the Lease {} ago",
                    lease.holder,
                    short(lease.age)
                ),
                since: Some(lease.renewed),
            },
            Some(_) => Self::Held,
        }
    }
}

/// The holder of a Lease.
struct LeaseHolder {
    holder: String,
    renewed: Timestamp,
    age: SignedDuration,
    duration: SignedDuration,
}

impl LeaseHolder {
    /// The Lease of the leader or of a shard that was renewed last.
    fn freshest(leases: &[Value], leader: &str, now: Timestamp) -> Option<Self> {
        let is_operators = |it: &&Value| {
            let metadata = &it["metadata"];
            metadata["name"] == leader || !metadata["labels"][name::SHARD_LABEL].is_null()
        };
        let leases = leases.iter().filter(is_operators);
        leases
            .filter_map(|it| Self::read(it, now))
            .min_by_key(|it| it.age)
    }

    /// Reads a Lease. `None` if it has no holder.
    fn read(lease: &Value, now: Timestamp) -> Option<Self> {
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str();
        let holder = holder.filter(|it| !it.is_empty())?;
        let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
        let seconds = spec["leaseDurationSeconds"].as_i64()?;
        Some(Self {
            holder: holder.to_owned(),
            renewed,
            age: now.duration_since(renewed).max(SignedDuration::ZERO),
            duration: SignedDuration::from_secs(seconds),
        })
    }
}

fn short(age: SignedDuration) -> String {
    match age.as_secs() {
        seconds @ ..=120 => format!("{seconds}s"),
        seconds @ ..=7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}
