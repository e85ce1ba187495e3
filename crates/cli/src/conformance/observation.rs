//! The observed state of a machine at one instant.

use std::collections::BTreeMap;

use serde_json::Value;

use super::promise::{Fact, Part, Violation};

/// The observed objects of one machine at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observation {
    objects: BTreeMap<Part, Value>,
    /// The uid of the first Machine that was observed.
    pub(crate) first_machine: Option<String>,
}

impl Observation {
    /// Returns the same state with an object added.
    pub(crate) fn with(mut self, part: Part, object: Option<Value>) -> Self {
        if let Some(object) = object {
            self.objects.insert(part, object);
        }
        self
    }

    /// The object of a part. `None` if it does not exist.
    pub(crate) fn get(&self, part: Part) -> Option<&Value> {
        self.objects.get(&part)
    }

    /// The string at a JSON pointer of an object. Empty if there is none.
    pub(crate) fn text(&self, part: Part, pointer: &str) -> &str {
        self.get(part)
            .and_then(|it| it.pointer(pointer)?.as_str())
            .unwrap_or_default()
    }

    /// `status.message` of the ScheduledMachine. Empty if there is none.
    pub(crate) fn message(&self) -> &str {
        self.text(Part::ScheduledMachine, "/status/message")
    }

    /// Whether a condition has the status True.
    fn is_condition_true(&self, part: Part, kind: &str) -> bool {
        self.condition(part, kind)
            .is_some_and(|it| it["status"] == "True")
    }

    fn condition(&self, part: Part, kind: &str) -> Option<&Value> {
        let all = self.get(part)?.pointer("/status/conditions")?.as_array()?;
        all.iter().find(|it| it["type"] == kind)
    }

    /// Whether the pod has been evicted: it is gone, or is being deleted.
    fn is_pod_evicted(&self) -> bool {
        self.get(Part::Pod)
            .is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    }

    /// The kind and name of an object.
    fn title(&self, part: Part) -> String {
        let (kind, name) = (self.text(part, "/kind"), self.text(part, "/metadata/name"));
        if kind.is_empty() {
            return format!("the {part} {name}");
        }
        format!("{kind}/{name}")
    }

    /// The reason why an object still exists, as far as it is visible.
    fn why_not_deleted(&self, part: Part) -> String {
        let title = self.title(part);
        if self.text(part, "/metadata/deletionTimestamp").is_empty() {
            return format!("{title} still exists and has no deletionTimestamp");
        }
        let metadata = self.get(part).map(|it| &it["metadata"]["finalizers"]);
        let finalizers: Vec<&str> = metadata
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if finalizers.is_empty() {
            return format!("{title} was deleted and still exists, without finalizers");
        }
        let finalizers = finalizers.join(", ");
        format!("{title} was deleted and still exists, with the finalizers {finalizers}")
    }
}

impl Fact {
    /// Whether the fact is true in the observed state.
    ///
    /// # Errors
    /// A description of the observed state.
    pub(crate) fn check(self, observation: &Observation) -> Result<(), String> {
        match self {
            Self::Exists(part) => ensure(observation.get(part).is_some(), || {
                format!("there is no {part}")
            }),
            Self::Gone(Part::Pod) => ensure(observation.is_pod_evicted(), || {
                observation.why_not_deleted(Part::Pod)
            }),
            Self::Gone(part) => ensure(observation.get(part).is_none(), || {
                observation.why_not_deleted(part)
            }),
            Self::BootstrapData => {
                let path = "/spec/bootstrap/dataSecretName";
                ensure(!observation.text(Part::Machine, path).is_empty(), || {
                    "the Machine has no spec.bootstrap.dataSecretName".to_owned()
                })
            }
            Self::ProviderId => {
                let of = |part| observation.text(part, "/spec/providerID");
                let (machine, node) = (of(Part::Machine), of(Part::Node));
                ensure(!machine.is_empty() && machine == node, || {
                    format!(
                        "the Machine has the providerID `{machine}`, and the Node `{node}`"
                    )
                })
            }
            Self::NodeReady => {
                ensure(observation.is_condition_true(Part::Node, "Ready"), || {
                    match observation.get(Part::Node) {
                        None => "there is no Node".to_owned(),
                        Some(_) => {
                            format!("{} is not Ready", observation.title(Part::Node))
                        }
                    }
                })
            }
            Self::Schedulable => {
                let is_cordoned = observation
                    .get(Part::Node)
                    .is_none_or(|it| it["spec"]["unschedulable"] == true);
                ensure(!is_cordoned, || "the Node is cordoned".to_owned())
            }
            Self::PodReady => {
                ensure(observation.is_condition_true(Part::Pod, "Ready"), || {
                    "a pod on the Node does not become Ready".to_owned()
                })
            }
            Self::Phase(phase) => {
                let now = observation.text(Part::ScheduledMachine, "/status/phase");
                ensure(now == phase, || format!("the phase is {now}, not {phase}"))
            }
            Self::Stalled(reason) => {
                let stalled = observation.condition(Part::ScheduledMachine, "Stalled");
                let is_true = stalled
                    .is_some_and(|it| it["status"] == "True" && it["reason"] == reason);
                ensure(is_true, || format!("Stalled is not True with {reason}"))
            }
        }
    }
}

fn ensure(is_true: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if is_true { Ok(()) } else { Err(message()) }
}

impl Violation {
    /// A description of the violation, if the observed state has one.
    pub(crate) fn find_in(self, observation: &Observation) -> Option<String> {
        match self {
            Self::MachineBeforePod => {
                let is_early = observation.get(Part::Machine).is_none()
                    && !observation.is_pod_evicted();
                is_early.then(|| {
                    "the Machine is gone, and a pod on its Node was not evicted"
                        .to_owned()
                })
            }
            Self::MachineReplaced => {
                let first = observation.first_machine.as_deref()?;
                let now = observation.text(Part::Machine, "/metadata/uid");
                (first != now).then(|| "the Machine is no longer the same".to_owned())
            }
        }
    }
}
