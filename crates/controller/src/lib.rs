//! The controller around the planner: observes, plans, applies, reports.
//!
//! The controller decides nothing. [`run`] starts one watch per kind and keeps caches of the
//! objects. A reconcile observes the state that the planner needs, applies the actions that the
//! planner returns, and reports the status and Events. The planner also returns when to reconcile
//! next; nothing is polled until then.
//!
//! - `reconcile`: one reconcile, from observing to reporting; `run` takes the keys from the work
//!   queue
//! - `observe`: the observed state, from caches or live; informers, discovery, workload clusters
//! - `apply`: sends the actions; `report`: writes the status and publishes Events
//! - `context`: the state shared by all reconciles; `object_state`: the state kept per object
//! - `options`: the configuration; `telemetry`: metrics, health and their ports
//! - [`program`]: the operator as the program `5spot-controller`
//!
//! ```no_run
//! # async fn example(client: kube::Client) {
//! use kubemu_clock::Clock;
//! use fivespot_controller::{Options, run};
//!
//! let ended = run(Options::new(client, Clock::system())).await;
//! # match ended {}
//! # }
//! ```

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test of many steps is read from its top"
    )
)]

mod apply;
mod awaited;
mod class_rates;
mod class_turns;
mod connect;
mod context;
mod coordinate;
mod failure;
mod host_pool;
mod inspect;
mod interrupt;
mod kind;
mod large_creates;
mod listener;
mod object_state;
mod observe;
mod options;
mod orphan;
mod own_kind;
mod own_object;
pub mod program;
mod provider_specs;
mod reconcile;
pub mod refusal;
mod report;
mod run;
mod schedule_override;
mod scheduled_capacity;
mod scheduled_machine_set;
mod spot_schedule;
mod status_patch;
mod telemetry;

pub use connect::{Connect, NetworkConnect, client};
pub use fivespot_runtime::lease::{Lease, LeaseTiming, LeaseTimingError, Role, SKEW};
pub use fivespot_runtime::{Key, NamespacedName};
pub use inspect::{Inspection, inspect};
pub use kubemu_https::{Detail, ProbeResponse};
pub use listener::{Listener, NoListener, StepTaken, Transition};
pub use observe::kubeconfig;
pub use options::{
    Controllers, Coordination, LeaseRuntime, Namespaces, NodeAccess, Options,
};
pub use run::{run, run_until};
pub use telemetry::health::{Check, Health};
pub use telemetry::instruments::Instruments;
pub use telemetry::metrics;
