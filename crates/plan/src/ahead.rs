//! What is done shortly before a window opens, so that nothing but the creations is left to do
//! when it does.

use jiff::SignedDuration;

use crate::case::Case;
use crate::memory::after;
use crate::outcome::{Outcome, State};
use crate::{finding, serve};

/// How long before: enough to write down thousands of machines that open together, and short
/// enough that an edited spec rarely has it written anew.
const AHEAD: SignedDuration = SignedDuration::from_secs(60);

/// The same decision about a machine that is not wanted yet, with what will be created on record
/// where that is soon. It begins nothing: if the opening never comes, the record goes as that of
/// a machine that is gone.
pub(crate) fn prepare(case: &Case<'_>, outcome: Outcome) -> Outcome {
    let is_mere_rest = outcome.state == State::Quiet && !case.subject.is_deleting;
    let opening = case
        .next_flip()
        .filter(|_| is_mere_rest && !case.is_wanted() && !case.want.is_killed);
    let Some(opening) = opening else {
        return outcome;
    };
    let due = after(opening, -AHEAD);
    if due > case.now {
        return outcome.wake(due);
    }
    if finding::obstacle(case).is_some() {
        return outcome;
    }
    let hash = case.want.hash.clone();
    Outcome {
        record: Some(serve::record(case, (None, None), hash)),
        ..outcome
    }
}
