//! The API: the ScheduledMachine resource and its companions, their rules, names and
//! conditions.
//!
//! - [`resource`]: the kinds of the group; everything that is rendered iterates over them
//! - [`schedule_override`], [`schedule_calendar`]: objects that change schedules from outside
//! - [`spot_schedule`]: schedules that many objects share
//! - [`scheduled_capacity`]: a value of another object that follows a schedule
//! - [`scheduled_machine_set`]: a number of machines that are alike
//! - [`scheduled_machine`]: the spec and its defaults; [`status`]: what was observed and
//!   decided
//! - [`name`]: every label, annotation and child name, built and parsed in one place
//! - [`condition`]: condition types and reasons, and how to set a condition
//! - [`rules`]: the validation rules, one row per rule
//! - [`older`]: conversion of the forms of earlier manifests
//! - [`lint`]: warnings about settings that are valid but rarely intended
//! - [`crd`], [`vap`]: the CRD and the admission policy, rendered from the rules; [`manifest`]:
//!   as files
//! - [`reclaim`]: what the operator and the agent on a node exchange
//! - [`spec_hash`]: the hash of what a machine is created from
//! - [`verdict`]: the state of a machine as every reader shows it
//! - [`time`]: rounds instants to the precision of the API
//!
//! Pure: no client, no clock, no I/O.

pub mod canonical;
pub mod condition;
pub mod crd;
pub mod host_claim;
mod label_selector;
pub mod lint;
pub mod manifest;
pub mod name;
mod object;
pub mod older;
pub mod port;
pub mod reclaim;
pub mod reference;
pub mod resource;
pub mod rules;
pub mod schedule_calendar;
pub mod schedule_override;
pub mod scheduled_capacity;
pub mod scheduled_machine;
pub mod scheduled_machine_class;
pub mod scheduled_machine_set;
mod schema;
pub mod spec_hash;
pub mod spot_schedule;
pub mod status;
pub mod time;
pub mod vap;
pub mod verdict;

pub use resource::{RESOURCES, Resource};
pub use schedule_calendar::{CalendarDate, ScheduleCalendar, ScheduleCalendarSpec};
pub use schedule_override::{
    OverrideMode, ScheduleOverride, ScheduleOverrideSpec, ScheduleOverrideStatus,
    TargetKind, TargetRef,
};
pub use scheduled_capacity::{
    CapacityPhase, ScheduledCapacity, ScheduledCapacitySpec, ScheduledCapacityStatus,
};
pub use scheduled_machine::{
    CalendarRef, EnabledField, EndPolicy, Enforcement, ExceptionAction, InlineMetadata,
    InlineObject, MAX_APPLIED_TAINTS, MAX_TAINTS, MachineTemplate, NodeTaint,
    Provisioning, ReclaimSpec, ReturnSpec, ScheduleException, ScheduleSpec,
    ScheduleWindow, ScheduledMachine, ScheduledMachineSpec, ShutdownSpec, TaintEffect,
};
pub use scheduled_machine_class::{
    ClassHost, ClassLimits, ClassProblem, ClassRef, HostPool, LimitsOfClass, MAX_HOSTS,
    PreparedClass, RatesOfClass, ResolvedClass, ScheduledMachineClass,
    ScheduledMachineClassSpec, merge,
};
pub use scheduled_machine_set::{
    MachineOfSet, ScheduledMachineSet, ScheduledMachineSetSpec, ScheduledMachineSetStatus,
};
pub use spot_schedule::{
    CapitalMarketsSchedule, CapitalMarketsScheduleSpec, Provided, Resolved,
    SharedSchedule, SharedSpec, SpotScheduleRef, SpotScheduleStatus,
    TimeBasedSpotSchedule, Unfollowable,
};
pub use status::{
    AccountedState, FollowedSchedule, HostReturn, LastProvisioning, NodeRef, ObjectRef,
    OverrideInForce, Phase, ScheduledMachineStatus, Shutdown, ShutdownReason, Usage,
    UsageMonth, WeeklyUse,
};
