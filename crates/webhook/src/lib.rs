//! The admission policy of ScheduledMachines as a validating webhook, for clusters with an API
//! server that does not support `ValidatingAdmissionPolicy`.
//!
//! The decision is pure and made in [`validator`]: the bytes of an `AdmissionReview` in, the
//! bytes of the response out. It evaluates the same policy with the same engine as the other
//! layers, so the messages are the same. Around it:
//!
//! - [`authorization`]: whether a user may write the target of a ScheduledCapacity, and use the class
//!   of a ScheduledMachine;
//! - [`serve`](mod@serve): TLS, limits, graceful shutdown;
//! - [`certificate`]: the certificate in use, which can be exchanged while clients come and go;
//! - [`rotation`]: the desired CAs and certificate at an instant; pure;
//! - [`certificate_controller`]: reconciles a Secret and the webhook configuration with the
//!   rotation;
//! - [`metrics`]: how many reviews there were, and when the certificate expires;
//! - [`mounted`]: a certificate from files that another process renews;
//! - [`program`]: the program `5spot-webhook`.
//!
//! Everything fails closed: a request that cannot be read or decided is not admitted, and the
//! webhook configuration has `failurePolicy: Fail`.

mod authority;
pub mod authorization;
mod body;
mod bounds;
pub mod certificate;
pub mod certificate_controller;
pub mod metrics;
pub mod mounted;
mod object;
pub mod program;
mod review;
pub mod rotation;
pub mod serve;
mod turn;
pub mod validator;

pub use authorization::Authorization;
pub use certificate::Certificate;
pub use metrics::Metrics;
pub use serve::{Reviewer, serve};
pub use validator::{ReviewResponse, Validator};
