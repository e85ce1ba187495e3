//! A coordination Lease as a value, and its timing.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;
use serde::Deserialize as _;
use serde_json::{Value, json};

/// A Lease is valid for at most this long after its last observed change, whatever its duration.
const MAX_DURATION: SignedDuration = SignedDuration::from_hours(1);

/// By how much the clocks of two replicas, or one clock before and after a step, may differ.
pub const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// How long a Lease is valid, and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    duration: SignedDuration,
    renew_deadline: SignedDuration,
    retry_period: SignedDuration,
}

/// Why a timing is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimingError {
    /// The holder would write while another replica may already act.
    #[error("the duration must exceed the renew deadline by at least 5 seconds")]
    DurationTooShort,
    /// The holder would give up before its second attempt.
    #[error("the renew deadline must be longer than the retry period")]
    DeadlineTooShort,
    /// A retry period of zero is a busy loop.
    #[error("the retry period must be at least 1 second")]
    RetryTooShort,
    /// A failure would be noticed too late.
    #[error("the duration must be at most 1 hour")]
    DurationTooLong,
}

impl LeaseTiming {
    /// Other replicas take over `duration` after they last observed a renewal. The holder stops
    /// writing `renew_deadline` after its last renewal, and renews every `retry_period`.
    ///
    /// # Errors
    /// `duration` must exceed `renew_deadline` by at least [`SKEW`], so that a clock that is off
    /// by as much does not let two replicas act. There must be time for more than one renewal.
    pub fn new(
        duration: SignedDuration,
        renew_deadline: SignedDuration,
        retry_period: SignedDuration,
    ) -> Result<Self, LeaseTimingError> {
        if duration > MAX_DURATION {
            return Err(LeaseTimingError::DurationTooLong);
        }
        if duration < renew_deadline.saturating_add(SKEW) {
            return Err(LeaseTimingError::DurationTooShort);
        }
        if renew_deadline <= retry_period {
            return Err(LeaseTimingError::DeadlineTooShort);
        }
        if retry_period < SignedDuration::from_secs(1) {
            return Err(LeaseTimingError::RetryTooShort);
        }
        Ok(Self {
            duration,
            renew_deadline,
            retry_period,
        })
    }

    /// Until when a holder may write, if it sent its last renewal at `sent`.
    pub fn fence(&self, sent: Timestamp) -> Timestamp {
        after(sent, self.renew_deadline)
    }

    /// When a holder renews, if it last tried at `last_try`.
    pub fn next_try(&self, last_try: Timestamp) -> Timestamp {
        after(last_try, self.retry_period)
    }

    /// The timeout of one request for a Lease. It leaves time to retry a renewal.
    pub fn request_timeout(&self) -> SignedDuration {
        (self.renew_deadline / 2).max(self.retry_period)
    }

    /// How long other replicas wait.
    pub fn duration(&self) -> SignedDuration {
        self.duration
    }
}

impl Default for LeaseTiming {
    /// 15 s, 10 s and 2 s, as in Kubernetes' own components.
    fn default() -> Self {
        Self {
            duration: SignedDuration::from_secs(15),
            renew_deadline: SignedDuration::from_secs(10),
            retry_period: SignedDuration::from_secs(2),
        }
    }
}

/// The name of a Lease, and its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The labels that it is written with.
    pub labels: BTreeMap<String, String>,
}

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The holder; empty if it has been released.
    pub holder: String,
    /// How long it is valid after a renewal; `None` if the Lease has no duration.
    pub duration: Option<SignedDuration>,
    /// When the holder acquired it, by the holder's clock: only to distinguish terms, never to
    /// compute.
    pub acquired: String,
    /// When the holder last renewed it, by the holder's clock, likewise.
    pub renewed: String,
    /// How often its holder has changed.
    pub transitions: i64,
}

/// A Lease as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredLease {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its content.
    pub record: Record,
}

impl StoredLease {
    /// Reads a Lease. Missing fields are empty.
    pub fn read(lease: &Value) -> Self {
        let meta = &lease["metadata"];
        let spec = &lease["spec"];
        let labels = BTreeMap::deserialize(&meta["labels"]).ok();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let seconds = spec["leaseDurationSeconds"].as_i64().unwrap_or_default();
        let duration = SignedDuration::from_secs(seconds).min(MAX_DURATION);
        Self {
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            version: text(&meta["resourceVersion"]),
            labels: labels.unwrap_or_default(),
            record: Record {
                holder: text(&spec["holderIdentity"]),
                duration: Some(duration).filter(SignedDuration::is_positive),
                acquired: text(&spec["acquireTime"]),
                renewed: text(&spec["renewTime"]),
                transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
            },
        }
    }
}

impl Record {
    /// The Lease with this content.
    pub fn lease(&self, lease_name: &LeaseName, version: Option<&str>) -> Value {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": lease_name.name, "namespace": lease_name.namespace},
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": self.duration.map_or(1, |span| span.as_secs()),
                "acquireTime": self.acquired,
                "renewTime": self.renewed,
                "leaseTransitions": self.transitions,
            },
        });
        // Guards an update; a new Lease has no version.
        if let Some(version) = version {
            lease["metadata"]["resourceVersion"] = json!(version);
        }
        if !lease_name.labels.is_empty() {
            lease["metadata"]["labels"] = json!(lease_name.labels);
        }
        lease
    }
}

/// An instant as a Lease's MicroTime.
pub fn micro_time(now: Timestamp) -> String {
    format!("{now:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn terms_leave_time_for_skew_and_for_a_second_attempt() {
        let rows = [
            ((15, 10, 2), Ok(())),
            ((15, 11, 2), Err(LeaseTimingError::DurationTooShort)),
            ((15, 2, 2), Err(LeaseTimingError::DeadlineTooShort)),
            ((15, 10, 0), Err(LeaseTimingError::RetryTooShort)),
            ((3_601, 10, 2), Err(LeaseTimingError::DurationTooLong)),
            (
                (i64::MAX, i64::MAX, 2),
                Err(LeaseTimingError::DurationTooLong),
            ),
        ];
        for ((duration, deadline, retry), expected) in rows {
            let timing = LeaseTiming::new(secs(duration), secs(deadline), secs(retry));
            assert_eq!(
                timing.map(|_| ()),
                expected,
                "{duration} {deadline} {retry}"
            );
        }
    }

    #[test]
    fn a_lease_contains_the_record_that_was_written() {
        let record = Record {
            holder: "pod-a".to_owned(),
            duration: Some(secs(15)),
            acquired: "2026-03-06T21:30:00.000000Z".to_owned(),
            renewed: "2026-03-06T21:30:02.000000Z".to_owned(),
            transitions: 3,
        };
        let lease_name = LeaseName {
            namespace: "ns".to_owned(),
            name: "l".to_owned(),
            labels: BTreeMap::from([("x".to_owned(), "3".to_owned())]),
        };
        let stored = StoredLease::read(&record.lease(&lease_name, Some("7")));
        assert_eq!(stored.labels, lease_name.labels);
        assert_eq!(stored.record, record);
        assert_eq!((stored.name.as_str(), stored.version.as_str()), ("l", "7"));
    }

    #[test]
    fn an_empty_or_invalid_lease_is_valid_for_a_bounded_time() {
        let nothing = StoredLease::read(&json!({}));
        assert_eq!(nothing.record.duration, None);
        let spec = json!({"spec": {"leaseDurationSeconds": i64::MAX, "renewTime": 7}});
        let nonsense = StoredLease::read(&spec);
        assert_eq!(nonsense.record.duration, Some(MAX_DURATION));
        assert_eq!(nonsense.record.renewed, "");
    }
}
