//! Why nothing can be created from the class of a machine.

use fivespot_api::condition::Reason;
use fivespot_api::{ClassProblem, ScheduledMachineSpec};
use fivespot_capi::one_line;

use crate::why::Why;

/// Why nothing can be created from a class.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClassFault {
    pub(crate) why: Why,
    /// Whether what the class sets is unknown: what was applied stays as it is.
    pub(crate) is_unknown: bool,
    /// Whether the class could not be read, so that it may exist and allow everything.
    pub(crate) is_unread: bool,
}

impl ClassFault {
    /// `None` if the machine has no class, or one that it may use.
    pub(crate) fn of(spec: &ScheduledMachineSpec) -> Option<Self> {
        let (name, problem, is_unread) = match (&spec.class, &spec.class_ref) {
            (Some(class), _) => (&class.name, class.problem.as_ref()?, false),
            (None, Some(reference)) => (&reference.name, &ClassProblem::NotFound, true),
            (None, None) => return None,
        };
        let name = one_line(name);
        let why = match problem {
            ClassProblem::NotFound => Why::new(
                Reason::ClassNotFound,
                format!(
                    "there is no ScheduledMachineClass {name}; create it, or correct \
                     spec.classRef.name"
                ),
            ),
            ClassProblem::NamespaceNotSelected => Why::new(
                Reason::ClassNotAllowed,
                format!("ScheduledMachineClass {name} does not select this namespace"),
            ),
            ClassProblem::ClusterNotAllowed(allowed) => Why::new(
                Reason::ClassNotAllowed,
                format!(
                    "ScheduledMachineClass {name} does not allow Cluster {}, only {}",
                    one_line(&spec.cluster_name),
                    one_line(&allowed.join(", ")),
                ),
            ),
            ClassProblem::HostNotFound(host) => Why::new(
                Reason::HostNotFound,
                format!(
                    "ScheduledMachineClass {name} has no host {}; correct spec.classRef.host",
                    one_line(host),
                ),
            ),
        };
        Some(Self {
            why,
            is_unknown: spec.is_class_unknown(),
            is_unread,
        })
    }
}
