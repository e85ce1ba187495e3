//! What a node must be: a CEL expression, the same predicate in Rust, and the message. Several
//! fields share one requirement.
//!
//! Expressions use nothing newer than the CEL environment of Kubernetes 1.29, and write `[.]` for
//! `\\.` so that they need no escapes in CEL, JSON or YAML.

use serde_json::Value;

use super::predicate;

/// A rule in Rust, called with the node and the whole object.
pub type Predicate = fn(&Value, &Value) -> bool;

/// Where a rule can be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// In the CRD's schema, and again in the policy.
    SchemaAndPolicy,
    /// Only in the policy: the schema cannot access what the rule reads, or cannot bound its
    /// cost.
    Policy,
    /// In both; compares the object with its previous value.
    Change,
}

/// What the node of a rule must be.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// The CEL expression that must be true. `self` is the node. An expression of
    /// [`Layer::Policy`] may also use `object`; in one of [`Layer::Change`] `self` and
    /// `oldSelf` are the whole objects.
    pub cel: &'static str,
    /// The members of the node that the expression reads; empty if it reads the node itself.
    pub inputs: &'static [&'static str],
    /// The message: what the node must be.
    pub message: &'static str,
    /// Where it can be enforced.
    pub layer: Layer,
    /// The same in Rust, on the node and the whole object; `None` for a requirement about a
    /// change.
    pub predicate: Option<Predicate>,
    /// Whether it is that the last member of the rule's path must not be missing. The node is then
    /// the one before it, and API servers report it as they report a missing field.
    pub(crate) is_about_absence: bool,
}

impl Requirement {
    pub(super) const fn new(
        cel: &'static str,
        predicate: Predicate,
        message: &'static str,
    ) -> Self {
        Self {
            cel,
            inputs: &[],
            message,
            layer: Layer::SchemaAndPolicy,
            predicate: Some(predicate),
            is_about_absence: false,
        }
    }

    /// A requirement that compares the object with its previous value.
    pub(super) const fn of_change(cel: &'static str, message: &'static str) -> Self {
        Self {
            cel,
            inputs: &[],
            message,
            layer: Layer::Change,
            predicate: None,
            is_about_absence: false,
        }
    }

    pub(super) const fn about_absence(self) -> Self {
        Self {
            is_about_absence: true,
            ..self
        }
    }

    pub(super) const fn reading(self, inputs: &'static [&'static str]) -> Self {
        Self { inputs, ..self }
    }

    pub(super) const fn only_in_policy(self) -> Self {
        Self {
            layer: Layer::Policy,
            ..self
        }
    }
}

/// A text that is not empty; the message differs from field to field.
pub(super) const fn not_empty(message: &'static str) -> Requirement {
    Requirement::new("self.size() > 0", predicate::is_not_empty, message)
}

/// A duration as [`fivespot_schedule::Duration`] reads it.
pub(super) const DURATION: Requirement = Requirement::new(
    "self.matches('^[0-9]+[smh]$')",
    predicate::is_a_duration,
    "must be a duration string such as '5m', '30s', or '1h'",
);

/// The regular expression allows only as many digits as a duration within the bound can have,
/// so that the argument of CEL's `duration()` is always in its range.
pub(super) const AT_MOST_A_DAY: Requirement = Requirement::new(
    "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,5}[smh]$') && duration(self) <= duration('24h')",
    predicate::is_at_most_a_day,
    "must be at most 24h",
);

pub(super) const A_FIRING: Requirement = Requirement::new(
    "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,6}[smh]$') \
    && duration(self) >= duration('1m') && duration(self) <= duration('168h')",
    predicate::is_a_firing,
    "must be from 1m to 168h",
);

pub(super) const AT_MOST_TWO_HOURS: Requirement = Requirement::new(
    "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,4}[smh]$') && duration(self) <= duration('2h')",
    predicate::is_at_most_two_hours,
    "must be at most 2h",
);

