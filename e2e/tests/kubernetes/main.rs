//! Promises that are kept on a real Kubernetes with a real Cluster API too.
//!
//! They run when `E2E_BACKEND` is `kubernetes`, against the cluster that
//! `cargo xtask cluster up` has left running, and against no other. The operator is in this
//! process, with a clock of its own: windows close when the test says so.

#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod promise;
mod real;

use std::process::ExitCode;

use real::Real;

/// Runs the promises whose names contain every word of the command line, one after the
/// other; the first that is broken ends the run.
fn main() -> ExitCode {
    if std::env::var("E2E_BACKEND").as_deref() != Ok("kubernetes") {
        println!("promises on a real Kubernetes: not run, E2E_BACKEND is not kubernetes");
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        for (name, promise) in promise::ALL {
            if words.iter().all(|word| name.contains(word.as_str())) {
                print!("promise {name} ... ");
                promise(Real::start().await).await;
                println!("kept");
            }
        }
    });
    ExitCode::SUCCESS
}
