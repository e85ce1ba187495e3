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
mod election;
mod failure;
mod feed;
mod gather;
mod health;
mod instrument;
mod interrupt;
mod keep;
mod key;
mod kind;
pub mod kubeconfig;
mod latest;
mod lease;
mod ledger;
mod look;
mod membership;
mod memo;
pub mod metrics;
mod observe;
mod options;
mod orphan;
mod outage;
mod packed;
mod pass;
mod pieces;
mod port;
mod printed;
mod queue;
mod report;
mod ring;
mod run;
mod serve;
mod served;
mod shape;
mod shared;
mod shell;
mod specs;
mod start;
mod store;
mod taken;
mod tally;
mod tenure;
mod watch;
mod work;
mod workload;

pub use connect::{Connect, Dial, client};
pub use coordinate::Standing;
pub use health::{Check, Health};
pub use instrument::{Answer, Detail, Instruments};
pub use key::{Key, Named};
pub use lease::{SKEW, Terms, TermsError};
pub use look::{Look, look};
pub use observe::{Observe, Silent, StepTaken, Transition};
pub use options::{Coordination, Lease, Namespaces, NodeAccess, Options};
pub use run::{run, run_until};
pub use serve::serve;