pub(super) const A_MINUTE_TO_A_DAY: Requirement = Requirement::new(
    "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,5}[smh]$') \
    && duration(self) >= duration('1m') && duration(self) <= duration('24h')",
    predicate::is_a_minute_to_a_day,
    "must be from 1m to 24h",
);

pub(super) const A_MINUTE_TO_TWO_WEEKS: Requirement = Requirement::new(
    "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,7}[smh]$') \
    && duration(self) >= duration('1m') && duration(self) <= duration('336h')",
    predicate::is_a_minute_to_two_weeks,
    "must be from 1m to 336h",
);

pub(super) const DAYS: Requirement = Requirement::new(
    "self.matches(\
    '^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?\
    (,(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?)*$')",
    predicate::are_days,
    "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
);

pub(super) const HOURS: Requirement = Requirement::new(
    "self.matches('^[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*$')",
    predicate::are_hours,
    "must be hours or ranges (e.g. '9', '9-17', '0-9,18-23')",
);

pub(super) const HOURS_OF_A_DAY: Requirement = Requirement::new(
    "\
    !self.matches('^[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*$') \
    || self.matches('^([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?\
    (,([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)*$')",
    predicate::are_hours_of_a_day,
    "hours must be from 0 to 23",
);

pub(super) const FIVE_FIELDS: Requirement = Requirement::new(
    "self.matches('^[^ ]+( +[^ ]+){4}$')",
    predicate::has_five_fields,
    "must be five fields: minute, hour, day of month, month, day of week",
);

/// One field of a cron expression of five fields: the fields before it, one value of it as a
/// regular expression, and the fields after it.
macro_rules! cron_field {
    ($before:literal, $value:literal, $after:literal) => {
        concat!(
            "!self.matches('^[^ ]+( +[^ ]+){4}$') || self.matches('(?i)",
            $before,
            cron_field!(entry $value),
            "(,",
            cron_field!(entry $value),
            ")*",
            $after,
            "')"
        )
    };
    (entry $value:literal) => {
        concat!(
            "([*](/0*[1-9][0-9]*)?|(",
            $value,
            ")(-(",
            $value,
            ")(/0*[1-9][0-9]*)?)?)"
        )
    };
}

pub(super) const CRON_MINUTES: Requirement = Requirement::new(
    cron_field!("^", "0*[1-5]?[0-9]", " "),
    predicate::has_cron_minutes,
    "minutes must be from 0 to 59",
);
pub(super) const CRON_HOURS: Requirement = Requirement::new(
    cron_field!("^[^ ]+ +", "0*(1?[0-9]|2[0-3])", " "),
    predicate::has_cron_hours,
    "hours must be from 0 to 23",
);
pub(super) const CRON_DAYS_OF_MONTH: Requirement = Requirement::new(
    cron_field!("^([^ ]+ +){2}", "0*([1-9]|[12][0-9]|3[01])", " "),
    predicate::has_cron_days_of_month,
    "days of the month must be from 1 to 31",
);
pub(super) const CRON_MONTHS: Requirement = Requirement::new(
    cron_field!(
        "^([^ ]+ +){3}",
        "0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
        " "
    ),
    predicate::has_cron_months,
    "months must be from 1 to 12 or jan to dec",
);
pub(super) const CRON_DAYS_OF_WEEK: Requirement = Requirement::new(
    cron_field!(" ", "0*[0-7]|sun|mon|tue|wed|thu|fri|sat", "$"),
    predicate::has_cron_days_of_week,
    "days of the week must be from 0 to 7 or sun to sat",
);

pub(super) const VERSION: Requirement = Requirement::new(
    "!self.contains('/') || self.matches('^[^/]*/v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$')",
    predicate::has_version,
    "must end in a version such as 'v1beta1'",
);

/// Kubernetes' qualified name, as of a label or a taint.
macro_rules! is_qualified {
    ($text:literal) => {
        concat!(
            $text,
            ".matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
            "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && ",
            $text,
            ".matches('^([^/]{1,253}/)?[^/]+$')"
        )
    };
}

