//! Acting without an election, unless somebody else holds the Lease.

use std::pin::pin;

use fivespot_clock::after;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::client::{Event, follow_leases};
use super::fence::Ownership;
use super::record::{Record, Terms};
use super::{Instance, Role};
use crate::watch::Selector;

/// Acts whenever nobody renews the Lease, until `leave` is ready or dropped. Where Leases cannot be
/// read, it acts after a while.
pub async fn act_unless_held(instance: Instance, mut leave: oneshot::Receiver<()>) {
    let selector = Selector::named(&instance.lease.name);
    let (watch, mut shown) = follow_leases(&instance, selector);
    let mut watch = pin!(watch);
    let clock = instance.fence.clock().clone();
    let mut others = Others::new(instance.lease.terms, clock.now());
    loop {
        publish(&instance, others.at(clock.now()));
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
                    // The selector leaves one at most.
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
    instance.fence.replace(Ownership::Nothing);
}

fn publish(instance: &Instance, found: Found<'_>) {
    let (ownership, role) = match found {
        Found::Nobody => (Ownership::Everything, Role::Alone),
        Found::NotKnown => (Ownership::Nothing, Role::Undecided),
        Found::Holder(holder) => (Ownership::Nothing, Role::Barred(holder.to_owned())),
    };
    let is_gain = instance.fence.replace(ownership);
    instance.observer.role(role);
    if is_gain {
        instance.observer.gained();
    }
}

/// What is known of other instances.
struct Others {
    terms: Terms,
    lease: Shown,
    /// Since when the Lease has been like that.
    since: Timestamp,
}

/// What the watch shows of the Lease.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing yet.
    Nothing,
    /// That nobody holds it.
    Free,
    /// That somebody does.
    Held(Record),
}

/// Whether there is another instance.
#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    Nobody,
    NotKnown,
    /// That one holds the Lease, and may be alive.
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

    /// When it is known, whatever happens, that nobody renews the Lease.
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
            (_, None) => Found::Nobody,
            (Shown::Held(lease), Some(_)) => Found::Holder(&lease.holder),
            (Shown::Nothing | Shown::Free, Some(_)) => Found::NotKnown,
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
    fn a_lease_that_is_renewed_bars_and_one_that_is_not_does_so_for_its_duration() {
        let mut others = Others::new(Terms::default(), at(0));
        assert_eq!(others.at(at(0)), Found::NotKnown);
        others.shown(Some(renewed("1")), at(1));
        assert_eq!(others.at(at(15)), Found::Holder("pod-a"));
        others.shown(Some(renewed("2")), at(15));
        assert_eq!(others.at(at(29)), Found::Holder("pod-a"));
        others.shown(Some(renewed("2")), at(29));
        assert_eq!(others.until(at(29)), Some(at(30)));
        assert_eq!(others.at(at(30)), Found::Nobody);
        others.shown(Some(renewed("3")), at(99));
        assert_eq!(others.at(at(99)), Found::Holder("pod-a"));
    }

    #[test]
    fn without_a_lease_or_with_one_that_nobody_holds_there_is_no_other() {
        for lease in [None, Some(Record::default())] {
            let mut others = Others::new(Terms::default(), at(0));
            others.shown(lease, at(0));
            assert_eq!(others.at(at(0)), Found::Nobody);
            assert_eq!(others.until(at(0)), None);
        }
    }

    #[test]
    fn where_leases_cannot_be_read_it_acts_after_a_while() {
        let others = Others::new(Terms::default(), at(0));
        assert_eq!(others.at(at(14)), Found::NotKnown);
        assert_eq!(others.at(at(15)), Found::Nobody);
    }
}
