//! The runtime of a command.

use crate::Failure;

/// Runs a future of a command, on this thread.
///
/// # Errors
/// The operating system has no more file descriptors, or `future` fails.
pub fn block_on<T>(
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::at_start)?
        .block_on(future)
}
