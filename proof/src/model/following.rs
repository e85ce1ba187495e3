//! Liveness: from any state, without further faults and with every component acting, a model settles in
//! the desired state. This is computed here, state by state, instead of by a liveness checker, which
//! would miss infinite cycles.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use dashmap::DashSet;

/// How many steps may lead from any state to the end of the last day.
pub(crate) const BOUND: usize = 600;

/// Fingerprints of states from which a model settles in the desired state.
pub(crate) type Settled = DashSet<u64>;

/// What follows a state when nothing goes wrong.
pub(crate) enum Following<S> {
    State(S),
    /// Nothing, and it is not as it should be; or a step that must not be.
    Wrong,
    /// Nothing: the last day is over.
    End,
}

/// Whether a model settles in the desired state within [`BOUND`] steps.
pub(crate) fn settles<S: Hash>(
    settled: &Settled,
    mut state: S,
    following: impl Fn(&S) -> Following<S>,
) -> bool {
    let mut passed = Vec::new();
    for _ in 0..BOUND {
        let print = fingerprint(&state);
        if !settled.contains(&print) {
            passed.push(print);
            match following(&state) {
                Following::State(next) => {
                    state = next;
                    continue;
                }
                Following::Wrong => return false,
                Following::End => {}
            }
        }
        for print in passed {
            settled.insert(print);
        }
        return true;
    }
    false
}

/// The last state that follows.
pub(crate) fn end<S>(mut state: S, following: impl Fn(&S) -> Following<S>) -> S {
    for _ in 0..BOUND {
        match following(&state) {
            Following::State(next) => state = next,
            Following::Wrong | Following::End => break,
        }
    }
    state
}

fn fingerprint(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
