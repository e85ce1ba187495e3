//! Recordings: requests, a real API server's responses, and whether the embedded server gives the
//! same. What it does not compare: `internals/decisions/0032-recorded-responses.md`.
//!
//! - [`corpus`]: the requests, as data in `engine/judge/record/corpus`;
//! - [`run`]: sends the requests of a case to a server;
//! - [`mask`]: masks values in responses that differ each time;
//! - [`fixture`]: the recorded responses, in `engine/judge/record/fixtures`;
//! - [`difference`]: the allowed differences, in `engine/judge/record/differences.yaml`;
//! - [`agreement`]: the number of equal responses, in `engine/judge/record/agreement.json`.

use std::error::Error;
use std::path::{Path, PathBuf};

pub mod agreement;
pub mod corpus;
pub mod difference;
pub mod fixture;
pub mod mask;
pub mod pattern;
pub mod run;

/// An error of a file or a server.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The folder with the corpus, the fixtures and the differences.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("record")
}
