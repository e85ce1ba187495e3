//! Service account tokens: issuing, authentication and review.

mod authentication;
mod bootstrap;
pub(crate) mod certificate;
pub(crate) mod claim;
mod der;
pub(crate) mod key;
mod request;
mod review;
pub(crate) mod signing_request;

pub(crate) use authentication::authenticate_token;
pub use key::{KeyError, TokenKey};
pub(crate) use request::issue;
pub(crate) use review::reply;
