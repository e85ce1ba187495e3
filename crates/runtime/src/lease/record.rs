//! A coordination Lease as a value, and how long it binds.

use std::collections::BTreeMap;

use fivespot_clock::after;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// No Lease binds anybody longer than this after it was last seen to change, whatever it says.
const LONGEST: SignedDuration = SignedDuration::from_hours(1);

/// By how much the clocks of two instances, or one clock before and after a step, may differ.
pub const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// How long a Lease binds, and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    duration: SignedDuration,
    renew_deadline: SignedDuration,
    retry_period: SignedDuration,
}

/// Why terms cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The holder would write while another may already act.
    #[error("the duration must exceed the renew deadline by at least 5 seconds")]
    DurationTooShort,
    /// The holder would give up before it has tried again.
    #[error("the renew deadline must be longer than the retry period")]
    DeadlineTooShort,
    /// A retry period of zero is a busy loop.
    #[error("the retry period must be at least 1 second")]
    RetryTooShort,
    /// A failure would be noticed too late.
    #[error("the duration must be at most 1 hour")]
    DurationTooLong,
}

impl Terms {
    /// Others take over `duration` after they last saw a renewal; the holder stops writing
    /// `renew_deadline` after it last renewed, and renews every `retry_period`.
    ///
    /// # Errors
    /// Between the two there must be at least [`SKEW`], so that a clock that is off by as much
    /// makes no two instances act; and there must be time for more than one renewal.
    pub fn new(
        duration: SignedDuration,
        renew_deadline: SignedDuration,
        retry_period: SignedDuration,
    ) -> Result<Self, TermsError> {
        if duration > LONGEST {
            return Err(TermsError::DurationTooLong);
        }
        if duration < renew_deadline.saturating_add(SKEW) {
            return Err(TermsError::DurationTooShort);
        }
        if renew_deadline <= retry_period {
            return Err(TermsError::DeadlineTooShort);
        }
        if retry_period < SignedDuration::from_secs(1) {
            return Err(TermsError::RetryTooShort);
        }
        Ok(Self {
            duration,
            renew_deadline,
            retry_period,
        })
    }

    /// Until when a holder may write that asked for its last renewal at `asked`.
    pub fn fence(&self, asked: Timestamp) -> Timestamp {
        after(asked, self.renew_deadline)
    }

    /// When a holder renews that last tried at `tried`.
    pub fn next_try(&self, tried: Timestamp) -> Timestamp {
        after(tried, self.retry_period)
    }

    /// How long one request about a Lease may take: so long that it does not keep a renewal from
    /// being tried again in time.
    pub fn request_timeout(&self) -> SignedDuration {
        (self.renew_deadline / 2).max(self.retry_period)
    }

    /// How long others wait.
    pub fn duration(&self) -> SignedDuration {
        self.duration
    }
}

impl Default for Terms {
    /// 15 s, 10 s and 2 s, as Kubernetes' own components have it.
    fn default() -> Self {
        Self {
            duration: SignedDuration::from_secs(15),
            renew_deadline: SignedDuration::from_secs(10),
            retry_period: SignedDuration::from_secs(2),
        }
    }
}

/// Where a Lease is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The labels that it is written with.
    pub labels: BTreeMap<String, String>,
}

/// What a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty when it has been released.
    pub holder: String,
    /// How long it binds after a renewal; none where the Lease does not say.
    pub duration: Option<SignedDuration>,
    /// When the holder got it, by the holder's clock: to distinguish terms, never to reckon with.
    pub acquired: String,
    /// When the holder renewed it last, by the holder's clock, likewise.
    pub renewed: String,
    /// How often it has changed hands.
    pub transitions: i64,
}

/// A Lease as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it says.
    pub record: Record,
}

impl Stored {
    /// Reads a Lease. What it leaves out is empty.
    pub fn read(lease: &Value) -> Self {
        let meta = &lease["metadata"];
        let spec = &lease["spec"];
        let labels = BTreeMap::deserialize(&meta["labels"]).ok();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let seconds = spec["leaseDurationSeconds"].as_i64().unwrap_or_default();
        let duration = SignedDuration::from_secs(seconds).min(LONGEST);
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
    /// The Lease that says it.
    pub fn lease(&self, named: &LeaseName, version: Option<&str>) -> Value {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": named.name, "namespace": named.namespace},
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": self.duration.map_or(1, |span| span.as_secs()),
                "acquireTime": self.acquired,
                "renewTime": self.renewed,
                "leaseTransitions": self.transitions,
            },
        });
        // Guards a change; a new Lease has none.
        if let Some(version) = version {
            lease["metadata"]["resourceVersion"] = json!(version);
        }
        if !named.labels.is_empty() {
            lease["metadata"]["labels"] = json!(named.labels);
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
    fn terms_leave_room_for_skew_and_for_a_second_try() {
        let rows = [
            ((15, 10, 2), Ok(())),
            ((15, 11, 2), Err(TermsError::DurationTooShort)),
            ((15, 2, 2), Err(TermsError::DeadlineTooShort)),
            ((15, 10, 0), Err(TermsError::RetryTooShort)),
            ((3_601, 10, 2), Err(TermsError::DurationTooLong)),
            ((i64::MAX, i64::MAX, 2), Err(TermsError::DurationTooLong)),
        ];
        for ((duration, deadline, retry), expected) in rows {
            let terms = Terms::new(secs(duration), secs(deadline), secs(retry));
            assert_eq!(terms.map(|_| ()), expected, "{duration} {deadline} {retry}");
        }
    }

    #[test]
    fn a_lease_says_what_was_written_into_it() {
        let record = Record {
            holder: "pod-a".to_owned(),
            duration: Some(secs(15)),
            acquired: "2026-03-06T21:30:00.000000Z".to_owned(),
            renewed: "2026-03-06T21:30:02.000000Z".to_owned(),
            transitions: 3,
        };
        let named = LeaseName {
            namespace: "ns".to_owned(),
            name: "l".to_owned(),
            labels: BTreeMap::from([("x".to_owned(), "3".to_owned())]),
        };
        let stored = Stored::read(&record.lease(&named, Some("7")));
        assert_eq!(stored.labels, named.labels);
        assert_eq!(stored.record, record);
        assert_eq!((stored.name.as_str(), stored.version.as_str()), ("l", "7"));
    }

    #[test]
    fn a_lease_that_says_nothing_or_nonsense_binds_for_a_bounded_time() {
        let nothing = Stored::read(&json!({}));
        assert_eq!(nothing.record.duration, None);
        let spec = json!({"spec": {"leaseDurationSeconds": i64::MAX, "renewTime": 7}});
        let nonsense = Stored::read(&spec);
        assert_eq!(nonsense.record.duration, Some(LONGEST));
        assert_eq!(nonsense.record.renewed, "");
    }
}
