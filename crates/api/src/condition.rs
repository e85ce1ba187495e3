//! Condition types and reasons, and how to set a condition.

pub mod capacity_reason;
mod reason;
pub mod schedule_reason;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::time::whole_seconds;

pub use reason::{Actor, Reason, ReasonRow, Remedy, Section};

/// Kubernetes' bound on a condition's message, in characters.
const MAX_MESSAGE: usize = 32_768;

/// What a condition describes. A status lists conditions in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The observed state matches the desired state.
    Ready,
    /// Progress requires manual action; absent otherwise.
    Stalled,
    /// The schedule is active now.
    Scheduled,
    /// The schedule is valid.
    ScheduleValid,
    /// The schedule that the machine follows is evaluated; absent for an inline schedule.
    SpotScheduleResolved,
    /// All objects that the spec refers to exist and may be used.
    ReferencesValid,
    /// The Machine's own readiness.
    MachineReady,
    /// The workload cluster is reachable.
    NodeAccess,
    /// The Node has the desired taints; absent without `nodeTaints`.
    NodeTainted,
    /// The agent runs with the desired configuration; absent without `killIfCommands`.
    AgentReady,
}

impl ConditionType {
    /// Every type, in listing order.
    pub const ALL: [Self; 10] = [
        Self::Ready,
        Self::Stalled,
        Self::Scheduled,
        Self::ScheduleValid,
        Self::SpotScheduleResolved,
        Self::ReferencesValid,
        Self::MachineReady,
        Self::NodeAccess,
        Self::NodeTainted,
        Self::AgentReady,
    ];

    /// What it means that the condition is true.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ready => "the observed state matches the desired state",
            Self::Stalled => "progress requires manual action (absent otherwise)",
            Self::Scheduled => "the schedule is active now",
            Self::ScheduleValid => "the schedule is valid",
            Self::SpotScheduleResolved => {
                "the schedule that the machine follows is evaluated (absent for an inline schedule)"
            }
            Self::ReferencesValid => {
                "all objects that the spec refers to exist and may be used"
            }
            Self::MachineReady => "the Machine reports that it is ready",
            Self::NodeAccess => "the workload cluster is reachable",
            Self::NodeTainted => "the Node has the desired taints",
            Self::AgentReady => "the agent runs with the desired configuration",
        }
    }

    /// The type as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Stalled => "Stalled",
            Self::Scheduled => "Scheduled",
            Self::ScheduleValid => "ScheduleValid",
            Self::SpotScheduleResolved => "SpotScheduleResolved",
            Self::ReferencesValid => "ReferencesValid",
            Self::MachineReady => "MachineReady",
            Self::NodeAccess => "NodeAccess",
            Self::NodeTainted => "NodeTainted",
            Self::AgentReady => "AgentReady",
        }
    }
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The condition is unknown.
    Unknown,
}

impl ConditionStatus {
    /// The status as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The desired value of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    /// Which condition.
    pub kind: ConditionType,
    /// Its status.
    pub status: ConditionStatus,
    /// Why.
    pub reason: Reason,
    /// One sentence, truncated to Kubernetes' 32,768 characters when set.
    pub message: String,
}

impl ConditionUpdate {
    /// An update with the message on one line.
    pub fn new(
        kind: ConditionType,
        status: impl Into<ConditionStatus>,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status: status.into(),
            reason,
            message: message.into(),
        }
    }
}

/// Sets one condition. The other conditions keep their order, which is that of
/// [`ConditionType`]; conditions of other types follow them.
///
/// If the status differs from the previous one, the transition time is `now`, in whole seconds
/// as the API stores it; otherwise it is kept. Setting an equal condition again changes only
/// `observedGeneration`.
///
/// # Example
/// ```
/// use fivespot_api::condition::{self, ConditionType, ConditionUpdate, Reason};
/// let (monday, tuesday) = ("2026-03-02T09:00:00Z".parse()?, "2026-03-03T09:00:00Z".parse()?);
/// let mut all = Vec::new();
/// let ready = ConditionUpdate::new(ConditionType::Ready, true, Reason::MachineRunning, "in service");
/// condition::set(&mut all, ready.clone(), Some(1), monday);
/// condition::set(&mut all, ready, Some(2), tuesday);
/// assert_eq!(all.len(), 1);
/// assert_eq!(all[0].last_transition_time.0, monday);
/// assert_eq!(all[0].observed_generation, Some(2));
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn set(
    conditions: &mut Vec<Condition>,
    next: ConditionUpdate,
    observed_generation: Option<i64>,
    now: Timestamp,
) {
    let now = whole_seconds(now);
    let since = find(conditions, next.kind).map_or(now, |before| {
        let then = before.last_transition_time.0;
        if before.status == next.status.as_str() {
            then
        } else {
            // The clock may have been set back since then.
            now.max(then)
        }
    });
    remove(conditions, next.kind);
    conditions.push(Condition {
        last_transition_time: Time(since),
        message: next.message.chars().take(MAX_MESSAGE).collect(),
        observed_generation,
        reason: next.reason.as_str().to_owned(),
        status: next.status.as_str().to_owned(),
        type_: next.kind.as_str().to_owned(),
    });
    conditions.sort_by_key(rank);
}

