//! What the answers about the machines of a class have in common: nobody is answered until all of them
//! have claimed something, and an answer for all holds for some time.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

/// How long after a start the machines of a class are awaited that have not claimed anything, such as
/// one that cannot be parsed.
pub(crate) const AWAITED: SignedDuration = SignedDuration::from_secs(30);

/// By how much a reconcile may be behind another one. After a longer step back of the clock the ruling
/// is made again.
const BEHIND: SignedDuration = SignedDuration::from_mins(1);

/// The machines that exist and have not claimed anything yet.
#[derive(Debug)]
pub(crate) struct Awaited<T> {
    missing: BTreeSet<T>,
    /// Until when nobody is answered because of them.
    until: Timestamp,
    /// Those that have asked meanwhile.
    asking: BTreeSet<T>,
}

impl<T: Ord> Awaited<T> {
    pub(crate) fn new(missing: impl IntoIterator<Item = T>, now: Timestamp) -> Self {
        Self {
            missing: missing.into_iter().collect(),
            until: after(now, AWAITED),
            asking: BTreeSet::new(),
        }
    }

    /// A machine has claimed something.
    pub(crate) fn claimed<Q: Ord + ?Sized>(&mut self, of: &Q)
    where
        T: Borrow<Q>,
    {
        self.missing.remove(of);
    }

    /// A machine is gone. Returns those that have asked, if it was the last one to be awaited.
    pub(crate) fn gone<Q: Ord + ?Sized>(&mut self, of: &Q) -> Option<BTreeSet<T>>
    where
        T: Borrow<Q>,
    {
        self.asking.remove(of);
        self.missing.remove(of);
        let is_last = self.missing.is_empty() && !self.asking.is_empty();
        is_last.then(|| std::mem::take(&mut self.asking))
    }

    /// A machine asks. Returns those that have asked before, which are to ask again.
    ///
    /// # Errors
    /// Others are awaited: when to ask again at the latest.
    pub(crate) fn ask(
        &mut self,
        of: T,
        now: Timestamp,
    ) -> Result<BTreeSet<T>, Timestamp> {
        if !self.missing.is_empty() && now < self.until {
            self.asking.insert(of);
            return Err(self.until);
        }
        self.missing.clear();
        Ok(std::mem::take(&mut self.asking))
    }
}

/// Whether a ruling holds that was made then, for a reconcile that has begun at `now`. Those that have
/// begun earlier may ask later.
pub(crate) fn holds(
    ruled_at: Option<Timestamp>,
    until: Timestamp,
    now: Timestamp,
) -> bool {
    let is_near = |at| after(now, BEHIND) >= at;
    ruled_at.is_some_and(is_near) && now < until
}
