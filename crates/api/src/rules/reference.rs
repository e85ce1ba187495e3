//! What is required of a reference in `spec.schedule` to a shared schedule.

use super::predicate;
use super::requirement::Requirement;

pub(super) const NO_FORM_BESIDE_REFERENCE: Requirement = Requirement::new(
    "!has(self.kind) || !has(self.cron) && !has(self.duration) && !has(self.windows) \
    && (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    predicate::has_no_form_beside_reference,
    "a reference is mutually exclusive with cron, duration, windows, daysOfWeek and hoursOfDay",
)
.reading(&["kind", "windows", "cron", "duration", "daysOfWeek", "hoursOfDay"]);

pub(super) const WHOLE_REFERENCE: Requirement = Requirement::new(
    "has(self.apiVersion) == has(self.kind) && has(self.kind) == has(self.name)",
    predicate::is_whole_reference,
    "apiVersion, kind and name must be set together",
)
.reading(&["apiVersion", "kind", "name"]);

pub(super) const NO_REFERENCE: Requirement = Requirement::new(
    "!has(self.apiVersion) && !has(self.kind) && !has(self.name)",
    predicate::is_no_reference,
    "apiVersion, kind and name must not be set: a shared schedule cannot follow another",
)
.reading(&["apiVersion", "kind", "name"]);

pub(super) const SPOT_GROUP: Requirement = Requirement::new(
    "self.matches('^spotschedules[.]5spot[.]finos[.]org/[a-z0-9]+$')",
    predicate::is_of_spot_group,
    "must be of group spotschedules.5spot.finos.org, such as \
    'spotschedules.5spot.finos.org/v1alpha1'",
);

pub(super) const SCHEDULE_KIND: Requirement = Requirement::new(
    "self.matches('^[A-Z][A-Za-z0-9]{0,62}$')",
    predicate::is_schedule_kind,
    "must be a kind, such as TimeBasedSpotSchedule: at most 63 letters and digits, the first an \
    upper-case letter",
);

pub(super) const SCHEDULE_NAME: Requirement = Requirement::new(
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
    predicate::is_object_name,
    "must be the name of an object: lower-case letters, digits, '-' and '.', a letter or digit \
    at both ends",
);
