//! Which CAs and which certificate there should be at an instant. Pure, except for the randomness
//! of new keys.
//!
//! Why the webhook has a CA of its own: `internals/decisions/0046-a-webhook-of-its-own.md`.
//!
//! A CA is replaced long before it expires, and the next one is trusted before it signs:
//!
//! ```text
//! first CA         ├── signs ─────────────────────────────────┤ trusted ┤ removed
//! second CA                            ├ trusted ┤ signs ──────────────────────
//!                                      created   seen in the webhook configuration,
//!                                                and OVERLAP later
//! ```
//!
//! An API server that still trusts only the first CA and one that trusts both accept what is
//! served at any time. Every step only leads forward: two replicas that both take it, or have
//! different clocks, never undo each other's steps.

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;
use serde::{Deserialize, Serialize};

use crate::authority::{self, Pair};

/// How long a CA is in the webhook configuration before it signs, and how long an old one stays
/// there after its successor has signed the certificate that is served.
pub const OVERLAP: SignedDuration = SignedDuration::from_hours(1);
/// How long before its expiry a CA gets a successor.
pub const AUTHORITY_MARGIN: SignedDuration = SignedDuration::from_hours(24 * 90);
/// The most names of a certificate.
const MAX_NAMES: usize = 32;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key or a certificate could not be created.
    #[error("creating a certificate: {0}")]
    Creation(#[from] rcgen::Error),
    /// There are more names than a certificate may have.
    #[error("a certificate has at most {MAX_NAMES} names, not {0}")]
    Names(usize),
}

/// What is stored: the CAs, oldest first, and what is served.
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
    /// When the CA that has signed it was created.
    issuer: Timestamp,
}

impl Certificates {
    /// Reads the output of [`text`](Self::text). The result is empty if the text is damaged, so
    /// that everything is created again.
    pub fn read(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    /// The stored form. It contains private keys.
    ///
    /// # Errors
    /// None is known.
    pub fn text(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// The CAs that clients should trust; PEM.
    pub fn bundle(&self) -> String {
        let certificates = self.authorities.iter().map(|it| it.certificate.as_str());
        certificates.collect()
    }

    /// The certificate and the key to serve; PEM.
    pub fn serving(&self) -> Option<(&str, &str)> {
        let pair = &self.serving.as_ref()?.pair;
        Some((&pair.certificate, &pair.key))
    }

    /// When the certificate that is served expires.
    pub fn expiry(&self) -> Option<Timestamp> {
        self.serving.as_ref().map(|it| it.pair.ends)
    }

    /// What should be stored at `now` for `names` instead of this, and when to call this again.
    /// `trusted` is the bundle in the webhook configuration. Returns the same as this if nothing
    /// is due.
    ///
    /// # Errors
    /// Keys cannot be created, or there are too many names.
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
            next.authorities.push(authority::create_ca(now)?);
        }
        next.renew_serving(names, trusted, now)?;
        next.retire(now);
        let due = next.due(trusted, now);
        Ok((next, due))
    }

    /// The newest CA that all clients have had time to trust; the oldest if there is none.
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
        let mut all_names = names.to_vec();
        if let Some(serving) = &self.serving {
            let has_all = names.iter().all(|it| serving.names.contains(it));
            let issuer = self.authorities.iter().find(|it| it.made == serving.issuer);
            let is_newest = issuer.is_some_and(|it| signer.made <= it.made);
            let is_fresh = now < renewal(&serving.pair);
            if has_all && is_newest && is_fresh {
                return Ok(());
            }
            // A replica that needs another name adds it. None removes another's names, or they
            // would undo each other's changes forever.
            if is_fresh {
                all_names.extend_from_slice(&serving.names);
            }
        }
        all_names.sort();
        all_names.dedup();
        if all_names.len() > MAX_NAMES {
            return Err(Error::Names(all_names.len()));
        }
        self.serving = Some(Serving {
            pair: authority::create_serving_certificate(signer, &all_names, now)?,
            issuer: signer.made,
            names: all_names,
        });
        Ok(())
    }

    /// Removes CAs that are older than the one that signed the certificate that is served, once
    /// that has been served for [`OVERLAP`].
    fn retire(&mut self, now: Timestamp) {
        let Some(serving) = &self.serving else {
            return;
        };
        if after(serving.pair.made, OVERLAP) <= now {
            self.authorities.retain(|it| serving.issuer <= it.made);
        }
    }

    /// When the next step is due.
    fn due(&self, trusted: &str, now: Timestamp) -> Timestamp {
        let mut all: Vec<Timestamp> = Vec::new();
        if let Some(newest) = self.authorities.last() {
            all.push(before(newest.ends, AUTHORITY_MARGIN));
            // A watch, not this instant, shows that a successor is trusted.
            let successor_waits = self
                .serving
                .as_ref()
                .is_some_and(|it| it.issuer < newest.made);
            if successor_waits && trusted.contains(newest.certificate.trim()) {
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

/// When a serving certificate is replaced: at the start of the last third of its life.
fn renewal(serving: &Pair) -> Timestamp {
    before(serving.ends, serving.ends.duration_since(serving.made) / 3)
}

fn before(instant: Timestamp, span: SignedDuration) -> Timestamp {
    instant.saturating_sub(span).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
