//! A simulated Cluster API on top of an API server: clusters, machines, one bootstrap and
//! one infrastructure provider, nodes and pods.
//!
//! It is faithful where a controller that creates Machines can see the difference: the
//! order of writes, who owns what, what blocks what, what happens when a rule of Cluster
//! API is broken (a bootstrap object that somebody else controls wedges its Machine; an
//! infrastructure object without a Machine never goes). It is quick where only a machine
//! room could see: a host is provisioned in seconds.
//!
//! Every step is a pure function of what the API server holds at that moment and of the
//! time, so the simulator can be stopped and started anywhere. It keeps nothing in memory
//! but when to look again.
//!
//! | object | what happens to it |
//! |---|---|
//! | `Cluster` | is initialised at once (annotation `sim.5spot.finos.org/control-plane: never`: never); its kubeconfig Secret appears; annotation `sim.5spot.finos.org/claims-after: 10m`: its Machines get their finalizer, and are looked at no sooner than that |
//! | `K0sWorkerConfig` | one second after creation its data Secret exists |
//! | `RemoteMachine` | four seconds after creation it is provisioned; its host resets in three; how it fails is said below |
//! | `Machine` | Pending, Provisioning, Provisioned, Running; drained and removed in Cluster API's order |
//! | `Node` | joins three seconds after provisioning, is Ready five seconds later |
//! | `Pod` | runs two seconds after its Node is ready; ends two seconds after it was reported to |
//!
//! Like k0smotron, the `RemoteMachine` reports why it has not come further in its status alone, as
//! the contract version has it (`failureReason` and `failureMessage`, or the same below
//! `deprecated.v1beta1`), and tries again every ten seconds:
//!
//! - `spec.sshKeyRef` names a Secret that does not exist: it is neither provisioned nor cleaned up,
//!   since the key is read before anything else.
//! - Annotation `sim.5spot.finos.org/host: unreachable`: it is not provisioned. When it is deleted,
//!   the host is tried once, and the object goes although the host was not reset.
//!
//! A pod with annotation `sim.5spot.finos.org/replace-after: 60s` that is evicted or deleted
//! is replaced, that long afterwards, by one on the standing node `sim-node-0`.

mod api;
mod cluster;
mod contract;
mod crd;
mod key;
mod machine;
mod node;
mod object;
mod pod;
mod provider;
mod removal;
mod run;
mod write;

pub use contract::Contract;
pub use crd::definitions;
pub use run::{Options, install, run};
