//! The controller around the planner: observes, plans, applies, reports.
//!
//! It decides nothing. It keeps caches of what the API servers serve ([`run`] starts one watch per
//! kind), observes with them the state that the planner asks for, applies the actions that the
//! planner answers with, and reports the status and Events. When to reconcile next is the planner's
//! answer too: until then nothing is polled.
//!
//! - `reconcile`: one reconcile, from observing to reporting; `run` takes them from the queue
//! - `observe`: the observed state, from caches or live; informers, discovery, workload clusters
//! - `apply`: sends the actions; `report`: writes the status and publishes Events
//! - `context`: what all reconciles share; `object_state`: what is remembered of one object
//! - `options`: the configuration; `telemetry`: metrics, health and their ports
//!
//! ```no_run
//! # async fn example(client: kube::Client) {
//! use fivespot_clock::Clock;
//! use fivespot_controller::{Options, run};
//!
//! let ended = run(Options::new(client, Clock::system())).await;
//! # match ended {}
//! # }
//! ```

mod apply;
mod connect;
mod context;
mod coordinate;
mod failure;
mod inspect;
mod interrupt;
mod kind;
mod listener;
mod object_state;
mod observe;
mod options;
mod orphan;
mod provider_specs;
mod reconcile;
mod report;
mod run;
mod schedule_override;
mod telemetry;

pub use connect::{Connect, Dial, client};
pub use fivespot_runtime::lease::{Lease, Role, SKEW, Terms, TermsError};
pub use fivespot_runtime::{Key, Named};
pub use inspect::{Inspection, inspect};
pub use listener::{Listener, NoListener, StepTaken, Transition};
pub use observe::kubeconfig;
pub use options::{Coordination, Namespaces, NodeAccess, Options};
pub use run::{run, run_until};
pub use telemetry::health::{Check, Health};
pub use telemetry::instruments::{Answer, Detail, Instruments};
pub use telemetry::metrics;
pub use telemetry::ports::serve;
