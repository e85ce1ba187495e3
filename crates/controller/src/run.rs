//! The controller, as one future.

use std::convert::Infallible;

use crate::Options;

/// Runs the controller until the future is dropped.
///
/// It may be dropped at any point and started anew against whatever world it left: nothing of
/// it outlives it, and no state is kept but in the API server.
pub async fn run(options: Options) -> Infallible {
    let _ = options;
    std::future::pending().await
}
