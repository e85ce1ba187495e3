//! The admission policy of ScheduledMachines as a validating webhook, for clusters whose API
//! server does not know `ValidatingAdmissionPolicy`.
//!
//! What is decided is pure and stands in [`judge`]: the bytes of an `AdmissionReview` in, the
//! bytes of the answer out. The same engine and the same policy are asked as anywhere else, so
//! that an object is refused in the same words. Around it:
//!
//! - [`serve`](mod@serve): TLS, limits, an orderly end;
//! - [`certificate`]: the certificate in use, which can be exchanged while clients come and go;
//! - [`rotation`]: which authorities and which certificate there should be at an instant; pure;
//! - [`upkeep`]: keeps a Secret and the webhook configuration as the rotation says;
//! - [`metrics`]: how many questions there were, and when the certificate ends
//! - [`mounted`]: a certificate from files that somebody else keeps.
//!
//! Everything fails closed: what cannot be read, judged or answered is no admission, and the
//! webhook configuration says `failurePolicy: Fail`.

mod authority;
pub mod certificate;
mod intake;
pub mod judge;
mod lean;
pub mod metrics;
pub mod mounted;
mod review;
pub mod rotation;
pub mod serve;
pub mod upkeep;

pub use certificate::Certificate;
pub use judge::{Judge, Reply};
pub use metrics::Metrics;
pub use serve::serve;