pub(super) const QUALIFIED_NAME: Requirement = Requirement::new(
    is_qualified!("self"),
    predicate::is_taint_key,
    "must be a qualified name: at most 63 letters, digits, '-', '_' and '.', \
    optionally after a DNS subdomain and '/'",
);
pub(super) const QUALIFIED_KEYS: Requirement = Requirement::new(
    concat!("self.all(key, ", is_qualified!("key"), ")"),
    predicate::has_qualified_keys,
    "keys must be qualified names: at most 63 letters, digits, '-', '_' and '.', \
    optionally after a DNS subdomain and '/'",
)
.only_in_policy();

pub(super) const NO_RESERVED_KEYS: Requirement = Requirement::new(
    "self.all(key, \
    !key.matches('^([^/]*[.])?(5spot[.]finos[.]org|5spot[.]eribourg[.]dev\
    |kubernetes[.]io|k8s[.]io|cluster[.]x-k8s[.]io)/') \
    || key.matches('^(node-role[.]kubernetes[.]io|node-restriction[.]kubernetes[.]io\
    |node[.]cluster[.]x-k8s[.]io)/') \
    || key in ['cluster.x-k8s.io/skip-remediation', \
    'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach'])",
    predicate::has_no_reserved_keys,
    "keys must not be reserved by Kubernetes, Cluster API or 5-Spot",
)
.only_in_policy();

pub(super) const LABEL_VALUE: Requirement = Requirement::new(
    "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')",
    predicate::is_label_value,
    "must be empty, or at most 63 letters, digits, '-', '_' and '.' with a \
    letter or digit at both ends",
);
pub(super) const LABEL_VALUES: Requirement = Requirement::new(
    "self.all(key, \
    self[key].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",
    predicate::has_label_values,
    "values must be empty, or at most 63 letters, digits, '-', '_' and '.' with \
    a letter or digit at both ends",
);

pub(super) const NO_RESERVED_TAINT: Requirement = Requirement::new(
    "!self.matches('^(5spot[.]finos[.]org|kubernetes[.]io\
    |node[.]kubernetes[.]io|node-role[.]kubernetes[.]io)/')",
    predicate::is_not_reserved_for_taints,
    "must not begin with 5spot.finos.org/, kubernetes.io/, node.kubernetes.io/ \
    or node-role.kubernetes.io/",
);

pub(super) const KUBERNETES_VERSION: Requirement = Requirement::new(
    "self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$')",
    predicate::is_kubernetes_version,
    "must be a Kubernetes version such as 'v1.31.2'",
);

pub(super) const BOUNDED_SIZE: Requirement = Requirement::new(
    "self.map(key, bytes(key).size() + bytes(self[key]).size()).sum() <= 65536",
    predicate::are_of_bounded_size,
    "keys and values together must be at most 64 KiB",
)
.only_in_policy();

pub(super) const TWO_KINDS: Requirement = Requirement::new(
    "!has(self.bootstrapSpec) || !has(self.infrastructureSpec) \
    || self.bootstrapSpec.kind != self.infrastructureSpec.kind \
    || self.bootstrapSpec.apiVersion.split('/')[0] \
    != self.infrastructureSpec.apiVersion.split('/')[0]",
    predicate::has_two_kinds,
    "bootstrapSpec and infrastructureSpec must not have the same group and kind",
)
.reading(&[
    "bootstrapSpec.apiVersion",
    "bootstrapSpec.kind",
    "infrastructureSpec.apiVersion",
    "infrastructureSpec.kind",
]);

pub(super) const NO_NAME: Requirement = Requirement::new(
    "!has(self.name)",
    predicate::has_no_name,
    "name must not be set: the object has the name of the ScheduledMachine",
)
.reading(&["name"]);

pub(super) const NO_NAMESPACE: Requirement = Requirement::new(
    "!has(self.namespace)",
    predicate::has_no_namespace,
    "namespace must not be set: the object is in the namespace of the ScheduledMachine",
);

pub(super) const NO_KATA: Requirement = Requirement::new(
    "!has(self.kata)",
    predicate::has_no_kata,
    "kata is not part of this API; remove it and configure the host's container runtime \
    outside of 5-Spot, see docs/migration.md",
)
.reading(&["kata"]);

