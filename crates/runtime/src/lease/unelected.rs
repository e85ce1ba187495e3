//! Acting without leader election, unless another replica holds the Lease.

use std::pin::pin;

use jiff::Timestamp;
use kubemu_clock::after;
use tokio::sync::oneshot;

use super::client::{Event, follow_leases};
use super::fence::Ownership;
use super::record::{LeaseTiming, Record};
use super::{Replica, Role};
use crate::watch::Selector;

/// Acts while no other replica renews the Lease, until `leave` is ready or dropped. If Leases
/// cannot be read, it acts after the duration of a Lease.
pub async fn run_unelected(replica: Replica, mut leave: oneshot::Receiver<()>) {
    let selector = Selector::named(&replica.lease.name);
    let (watch, mut events) = follow_leases(&replica, selector);
    let mut watch = pin!(watch);
    let clock = replica.fence.clock().clone();
    let mut others = OtherReplicas::new(replica.lease.timing, clock.now());
    loop {
        publish(&replica, others.holder_state(clock.now()));
        let alarm = async {
            match others.certain_at(clock.now()) {
                Some(until) => clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = &mut leave => break,
            Some(received) = events.recv() => {
                let now = clock.now();
                match received.event {
                    // The selector selects at most one.
                    Event::Listed(all) => {
                        others.observe(all.into_iter().next().map(|lease| lease.record), now);
                    }
                    Event::Changed(lease) => others.observe(Some(lease.record), now),
                    Event::Deleted(_) => others.observe(None, now),
                }
            }
            () = &mut watch => {}
            () = alarm => {}
        }
    }
    replica.fence.replace(Ownership::Nothing);
}

fn publish(replica: &Replica, holder: HolderState<'_>) {
    let (ownership, role) = match holder {
        HolderState::NoHolder => (Ownership::Everything, Role::Alone),
        HolderState::Unknown => (Ownership::Nothing, Role::Undecided),
        HolderState::Holder(holder) => {
            (Ownership::Nothing, Role::Barred(holder.to_owned()))
        }
    };
    let is_gain = replica.fence.replace(ownership);
    replica.observer.role(role);
    if is_gain {
        replica.observer.gained();
    }
}

/// What has been observed of other replicas.
struct OtherReplicas {
    timing: LeaseTiming,
    lease: LeaseState,
    /// Since when the Lease has not changed.
    since: Timestamp,
}

/// What the watch shows of the Lease.
#[derive(Debug, PartialEq, Eq)]
enum LeaseState {
    /// Nothing yet.
    Unobserved,
    /// It has no holder.
    NotHeld,
    /// It has a holder.
    Held(Record),
}

/// Whether there is another replica.
#[derive(Debug, PartialEq, Eq)]
enum HolderState<'a> {
    NoHolder,
    Unknown,
    /// This holder has the Lease, and may be running.
    Holder(&'a str),
}

impl OtherReplicas {
    fn new(timing: LeaseTiming, now: Timestamp) -> Self {
        Self {
            timing,
            lease: LeaseState::Unobserved,
            since: now,
        }
    }

    fn observe(&mut self, lease: Option<Record>, now: Timestamp) {
        let lease = lease.filter(|lease| !lease.holder.is_empty());
        let lease = lease.map_or(LeaseState::NotHeld, LeaseState::Held);
        if self.lease != lease {
            (self.lease, self.since) = (lease, now);
        }
    }

    /// When it will be certain, without a further event, that no replica renews the Lease; `None`
    /// if it is certain at `now`.
    fn certain_at(&self, now: Timestamp) -> Option<Timestamp> {
        let span = match &self.lease {
            LeaseState::Unobserved => self.timing.duration(),
            LeaseState::NotHeld => return None,
            LeaseState::Held(lease) => lease.duration.unwrap_or(self.timing.duration()),
        };
        Some(after(self.since, span)).filter(|until| *until > now)
    }

    fn holder_state(&self, now: Timestamp) -> HolderState<'_> {
        match (&self.lease, self.certain_at(now)) {
            (_, None) => HolderState::NoHolder,
            (LeaseState::Held(lease), Some(_)) => HolderState::Holder(&lease.holder),
            (LeaseState::Unobserved | LeaseState::NotHeld, Some(_)) => {
                HolderState::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn renewed(time: &str) -> Record {
        Record {
            holder: "pod-a".to_owned(),
            duration: Some(SignedDuration::from_secs(15)),
            renewed: time.to_owned(),
            ..Record::default()
        }
    }

    #[test]
    fn a_lease_bars_while_it_is_renewed_and_for_its_duration_afterwards() {
        let mut others = OtherReplicas::new(LeaseTiming::default(), at(0));
        assert_eq!(others.holder_state(at(0)), HolderState::Unknown);
        others.observe(Some(renewed("1")), at(1));
        assert_eq!(others.holder_state(at(15)), HolderState::Holder("pod-a"));
        others.observe(Some(renewed("2")), at(15));
        assert_eq!(others.holder_state(at(29)), HolderState::Holder("pod-a"));
        others.observe(Some(renewed("2")), at(29));
        assert_eq!(others.certain_at(at(29)), Some(at(30)));
        assert_eq!(others.holder_state(at(30)), HolderState::NoHolder);
        others.observe(Some(renewed("3")), at(99));
        assert_eq!(others.holder_state(at(99)), HolderState::Holder("pod-a"));
    }

    #[test]
    fn without_a_lease_or_without_a_holder_there_is_no_other_replica() {
        for lease in [None, Some(Record::default())] {
            let mut others = OtherReplicas::new(LeaseTiming::default(), at(0));
            others.observe(lease, at(0));
            assert_eq!(others.holder_state(at(0)), HolderState::NoHolder);
            assert_eq!(others.certain_at(at(0)), None);
        }
    }

    #[test]
    fn if_leases_cannot_be_read_it_acts_after_the_duration_of_a_lease() {
        let others = OtherReplicas::new(LeaseTiming::default(), at(0));
        assert_eq!(others.holder_state(at(14)), HolderState::Unknown);
        assert_eq!(others.holder_state(at(15)), HolderState::NoHolder);
    }
}
