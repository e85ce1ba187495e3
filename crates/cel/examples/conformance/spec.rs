//! The CEL specification's conformance tests.

use crate::Tally;

pub(crate) fn run(_text: &str) -> Result<Vec<(String, Tally)>, serde_json::Error> {
    Ok(Vec::new())
}