pub(super) const COMMANDS_ONCE: Requirement = Requirement::new(
    "!has(self.killIfCommands) || !has(self.reclaim) || !has(self.reclaim.commands)",
    predicate::has_commands_once,
    "killIfCommands is mutually exclusive with reclaim.commands — set one or the other, not both",
)
.reading(&["killIfCommands", "reclaim"]);

pub(super) const NAME: Requirement = Requirement::new(
    "self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
    predicate::is_name,
    "must be a DNS label of at most 63 characters: lower-case letters, digits \
    and '-', a letter or digit at both ends",
);

pub(super) const NO_OTHER_FORM: Requirement = Requirement::new(
    "!has(self.windows) || !has(self.cron) && !has(self.duration) \
    && (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    predicate::has_no_other_form,
    "windows is mutually exclusive with cron, duration, daysOfWeek and hoursOfDay",
)
.reading(&["windows", "cron", "duration", "daysOfWeek", "hoursOfDay"]);

pub(super) const WINDOW_DAYS: Requirement = Requirement::new(
    "self.all(day, day.matches(\
    '^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?\
    (,(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?)*$'))",
    predicate::are_all_days,
    "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
);

pub(super) const TIME_OF_DAY: Requirement = Requirement::new(
    "self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",
    predicate::is_time_of_day,
    "must be a time of day from '00:00' to '23:59'",
);

/// A date that exists, `YYYY-MM-DD`, as a regular expression.
macro_rules! date {
    () => {
        concat!(
            "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])",
            "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
            "|([0-9]{2}(0[48]|[2468][048]|[13579][26])",
            "|([02468][048]|[13579][26])00)-02-29)"
        )
    };
}
pub(super) use date;

pub(super) const A_DATE: Requirement = Requirement::new(
    concat!("self.matches('^", date!(), "$')"),
    predicate::is_a_date,
    "must be a date such as '2026-12-24'",
);

pub(super) const CALENDAR_OR_DATES: Requirement = Requirement::new(
    "(has(self.calendarRef) ? !has(self.startDate) && !has(self.endDate) \
    : has(self.startDate) && has(self.endDate))",
    predicate::has_calendar_or_dates,
    "either calendarRef, or both startDate and endDate must be set",
)
.reading(&["calendarRef", "startDate", "endDate"]);

pub(super) const DATES_IN_ORDER: Requirement = Requirement::new(
    "!has(self.startDate) || !has(self.endDate) \
    || !self.startDate.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}$') \
    || !self.endDate.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}$') \
    || self.startDate <= self.endDate",
    predicate::has_dates_in_order,
    "endDate must not be before startDate",
)
.reading(&["startDate", "endDate"]);

pub(super) const OBJECT_NAME: Requirement = Requirement::new(
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
    predicate::is_object_name,
    "must be the name of a ScheduleCalendar: lower-case letters, digits, '-' and \
    '.', a letter or digit at both ends",
);

pub(super) const CRON_OR_LISTS: Requirement = Requirement::new(
    "!has(self.cron) || (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    predicate::is_cron_or_lists,
    "cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the \
    other, not both",
)
.reading(&["cron", "daysOfWeek", "hoursOfDay", "windows", "kind"]);

pub(super) const COMPLETE: Requirement = Requirement::new(
    "has(self.cron) || has(self.windows) || has(self.kind) || has(self.daysOfWeek) \
    && self.daysOfWeek.size() > 0 && has(self.hoursOfDay) && self.hoursOfDay.size() > 0",
    predicate::is_complete,
    "both daysOfWeek and hoursOfDay must be non-empty",
)
.reading(&["cron", "daysOfWeek", "hoursOfDay", "windows", "kind"]);

pub(super) const GROUP: Requirement = Requirement::new(
    "self.contains('/')",
    predicate::has_group,
    "must use a namespaced API group",
);

