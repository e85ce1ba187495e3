//! Which authorities and which certificate there should be at an instant. Pure but for the
//! randomness of new keys.
//!
//! An authority is replaced long before it ends, and the next one is trusted before it signs:
//!
//! ```text
//! first authority  ├── signs ─────────────────────────────────┤ trusted ┤ gone
//! second authority                     ├ trusted ┤ signs ──────────────────────
//!                                      made      seen in the webhook configuration,
//!                                                and OVERLAP later
//! ```
//!
//! so that an API server that still knows only the first and one that knows both accept what is
//! served at any time. Every step leads forward: two instances that both take it, or whose
//! clocks differ, never undo each other's.

use fivespot_clock::after;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::authority::{self, Pair};

/// How long an authority is in the webhook configuration before it signs, and how long one stays
/// there after it has signed what is served.
pub const OVERLAP: SignedDuration = SignedDuration::from_hours(1);
/// How long before its end an authority gets a successor.
pub const AUTHORITY_MARGIN: SignedDuration = SignedDuration::from_hours(24 * 90);
/// Most names of a certificate.
const MOST_NAMES: usize = 32;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key or a certificate could not be made.
    #[error("creating a certificate: {0}")]
    Made(#[from] rcgen::Error),
    /// There are more names than a certificate takes.
    #[error("a certificate has at most {MOST_NAMES} names, not {0}")]
    Names(usize),
}

/// What is kept: the authorities, oldest first, and what is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificates {
    authorities: Vec<Pair>,
    serving: Option<Serving>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Serving {
    #[serde(flatten)]
    pair: Pair,
    names: Vec<String>,
    /// When the authority was made that has signed it.
    issuer: Timestamp,
}

impl Certificates {
    /// Reads what [`text`](Self::text) has written; nothing where the text is damaged, so that
    /// all is made anew.
    pub fn read(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    /// As it is kept. Holds private keys.
    ///
    /// # Errors
    /// None is known.
    pub fn text(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// The authorities that clients are to trust; PEM.
    pub fn bundle(&self) -> String {
        let certificates = self.authorities.iter().map(|it| it.certificate.as_str());
        certificates.collect()
    }

    /// The certificate and the key that are to be served; PEM.
    pub fn serving(&self) -> Option<(&str, &str)> {
        let pair = &self.serving.as_ref()?.pair;
        Some((&pair.certificate, &pair.key))
    }

    /// When what is served ends.
    pub fn ends(&self) -> Option<Timestamp> {
        self.serving.as_ref().map(|it| it.pair.ends)
    }

    /// What should be kept at `now` for `names` instead of this, where `trusted` is the bundle
    /// in the webhook configuration; and when to ask again. The same as this where nothing is
    /// due.
    ///
    /// # Errors
    /// Keys cannot be made, or there are too many names.
    pub fn next(
        &self,
        names: &[String],
        trusted: &str,
        now: Timestamp,
    ) -> Result<(Self, Timestamp), Error> {
        let mut next = self.clone();
        next.authorities.retain(|it| now < it.ends);
        next.authorities.sort_by_key(|it| it.made);
        let is_fresh = |it: &Pair| now < before(it.ends, AUTHORITY_MARGIN);
        if !next.authorities.last().is_some_and(is_fresh) {
            next.authorities.push(authority::authority(now)?);
        }
        next.renew_serving(names, trusted, now)?;
        next.retire(now);
        let due = next.due(trusted, now);
        Ok((next, due))
    }

    /// The newest authority that everybody has had time to trust; the oldest if none has.
    fn signer(&self, trusted: &str, now: Timestamp) -> Option<&Pair> {
        let is_known = |it: &&Pair| {
            trusted.contains(it.certificate.trim()) && after(it.made, OVERLAP) <= now
        };
        let known = self.authorities.iter().rev().find(is_known);
        known.or(self.authorities.first())
    }

    fn renew_serving(
        &mut self,
        names: &[String],
        trusted: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(signer) = self.signer(trusted, now) else {
            return Ok(());
        };
        let mut wanted = names.to_vec();
        if let Some(serving) = &self.serving {
            let has_all = names.iter().all(|it| serving.names.contains(it));
            let issuer = self.authorities.iter().find(|it| it.made == serving.issuer);
            let is_newest = issuer.is_some_and(|it| signer.made <= it.made);
            let is_fresh = now < renewal(&serving.pair);
            if has_all && is_newest && is_fresh {
                return Ok(());
            }
            // An instance that wants another name adds it: none takes another's away, or they
            // would go on for ever.
            if is_fresh {
                wanted.extend_from_slice(&serving.names);
            }
        }
        wanted.sort();
        wanted.dedup();
        if wanted.len() > MOST_NAMES {
            return Err(Error::Names(wanted.len()));
        }
        self.serving = Some(Serving {
            pair: authority::serving(signer, &wanted, now)?,
            issuer: signer.made,
            names: wanted,
        });
        Ok(())
    }

    /// Lets go of authorities that are older than the one whose certificate everybody has been
    /// served for a while.
    fn retire(&mut self, now: Timestamp) {
        let Some(serving) = &self.serving else {
            return;
        };
        if after(serving.pair.made, OVERLAP) <= now {
            self.authorities.retain(|it| serving.issuer <= it.made);
        }
    }

    /// When something is to be done next.
    fn due(&self, trusted: &str, now: Timestamp) -> Timestamp {
        let mut all: Vec<Timestamp> = Vec::new();
        if let Some(newest) = self.authorities.last() {
            all.push(before(newest.ends, AUTHORITY_MARGIN));
            // A successor that is not yet trusted is waited for by a watch, not here.
            let signs_not = self
                .serving
                .as_ref()
                .is_some_and(|it| it.issuer < newest.made);
            if signs_not && trusted.contains(newest.certificate.trim()) {
                all.push(after(newest.made, OVERLAP));
            }
        }
        if let Some(serving) = &self.serving {
            all.push(renewal(&serving.pair));
            if self.authorities.iter().any(|it| it.made < serving.issuer) {
                all.push(after(serving.pair.made, OVERLAP));
            }
        }
        all.into_iter().min().unwrap_or(now)
    }
}

/// When a serving certificate is replaced: in the last third of its life.
fn renewal(serving: &Pair) -> Timestamp {
    before(serving.ends, serving.ends.duration_since(serving.made) / 3)
}

fn before(instant: Timestamp, span: SignedDuration) -> Timestamp {
    instant.saturating_sub(span).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
