//! What to do next about one ScheduledMachine: pure, total, no clock and no client.
//!
//! [`plan`] is one function from everything that was seen to everything that is to be done:
//! guarded writes, the status, events, and when to ask again. It neither waits nor remembers.
//! The same facts at the same instant give the same plan, in the controller, in a test and in
//! `5spot explain`.
//!
//! # One pass
//! 1. Read the ScheduledMachine and its Machine; ask [`Places::of`] where else to look, and
//!    gather a [`Seen`], from caches or live.
//! 2. [`Memory::observe`], then [`plan`].
//! 3. If the plan says [`confirm`](Plan::confirm), gather again, live (quorum reads), and plan
//!    again. From caches alone a plan never acts.
//! 4. Send the [`actions`](Plan::actions) in order and stop at the first that fails. A conflict
//!    (409, of whatever kind) is no failure: the world has moved, start over with live facts.
//!    A 404 of a deletion, an eviction or a patch is likewise an invitation to look again. An
//!    eviction that is refused (429) goes to [`Memory::refused`] and does not stop the list.
//!    Anything else goes to [`Memory::failed`]; plan once more, so that the status tells of it.
//! 5. If all went well, [`Memory::succeeded`]; write the [`status`](Plan::status), guarded by the
//!    resourceVersion that was planned from, then publish the [`events`](Plan::events).
//! 6. If anything was written, start over at once. Else sleep until [`wake`](Plan::wake) or until
//!    one of the objects changes.
//!
//! After a failure (step 4) the second plan holds back the failed step until it is due again, so
//! that the pass goes on at step 5 and ends.
//!
//! # Layout
//! - `resolve`: the raw spec becomes [`Wanted`]; nothing else reads raw strings
//! - [`seen`], [`place`], [`memory`]: what goes in; [`action`], [`event`]: what comes out
//! - `ladder`: which rung decides; `triple`: whose the objects are and what state they are in
//! - `serve`, `leave`, `drain`, `machine`, `write`: one decision each
//! - `status`, `finding`, `phase`: what is told to people, from the same facts

pub mod action;
pub mod event;
pub mod memory;
pub mod place;
pub mod seen;

use fivespot_api::{ScheduledMachine, ScheduledMachineStatus};
use jiff::Timestamp;

pub use action::{Action, Call, Request, Side, Step, Target};
pub use event::{Event, EventType};
pub use memory::{Cause, Failure, Memory};
pub use place::Places;
pub use seen::{Access, Fact, Freshness, Node, Pod, Seen, Sighting, Unknown, Workload};

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to send, in this order. Each is guarded by the server and may be sent twice.
    pub actions: Vec<Action>,
    /// The whole new status, after all actions have succeeded; none if it is as it was.
    pub status: Option<ScheduledMachineStatus>,
    /// What to publish once the status is written: one for each transition.
    pub events: Vec<Event>,
    /// When to ask again at the latest, if nothing changes before. An instant that is not in the
    /// future means at once; none means that only a change can alter anything.
    pub wake: Option<Timestamp>,
    /// There is something to do, but the facts are from caches: gather live and plan again.
    /// Actions, status and events are empty then.
    pub confirm: bool,
}

impl Plan {
    /// Whether nothing is to be written: the world is as it is wanted, or has to move by itself.
    pub fn is_idle(&self) -> bool {
        self.actions.is_empty() && self.status.is_none() && !self.confirm
    }

    /// The steps of the actions, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.actions.iter().map(|action| action.step).collect()
    }
}

/// Decides what to do next about `object`, which was read together with `seen`.
///
/// # Guarantees
/// Total: every input gives a plan, whatever strings the object holds. Deterministic. Nothing is
/// destroyed before the commitment to leave is stored, nor from facts of a cache, nor if a fact
/// that it depends on is unknown.
pub fn plan(
    object: &ScheduledMachine,
    seen: &Seen,
    memory: &Memory,
    now: Timestamp,
) -> Plan {
    let _ = (object, seen, memory, now);
    Plan::default()
}