pub(super) const BOOTSTRAP_GROUP: Requirement = Requirement::new(
    "!self.contains('/') || self.startsWith('bootstrap.cluster.x-k8s.io/') \
    || self.startsWith('k0smotron.io/')",
    predicate::is_bootstrap_group,
    "must be from an allowed group: bootstrap.cluster.x-k8s.io or k0smotron.io",
);

pub(super) const INFRASTRUCTURE_GROUP: Requirement = Requirement::new(
    "!self.contains('/') || self.startsWith('infrastructure.cluster.x-k8s.io/') \
    || self.startsWith('k0smotron.io/')",
    predicate::is_infrastructure_group,
    "must be from an allowed group: infrastructure.cluster.x-k8s.io or k0smotron.io",
);

pub(super) const CLUSTER_NAME: Requirement = Requirement::new(
    "self.size() == 0 || self.matches('^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$')",
    predicate::is_cluster_name,
    "must be at most 63 letters, digits, '.', '_' and '-', the first a letter or digit",
);

pub(super) const SAME_CLUSTER: Requirement = Requirement::of_change(
    "!has(oldSelf.status) \
    || !(has(oldSelf.status.machineRef) && has(oldSelf.status.machineRef.uid) \
    || has(oldSelf.status.bootstrapRef) && has(oldSelf.status.bootstrapRef.uid) \
    || has(oldSelf.status.infrastructureRef) \
    && has(oldSelf.status.infrastructureRef.uid)) \
    || has(self.spec.clusterName) == has(oldSelf.spec.clusterName) \
    && (!has(self.spec.clusterName) || self.spec.clusterName == oldSelf.spec.clusterName)",
    "must not change while the machine exists; wait until it is removed",
);

pub(super) const NOT_AUDITED_WHILE_IT_EXISTS: Requirement = Requirement::of_change(
    "!has(self.spec.enforcement) || self.spec.enforcement != 'Audit' \
    || has(oldSelf.spec.enforcement) && oldSelf.spec.enforcement == 'Audit' \
    || !has(oldSelf.status) \
    || !(has(oldSelf.status.machineRef) && has(oldSelf.status.machineRef.uid) \
    || has(oldSelf.status.bootstrapRef) && has(oldSelf.status.bootstrapRef.uid) \
    || has(oldSelf.status.infrastructureRef) \
    && has(oldSelf.status.infrastructureRef.uid))",
    "must not be changed to Audit while the machine exists; wait until it is removed, or keep it \
    as it is with an override of mode Hold",
);

pub(super) const DURATION_ONLY_WITH_CRON: Requirement = Requirement::new(
    "!has(self.duration) || has(self.cron) || has(self.windows) || has(self.kind)",
    predicate::has_duration_only_with_cron,
    "duration must not be set without cron",
)
.reading(&["cron", "duration", "windows", "kind"]);

pub(super) const ZONE_NAME: Requirement = Requirement::new(
    "self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$')",
    predicate::is_zone_name,
    "must be an IANA time zone name such as 'Europe/Zurich'",
);

pub(super) const KIND: Requirement = Requirement::new(
    "self.size() == 0 || self.matches('^[A-Z][A-Za-z0-9]{0,62}$')",
    predicate::is_kind,
    "must be at most 63 letters and digits, the first an upper-case letter",
);

pub(super) const KIND_OF_ONE_MACHINE: Requirement = Requirement::new(
    "!self.matches('(Template|Cluster|List|Identity)$')",
    predicate::is_kind_of_one_machine,
    "must be the kind of an object of one machine, not a template, cluster, list or \
    identity",
);

pub(super) const OWN_NAMESPACE: Requirement = Requirement::new(
    "self == object.metadata.?namespace.orValue(self)",
    predicate::is_own_namespace,
    "must be the namespace of the ScheduledMachine",
)
.only_in_policy();

pub(super) const NOT_BLANK: Requirement = Requirement::new(
    "self.matches('[^ ]')",
    predicate::is_not_blank,
    "must not be blank",
);

pub(super) const ONE_END: Requirement = Requirement::new(
    "has(self.end) != has(self.duration)",
    predicate::has_one_end,
    "exactly one of end and duration must be set",
)
.reading(&["end", "duration"]);
