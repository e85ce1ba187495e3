//! Recorded truth: requests, a real API server's answers to them, and whether the embedded
//! server gives the same.
//!
//! - [`corpus`]: the requests, as data in `e2e/record/corpus`;
//! - [`run`]: puts the requests of a case to a server, any server;
//! - [`mask`]: takes out of answers what differs each time;
//! - [`fixture`]: answers as they are kept in `e2e/record/fixtures`;
//! - [`difference`]: what may differ, in `e2e/record/differences.yaml`;
//! - [`agreement`]: how many answers are equal, in `e2e/record/agreement.json`.

use std::error::Error;
use std::path::{Path, PathBuf};

pub mod agreement;
pub mod corpus;
pub mod difference;
pub mod fixture;
pub mod mask;
pub mod pattern;
pub mod run;

/// What may go wrong between a file or a server and here.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// The folder with the corpus, the fixtures and what is known about both.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("record")
}
