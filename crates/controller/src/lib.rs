//! Watches, gathers, applies: the operator's shell around the planner.
//!
//! The shell decides nothing. It keeps caches of what the API servers serve ([`run`] starts
//! one watch per kind), gathers from them what the planner asks to see, applies the actions
//! that the planner answers with, and reports its status and events. When to look again is
//! the planner's answer too: the shell sleeps until then and polls nothing.
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
mod coordinate;
mod definitions;
mod desk;
mod failure;
mod gather;
mod health;
mod instrument;
mod interrupt;
mod kind;
pub mod kubeconfig;
mod look;
mod memo;
pub mod metrics;
mod observe;
mod options;
mod orphan;
mod pass;
mod printed;
mod report;
mod run;
mod serve;
mod served;
mod shape;
mod shell;
mod specs;
mod taken;
mod watch;
mod workload;

pub use connect::{Connect, Dial, client};
pub use fivespot_runtime::lease::{Lease, Role, SKEW, Terms, TermsError};
pub use fivespot_runtime::{Key, Named};
pub use health::{Check, Health};
pub use instrument::{Answer, Detail, Instruments};

pub use look::{Look, look};
pub use observe::{Observe, Silent, StepTaken, Transition};
pub use options::{Coordination, Namespaces, NodeAccess, Options};
pub use run::{run, run_until};
pub use serve::serve;
