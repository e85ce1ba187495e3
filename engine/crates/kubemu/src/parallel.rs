//! Maps items on as many threads as the machine has processors.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread;

/// The smallest number of items for which a thread is started.
const MIN_ITEMS_PER_THREAD: usize = 32;

/// Applies `each` to all `items` and returns the results in their order.
pub fn map<T: Send, R: Send>(items: Vec<T>, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    map_shares(items, |share| share.into_iter().map(&each).collect())
}

/// Applies `each` to the share of every thread, and returns the results of all in their order.
pub(crate) fn map_shares<T: Send, R: Send>(
    items: Vec<T>,
    each: impl Fn(Vec<T>) -> Vec<R> + Sync,
) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = processors.min(items.len() / MIN_ITEMS_PER_THREAD);
    if workers < 2 {
        return each(items);
    }
    let share = items.len().div_ceil(workers);
    let mut items = items.into_iter();
    let shares = (0..workers).map(|_| items.by_ref().take(share).collect::<Vec<T>>());
    let shares: Vec<Vec<T>> = shares.collect();
    let each = &each;
    thread::scope(|scope| {
        let working: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || each(share)))
            .collect();
        let done = working.into_iter().map(|worker| {
            let done: thread::Result<Vec<R>> = worker.join();
            done.unwrap_or_else(|panic| resume_unwind(panic))
        });
        done.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn every_item_is_mapped_once_and_in_order() {
        for length in [0, 1, 31, 64, 65, 1000] {
            let items: Vec<usize> = (0..length).collect();
            let doubled: Vec<usize> = items.iter().map(|it| it * 2).collect();
            assert_eq!(map(items, |it| it * 2), doubled, "{length}");
        }
    }
}
