//! A simulated Cluster API on top of an API server: clusters, machines, one bootstrap and one
//! infrastructure provider, nodes and pods.
//!
//! It is faithful where a controller that creates Machines can observe the difference: the
//! order of writes, owner references, which object blocks which, and the effect of a violated
//! rule of Cluster API. For example, a bootstrap object with another controller reference
//! blocks its Machine, and an infrastructure object without a Machine is never removed. It is
//! fast where only real hardware would show the difference: a host is provisioned in seconds.
//!
//! Every step is a pure function of the objects on the API server and of the time, so the
//! simulator can be stopped and started at any point. It keeps nothing in memory except when to
//! requeue a key.
//!
//! | object | what the simulator does |
//! |---|---|
//! | `Cluster` | is initialized at once (annotation `sim.5spot.finos.org/control-plane: never`: never); its kubeconfig Secret is created; annotation `sim.5spot.finos.org/claims-after: 10m`: its Machines get their finalizer and are reconciled only after that time |
//! | `K0sWorkerConfig` | one second after creation its data Secret exists |
//! | `RemoteMachine` | is provisioned four seconds after creation; its host is reset in three seconds; see below for failures |
//! | `Machine` | Pending, Provisioning, Provisioned, Running; drained and removed in Cluster API's order |
//! | `Node` | joins three seconds after provisioning, is Ready five seconds later; annotation `sim.5spot.finos.org/kubelet: stopped`: its Ready is Unknown until the annotation is removed |
//! | `Pod` | runs two seconds after its Node is ready; ends two seconds after its deletion was requested |
//!
//! Like k0smotron, the `RemoteMachine` reports failures only in its status, in the fields of
//! the contract version (`failureReason` and `failureMessage`, or the same below
//! `deprecated.v1beta1`), and retries every ten seconds:
//!
//! - `spec.sshKeyRef` names a Secret that does not exist: it is neither provisioned nor cleaned
//!   up, because the key is read before anything else.
//! - Annotation `sim.5spot.finos.org/host: unreachable`, also on its Cluster: it is not provisioned. When it is
//!   deleted, the host is tried once, and the object is removed although the host was not
//!   reset.
//!
//! If a pod with annotation `sim.5spot.finos.org/replace-after: 60s` is evicted or deleted, a
//! replacement on the permanent node `sim-node-0` starts that long afterwards.

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

pub use crd::definitions;
pub use fivespot_capi::Contract;
pub use run::{Options, create_node, define, install, run};
