//! Acting without leader election, unless another replica holds the Lease.

use std::pin::pin;

use fivespot_clock::after;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::client::{Event, follow_leases};
use super::fence::Ownership;
use super::record::{Record, Terms};
use super::{Replica, Role};
use crate::watch::Selector;

/// Acts while no other replica renews the Lease, until `leave` is ready or dropped. If Leases
/// cannot be read, it acts after the duration of a Lease.
pub async fn act_unless_held(replica: Replica, mut leave: oneshot::Receiver<()>) {
    let selector = Selector::named(&replica.lease.name);
    let (watch, mut shown) = follow_leases(&replica, selector);
    let mut watch = pin!(watch);
    let clock = replica.fence.clock().clone();
    let mut others = Others::new(replica.lease.terms, clock.now());
    loop {
        publish(&replica, others.at(clock.now()));
        let alarm = async {
            match others.until(clock.now()) {
                Some(until) => clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = &mut leave => break,
            Some(news) = shown.recv() => {
                let now = clock.now();
                match news.event {
                    // The selector selects at most one.
                    Event::Listed(all) => {
                        others.shown(all.into_iter().next().map(|lease| lease.record), now);
                    }
                    Event::Changed(lease) => others.shown(Some(lease.record), now),
                    Event::Deleted(_) => others.shown(None, now),
                }
            }
            () = &mut watch => {}
            () = alarm => {}
        }
    }
    replica.fence.replace(Ownership::Nothing);
}

fn publish(replica: &Replica, found: Found<'_>) {
    let (ownership, role) = match found {
        Found::NoHolder => (Ownership::Everything, Role::Alone),
        Found::Unknown => (Ownership::Nothing, Role::Undecided),
        Found::Holder(holder) => (Ownership::Nothing, Role::Barred(holder.to_owned())),
    };
    let is_gain = replica.fence.replace(ownership);
    replica.observer.role(role);
    if is_gain {
        replica.observer.gained();
    }
}

/// What has been observed of other replicas.
struct Others {
    terms: Terms,
    lease: Shown,
    /// Since when the Lease has not changed.
    since: Timestamp,
}

/// What the watch shows of the Lease.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing yet.
    Nothing,
    /// It has no holder.
    Free,
    /// It has a holder.
    Held(Record),
}

/// Whether there is another replica.
#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    NoHolder,
    Unknown,
    /// This holder has the Lease, and may be running.
    Holder(&'a str),
}

impl Others {
    fn new(terms: Terms, now: Timestamp) -> Self {
        Self {
            terms,
            lease: Shown::Nothing,
            since: now,
        }
    }

    fn shown(&mut self, lease: Option<Record>, now: Timestamp) {
        let lease = lease.filter(|lease| !lease.holder.is_empty());
        let lease = lease.map_or(Shown::Free, Shown::Held);
        if self.lease != lease {
            (self.lease, self.since) = (lease, now);
        }
    }

    /// When it will be certain, without a further event, that no replica renews the Lease; `None`
    /// if it is certain at `now`.
    fn until(&self, now: Timestamp) -> Option<Timestamp> {
        let span = match &self.lease {
            Shown::Nothing => self.terms.duration(),
            Shown::Free => return None,
            Shown::Held(lease) => lease.duration.unwrap_or(self.terms.duration()),
        };
        Some(after(self.since, span)).filter(|until| *until > now)
    }

    fn at(&self, now: Timestamp) -> Found<'_> {
        match (&self.lease, self.until(now)) {
            (_, None) => Found::NoHolder,
            (Shown::Held(lease), Some(_)) => Found::Holder(&lease.holder),
            (Shown::Nothing | Shown::Free, Some(_)) => Found::Unknown,
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
        let mut others = Others::new(Terms::default(), at(0));
        assert_eq!(others.at(at(0)), Found::Unknown);
        others.shown(Some(renewed("1")), at(1));
        assert_eq!(others.at(at(15)), Found::Holder("pod-a"));
        others.shown(Some(renewed("2")), at(15));
        assert_eq!(others.at(at(29)), Found::Holder("pod-a"));
        others.shown(Some(renewed("2")), at(29));
        assert_eq!(others.until(at(29)), Some(at(30)));
        assert_eq!(others.at(at(30)), Found::NoHolder);
        others.shown(Some(renewed("3")), at(99));
        assert_eq!(others.at(at(99)), Found::Holder("pod-a"));
    }

    #[test]
    fn without_a_lease_or_without_a_holder_there_is_no_other_replica() {
        for lease in [None, Some(Record::default())] {
            let mut others = Others::new(Terms::default(), at(0));
            others.shown(lease, at(0));
            assert_eq!(others.at(at(0)), Found::NoHolder);
            assert_eq!(others.until(at(0)), None);
        }
    }

    #[test]
    fn if_leases_cannot_be_read_it_acts_after_the_duration_of_a_lease() {
        let others = Others::new(Terms::default(), at(0));
        assert_eq!(others.at(at(14)), Found::Unknown);
        assert_eq!(others.at(at(15)), Found::NoHolder);
    }
}
