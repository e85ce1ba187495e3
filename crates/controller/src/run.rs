//! The controller, as one future.

use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::unbounded_channel;

use crate::Options;
use crate::pass::pass;
use crate::shell::Shell;

/// Runs the controller until the future is dropped.
///
/// It may be dropped at any point and started anew against whatever world it left: nothing of
/// it outlives it, and no state is kept but in the API server. A request that is under way
/// when it is dropped may or may not reach the server.
///
/// On a virtual clock it must be polled on the one thread that drives the clock.
pub async fn run(options: Options) -> Infallible {
    let at_most = options.max_concurrent.get();
    let (tasks, mut started) = unbounded_channel();
    let shell = Arc::new(Shell::new(options, tasks));
    shell.start();
    let mut beside = FuturesUnordered::new();
    let mut passes = FuturesUnordered::new();
    let mut last_id = 0;
    loop {
        tokio::select! {
            // In this order, so that equal runs poll equally.
            biased;
            Some(task) = started.recv() => beside.push(task),
            Some(()) = passes.next(), if !passes.is_empty() => {}
            (key, busy) = shell.work.next(), if passes.len() < at_most => {
                last_id += 1;
                passes.push(pass(shell.clone(), key, busy, last_id));
            }
            Some(()) = beside.next(), if !beside.is_empty() => {}
        }
    }
}