/// Removes one condition, if it is there.
pub fn remove(conditions: &mut Vec<Condition>, kind: ConditionType) {
    conditions.retain(|condition| condition.type_ != kind.as_str());
}

/// Finds one condition.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == kind.as_str())
}

/// The position of a condition in a status; foreign types come last, in their previous order.
fn rank(condition: &Condition) -> usize {
    ConditionType::ALL
        .iter()
        .position(|kind| kind.as_str() == condition.type_)
        .unwrap_or(ConditionType::ALL.len())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

    use super::{ConditionStatus, ConditionType, ConditionUpdate, Reason, find, set};

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 700_000_000).unwrap()
    }

    fn ready(status: ConditionStatus, reason: Reason) -> ConditionUpdate {
        ConditionUpdate::new(ConditionType::Ready, status, reason, "as said")
    }

    #[test]
    fn the_transition_time_changes_with_the_status_and_not_with_the_reason() {
        let mut all = Vec::new();
        set(
            &mut all,
            ready(ConditionStatus::False, Reason::Provisioning),
            Some(1),
            at(10),
        );
        set(
            &mut all,
            ready(ConditionStatus::False, Reason::NodeNotReady),
            Some(1),
            at(20),
        );
        let since = |all: &[Condition]| all[0].last_transition_time.0.as_second();
        assert_eq!((since(&all), all[0].reason.as_str()), (10, "NodeNotReady"));
        set(
            &mut all,
            ready(ConditionStatus::True, Reason::MachineRunning),
            Some(2),
            at(30),
        );
        assert_eq!(since(&all), 30);
    }

    #[test]
    fn a_transition_time_is_never_earlier_than_the_one_before_it() {
        let mut all = Vec::new();
        let ready = |status| ready(status, Reason::Inactive);
        set(&mut all, ready(ConditionStatus::False), None, at(100));
        set(&mut all, ready(ConditionStatus::True), None, at(40));
        assert_eq!(all[0].last_transition_time.0.as_second(), 100);
    }

    #[test]
    fn a_condition_reads_back_from_json_unchanged() {
        let mut all = Vec::new();
        set(
            &mut all,
            ready(ConditionStatus::True, Reason::Inactive),
            None,
            at(10),
        );
        let stored: Vec<Condition> =
            serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
        assert_eq!(stored, all);
    }

    #[test]
    fn conditions_keep_their_order_and_foreign_ones_their_place_at_the_end() {
        let foreign = Condition {
            last_transition_time: Time(at(1)),
            message: String::new(),
            observed_generation: None,
            reason: "Other".to_owned(),
            status: "True".to_owned(),
            type_: "example.com/Foreign".to_owned(),
        };
        let mut all = vec![foreign.clone()];
        for kind in ConditionType::ALL.into_iter().rev() {
            set(
                &mut all,
                ConditionUpdate::new(kind, true, Reason::Valid, ""),
                None,
                at(2),
            );
        }
        let types: Vec<_> = all
            .iter()
            .map(|condition| condition.type_.as_str())
            .collect();
        let mut expected = ConditionType::ALL.map(ConditionType::as_str).to_vec();
        expected.push("example.com/Foreign");
        assert_eq!(types, expected);
        assert_eq!(all.last(), Some(&foreign));
    }

    #[test]
    fn foreign_reasons_are_written_in_a_form_that_kubernetes_admits() {
        let written =
            |words: &str| Reason::Reported(words.to_owned()).as_str().to_owned();
        assert_eq!(written("DrainingNode"), "DrainingNode");
        for words in ["", "not one word", "1st", "Ends:", "Größe"] {
            assert_eq!(written(words), "Reported");
        }
    }

    #[test]
    fn a_message_over_the_kubernetes_limit_is_cut_between_characters() {
        let mut all = Vec::new();
        let long = "ä".repeat(40_000);
        set(
            &mut all,
            ConditionUpdate::new(ConditionType::Ready, true, Reason::Valid, long),
            None,
            at(1),
        );
        let message = &find(&all, ConditionType::Ready).unwrap().message;
        assert_eq!(message.chars().count(), 32_768);
    }
}
