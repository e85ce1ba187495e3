//! The table. The order is the order in which the policy asks and the reference page lists.
//!
//! Rules 1 to 13 are those of the admission document, in its words. Expressions use nothing newer
//! than the CEL environment of Kubernetes 1.29, and write `[.]` for `\\.` so that they need no
//! escapes in CEL, JSON or YAML. Where one mistake would break several rules of one field, all but
//! the first keep quiet.

use super::{Examples, Layer, Rule, predicate};

/// A duration as [`fivespot_schedule::Duration`] reads it.
const DURATION: &str = "self.matches('^[0-9]+[smh]$')";

/// No more digits are looked at than a duration within the bound can have, so that CEL's
/// `duration()` is never given more than it can hold.
const AT_MOST_A_DAY: &str = "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,5}[smh]$') && duration(self) <= duration('24h')";

const A_FIRING: &str = "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,6}[smh]$') \
    && duration(self) >= duration('1m') && duration(self) <= duration('168h')";

const NO_LAST_CALL: &str = "!self.matches('^[0-9]+[smh]$') || self.matches('^0+[smh]$')";

const AT_MOST_TWO_HOURS: &str = "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,4}[smh]$') && duration(self) <= duration('2h')";

const A_MINUTE_TO_A_DAY: &str = "!self.matches('^[0-9]+[smh]$') \
    || self.matches('^0*[0-9]{1,5}[smh]$') \
    && duration(self) >= duration('1m') && duration(self) <= duration('24h')";

const DAYS: &str = "self.matches(\
    '^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?\
    (,(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?)*$')";

const HOURS: &str =
    "self.matches('^[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*$')";

const HOURS_OF_A_DAY: &str = "\
    !self.matches('^[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*$') \
    || self.matches('^([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?\
    (,([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)*$')";

const FIVE_FIELDS: &str = "self.matches('^[^ ]+( +[^ ]+){4}$')";

/// One field of a cron expression that has five: what stands before it, one value of it as a
/// regular expression, what stands after it.
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

const CRON_MINUTES: &str = cron_field!("^", "0*[1-5]?[0-9]", " ");
const CRON_HOURS: &str = cron_field!("^[^ ]+ +", "0*(1?[0-9]|2[0-3])", " ");
const CRON_DAYS_OF_MONTH: &str =
    cron_field!("^([^ ]+ +){2}", "0*([1-9]|[12][0-9]|3[01])", " ");
const CRON_MONTHS: &str = cron_field!(
    "^([^ ]+ +){3}",
    "0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
    " "
);
const CRON_DAYS_OF_WEEK: &str =
    cron_field!(" ", "0*[0-7]|sun|mon|tue|wed|thu|fri|sat", "$");

const VERSION: &str = "!self.contains('/') || self.matches('^[^/]*/v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$')";

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

const QUALIFIED_NAME: &str = is_qualified!("self");
const QUALIFIED_KEYS: &str = concat!("self.all(key, ", is_qualified!("key"), ")");

const NO_RESERVED_KEYS: &str = "self.all(key, \
    !key.matches('^([^/]*[.])?(5spot[.]finos[.]org|5spot[.]eribourg[.]dev\
    |kubernetes[.]io|k8s[.]io|cluster[.]x-k8s[.]io)/') \
    || key.matches('^(node-role[.]kubernetes[.]io|node-restriction[.]kubernetes[.]io\
    |node[.]cluster[.]x-k8s[.]io)/') \
    || key in ['cluster.x-k8s.io/skip-remediation', \
    'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach'])";

const LABEL_VALUE: &str =
    "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')";
const LABEL_VALUES: &str = "self.all(key, \
    self[key].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))";

const NO_RESERVED_TAINT: &str = "!self.matches('^(5spot[.]finos[.]org|kubernetes[.]io\
    |node[.]kubernetes[.]io|node-role[.]kubernetes[.]io)/')";

const KUBERNETES_VERSION: &str = "self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$')";

const BOUNDED_SIZE: &str =
    "self.map(key, bytes(key).size() + bytes(self[key]).size()).sum() <= 65536";

const TWO_KINDS: &str = "self.bootstrapSpec.kind != self.infrastructureSpec.kind \
    || self.bootstrapSpec.apiVersion.split('/')[0] \
    != self.infrastructureSpec.apiVersion.split('/')[0]";

pub(super) const NAME: &str = "self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')";

const NO_OTHER_FORM: &str = "!has(self.windows) || !has(self.cron) && !has(self.duration) \
    && (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)";

const WINDOW_DAYS: &str = "self.all(day, day.matches(\
    '^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?\
    (,(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?)*$'))";

const TIME_OF_DAY: &str = "self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')";

/// A date that some calendar has, `YYYY-MM-DD`, as a regular expression.
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

pub(super) const A_DATE: &str = concat!("self.matches('^", date!(), "$')");

const CALENDAR_OR_DATES: &str = "(has(self.calendarRef) \
    ? !has(self.startDate) && !has(self.endDate) : has(self.startDate) && has(self.endDate))";

pub(super) const DATES_IN_ORDER: &str = "!has(self.startDate) || !has(self.endDate) \
    || !self.startDate.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}$') \
    || !self.endDate.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}$') \
    || self.startDate <= self.endDate";

const OBJECT_NAME: &str =
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";

/// Every rule about a ScheduledMachine.
pub const RULES: &[Rule] = &[
    Rule {
        id: "SM001",
        path: "spec.clusterName",
        cel: "self.size() > 0",
        inputs: &[],
        message: "spec.clusterName must not be empty",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_empty),
        examples: Examples::Text {
            accepts: &["prod"],
            rejects: &[""],
        },
        why: "The machine joins the Cluster of this name.",
    },
    Rule {
        id: "SM002",
        path: "spec.gracefulShutdownTimeout",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["0s", "30s", "5m", "24h", "007m"],
            rejects: &["", "5", "5 m", "m5", "five minutes", "1.5h", "-5m", "5M"],
        },
        why: "An invalid duration would only be noticed when the machine shuts down.",
    },
    Rule {
        id: "SM003",
        path: "spec.nodeDrainTimeout",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["0s", "30s", "5m", "24h", "007m"],
            rejects: &["", "5", "5 m", "m5", "five minutes", "1.5h", "-5m", "5M"],
        },
        why: "An invalid duration would only be noticed when the machine shuts down.",
    },
    Rule {
        id: "SM004",
        path: "spec.schedule",
        cel: "!has(self.cron) || (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
              && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
        inputs: &["cron", "daysOfWeek", "hoursOfDay", "windows"],
        message: "cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the other, not both",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_cron_or_lists),
        examples: Examples::Json {
            accepts: &[
                r#"{"cron": "0 9-17 * * 1-5"}"#,
                r#"{"cron": "0 9 * * *", "daysOfWeek": [], "hoursOfDay": []}"#,
                r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}"#,
            ],
            rejects: &[
                r#"{"cron": "0 9-17 * * 1-5", "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}"#,
                r#"{"cron": "0 9 * * *", "hoursOfDay": ["9"]}"#,
            ],
        },
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM005",
        path: "spec.schedule",
        cel: "has(self.cron) || has(self.windows) || has(self.daysOfWeek) \
              && self.daysOfWeek.size() > 0 && has(self.hoursOfDay) && self.hoursOfDay.size() > 0",
        inputs: &["cron", "daysOfWeek", "hoursOfDay", "windows"],
        message: "both daysOfWeek and hoursOfDay must be non-empty",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_complete),
        examples: Examples::Json {
            accepts: &[
                r#"{"daysOfWeek": ["sat"], "hoursOfDay": ["0-23"]}"#,
                r#"{"cron": "0 9 * * *"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}"#,
            ],
            rejects: &[
                "{}",
                r#"{"daysOfWeek": ["mon-fri"]}"#,
                r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": []}"#,
                r#"{"hoursOfDay": ["9-17"]}"#,
            ],
        },
        why: "Days without hours, or hours without days, have no window.",
    },
    Rule {
        id: "SM006",
        path: "spec.schedule.daysOfWeek[]",
        cel: DAYS,
        inputs: &[],
        message: "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::are_days),
        examples: Examples::Text {
            accepts: &["mon", "mon-fri", "fri-mon", "mon-wed,fri-sun"],
            rejects: &["", "monday", "Mon", "mon-", "mon,", "mon - fri", "1-5"],
        },
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM007",
        path: "spec.schedule.hoursOfDay[]",
        cel: HOURS,
        inputs: &[],
        message: "must be hours or ranges (e.g. '9', '9-17', '0-9,18-23')",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::are_hours),
        examples: Examples::Text {
            accepts: &["9", "09", "9-17", "22-6", "0-9,18-23"],
            rejects: &["", "9am", "9-", "9:30", "-1", "9 - 17", "123"],
        },
        why: "Both ends of a range are included; a range may cross midnight.",
    },
    Rule {
        id: "SM008",
        path: "spec.bootstrapSpec.apiVersion",
        cel: "self.contains('/')",
        inputs: &[],
        message: "must use a namespaced API group",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_group),
        examples: Examples::Text {
            accepts: &["bootstrap.cluster.x-k8s.io/v1beta1"],
            rejects: &["", "v1"],
        },
        why: "A ScheduledMachine must not create objects of the core API.",
    },
    Rule {
        id: "SM009",
        path: "spec.bootstrapSpec.apiVersion",
        cel: "!self.contains('/') || self.startsWith('bootstrap.cluster.x-k8s.io/') \
              || self.startsWith('k0smotron.io/')",
        inputs: &[],
        message: "must be from an allowed group: bootstrap.cluster.x-k8s.io or k0smotron.io",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_bootstrap_group),
        examples: Examples::Text {
            accepts: &["bootstrap.cluster.x-k8s.io/v1beta1", "k0smotron.io/v1beta1"],
            rejects: &[
                "rbac.authorization.k8s.io/v1",
                "apps/v1",
                "bootstrap.cluster.x-k8s.io.evil.example/v1",
            ],
        },
        why: "Permission to create a ScheduledMachine must not be permission to create objects \
              of any other kind.",
    },
    Rule {
        id: "SM010",
        path: "spec.bootstrapSpec.kind",
        cel: "self.size() > 0",
        inputs: &[],
        message: "spec.bootstrapSpec.kind must not be empty",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_empty),
        examples: Examples::Text {
            accepts: &["K0sWorkerConfig"],
            rejects: &[""],
        },
        why: "Without a kind there is nothing to create.",
    },
    Rule {
        id: "SM011",
        path: "spec.infrastructureSpec.apiVersion",
        cel: "self.contains('/')",
        inputs: &[],
        message: "must use a namespaced API group",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_group),
        examples: Examples::Text {
            accepts: &["infrastructure.cluster.x-k8s.io/v1beta1"],
            rejects: &["", "v1"],
        },
        why: "A ScheduledMachine must not create objects of the core API.",
    },
    Rule {
        id: "SM012",
        path: "spec.infrastructureSpec.apiVersion",
        cel: "!self.contains('/') || self.startsWith('infrastructure.cluster.x-k8s.io/') \
              || self.startsWith('k0smotron.io/')",
        inputs: &[],
        message: "must be from an allowed group: infrastructure.cluster.x-k8s.io or k0smotron.io",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_infrastructure_group),
        examples: Examples::Text {
            accepts: &[
                "infrastructure.cluster.x-k8s.io/v1beta1",
                "k0smotron.io/v1beta1",
            ],
            rejects: &[
                "rbac.authorization.k8s.io/v1",
                "apps/v1",
                "infrastructure.cluster.x-k8s.io.evil.example/v1",
            ],
        },
        why: "Permission to create a ScheduledMachine must not be permission to create objects \
              of any other kind.",
    },
    Rule {
        id: "SM013",
        path: "spec.infrastructureSpec.kind",
        cel: "self.size() > 0",
        inputs: &[],
        message: "spec.infrastructureSpec.kind must not be empty",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_empty),
        examples: Examples::Text {
            accepts: &["RemoteMachine"],
            rejects: &[""],
        },
        why: "Without a kind there is nothing to create.",
    },
    Rule {
        id: "SM014",
        path: "spec.gracefulShutdownTimeout",
        cel: AT_MOST_A_DAY,
        inputs: &[],
        message: "must be at most 24h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_at_most_a_day),
        examples: Examples::Text {
            accepts: &["0s", "24h", "1440m", "86400s", "0000086400s"],
            rejects: &["25h", "1441m", "86401s", "99999999999999999999h"],
        },
        why: "A shutdown that takes longer is probably stuck.",
    },
    Rule {
        id: "SM015",
        path: "spec.nodeDrainTimeout",
        cel: AT_MOST_A_DAY,
        inputs: &[],
        message: "must be at most 24h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_at_most_a_day),
        examples: Examples::Text {
            accepts: &["0s", "24h", "1440m", "86400s", "0000086400s"],
            rejects: &["25h", "1441m", "86401s", "99999999999999999999h"],
        },
        why: "A shutdown that takes longer is probably stuck.",
    },
    Rule {
        id: "SM016",
        path: "spec.clusterName",
        cel: "self.size() == 0 || self.matches('^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$')",
        inputs: &[],
        message: "must be at most 63 letters, digits, '.', '_' and '-', the first a letter or digit",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_cluster_name),
        examples: Examples::Text {
            accepts: &["prod", "Prod-1.eu_west"],
            rejects: &[
                "-prod",
                "prod/1",
                "prod cluster",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        },
        why: "The name is used as a label value.",
    },
    Rule {
        id: "SM017",
        path: "spec.clusterName",
        cel: "!has(oldSelf.status) \
              || !(has(oldSelf.status.machineRef) && has(oldSelf.status.machineRef.uid) \
              || has(oldSelf.status.bootstrapRef) && has(oldSelf.status.bootstrapRef.uid) \
              || has(oldSelf.status.infrastructureRef) && has(oldSelf.status.infrastructureRef.uid)) \
              || self.spec.clusterName == oldSelf.spec.clusterName",
        inputs: &[],
        message: "must not change while the machine exists; wait until it is removed",
        layer: Layer::Change,
        predicate: None,
        examples: Examples::Json {
            accepts: &[r#"{"from": "prod", "to": "prod"}"#],
            rejects: &[r#"{"from": "prod", "to": "staging"}"#],
        },
        why: "A Machine cannot move from one Cluster to another.",
    },
    Rule {
        id: "SM018",
        path: "spec.schedule.hoursOfDay[]",
        cel: HOURS_OF_A_DAY,
        inputs: &[],
        message: "hours must be from 0 to 23",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::are_hours_of_a_day),
        examples: Examples::Text {
            accepts: &["0-23", "00", "23", "20-23"],
            rejects: &["24", "9-24", "99", "9,30"],
        },
        why: "There is no hour 24: the end of a range is included, so `18-23` ends at midnight.",
    },
    Rule {
        id: "SM019",
        path: "spec.schedule.cron",
        cel: FIVE_FIELDS,
        inputs: &[],
        message: "must be five fields: minute, hour, day of month, month, day of week",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_five_fields),
        examples: Examples::Text {
            accepts: &["0 9-17 * * 1-5", "*/5 * * * *", "0  9 * * *"],
            rejects: &["", "@daily", "0 9 * *", "0 0 9 * * 1-5", " 0 9 * * *"],
        },
        why: "Seconds, years and names such as `@daily` are not supported.",
    },
    Rule {
        id: "SM020",
        path: "spec.schedule.cron",
        cel: CRON_MINUTES,
        inputs: &[],
        message: "minutes must be from 0 to 59",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_cron_minutes),
        examples: Examples::Text {
            accepts: &["0 * * * *", "*/15 * * * *", "0-59/5,7 * * * *"],
            rejects: &[
                "60 * * * *",
                "a * * * *",
                "5/15 * * * *",
                "*/0 * * * *",
                ", * * * *",
            ],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM021",
        path: "spec.schedule.cron",
        cel: CRON_HOURS,
        inputs: &[],
        message: "hours must be from 0 to 23",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_cron_hours),
        examples: Examples::Text {
            accepts: &["0 0-23 * * *", "0 09,17 * * *"],
            rejects: &["0 24 * * *", "0 9-24 * * *", "0 -9 * * *"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM022",
        path: "spec.schedule.cron",
        cel: CRON_DAYS_OF_MONTH,
        inputs: &[],
        message: "days of the month must be from 1 to 31",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_cron_days_of_month),
        examples: Examples::Text {
            accepts: &["0 9 1,31 * *"],
            rejects: &["0 9 0 * *", "0 9 32 * *", "0 9 L * *"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM023",
        path: "spec.schedule.cron",
        cel: CRON_MONTHS,
        inputs: &[],
        message: "months must be from 1 to 12 or jan to dec",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_cron_months),
        examples: Examples::Text {
            accepts: &["0 9 * 1-12 *", "0 9 * JAN,mar-Jun *"],
            rejects: &["0 9 * 0 *", "0 9 * 13 *", "0 9 * january *"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM024",
        path: "spec.schedule.cron",
        cel: CRON_DAYS_OF_WEEK,
        inputs: &[],
        message: "days of the week must be from 0 to 7 or sun to sat",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_cron_days_of_week),
        examples: Examples::Text {
            accepts: &["0 9 * * 0-7", "0 9 * * mon-FRI"],
            rejects: &["0 9 * * 8", "0 9 * * monday", "0 9 * * 5#2"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM025",
        path: "spec.schedule.duration",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["1h", "90m", "3600s"],
            rejects: &["", "1", "1d", "one hour"],
        },
        why: "It is the length of the window that each firing opens.",
    },
    Rule {
        id: "SM026",
        path: "spec.schedule.duration",
        cel: A_FIRING,
        inputs: &[],
        message: "must be from 1m to 168h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_firing),
        examples: Examples::Text {
            accepts: &["1m", "60s", "168h", "604800s"],
            rejects: &["0s", "59s", "169h", "9999999h"],
        },
        why: "A window of less than a minute ends before a machine is ready; one of more than a \
              week is never closed.",
    },
    Rule {
        id: "SM027",
        path: "spec.schedule",
        cel: "!has(self.duration) || has(self.cron) || has(self.windows)",
        inputs: &["cron", "duration", "windows"],
        message: "duration must not be set without cron",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_duration_only_with_cron),
        examples: Examples::Json {
            accepts: &[
                r#"{"cron": "0 9 * * *", "duration": "8h"}"#,
                r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
            ],
            rejects: &[
                r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "duration": "8h"}"#,
            ],
        },
        why: "hoursOfDay already determines the length of the window.",
    },
    Rule {
        id: "SM028",
        path: "spec.schedule.timezone",
        cel: "self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$')",
        inputs: &[],
        message: "must be an IANA time zone name such as 'Europe/Zurich'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_zone_name),
        examples: Examples::Text {
            accepts: &[
                "UTC",
                "Europe/Zurich",
                "America/Port-au-Prince",
                "Etc/GMT+5",
            ],
            rejects: &["", "../etc/passwd", "Europe Zurich", "+02:00"],
        },
        why: "Whether the zone exists is checked by the operator, which has the tz database.",
    },
    Rule {
        id: "SM029",
        path: "spec.bootstrapSpec.apiVersion",
        cel: VERSION,
        inputs: &[],
        message: "must end in a version such as 'v1beta1'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_version),
        examples: Examples::Text {
            accepts: &[
                "bootstrap.cluster.x-k8s.io/v1",
                "bootstrap.cluster.x-k8s.io/v1beta2",
                "k0smotron.io/v2alpha1",
            ],
            rejects: &[
                "bootstrap.cluster.x-k8s.io/",
                "bootstrap.cluster.x-k8s.io/1",
                "bootstrap.cluster.x-k8s.io/v0",
                "bootstrap.cluster.x-k8s.io/v1/x",
                "bootstrap.cluster.x-k8s.io/../../../api/v1/namespaces",
            ],
        },
        why: "Group and version become part of a URL.",
    },
    Rule {
        id: "SM030",
        path: "spec.bootstrapSpec.kind",
        cel: "self.size() == 0 || self.matches('^[A-Z][A-Za-z0-9]{0,62}$')",
        inputs: &[],
        message: "must be at most 63 letters and digits, the first an upper-case letter",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_kind),
        examples: Examples::Text {
            accepts: &["K0sWorkerConfig"],
            rejects: &["k0s", "Foo/Bar", "Foo-Bar", "Foo Bar"],
        },
        why: "These are the kinds that Kubernetes allows.",
    },
    Rule {
        id: "SM031",
        path: "spec.bootstrapSpec.kind",
        cel: "!self.matches('(Template|Cluster|List|Identity)$')",
        inputs: &[],
        message: "must be the kind of an object of one machine, not a template, cluster, list or \
                  identity",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_kind_of_one_machine),
        examples: Examples::Text {
            accepts: &["K0sWorkerConfig"],
            rejects: &[
                "K0sWorkerConfigTemplate",
                "AWSCluster",
                "RemoteMachineList",
                "AWSClusterStaticIdentity",
            ],
        },
        why: "Objects that are shared by several machines must not be created and deleted with \
              one of them.",
    },
    Rule {
        id: "SM032",
        path: "spec.infrastructureSpec.apiVersion",
        cel: VERSION,
        inputs: &[],
        message: "must end in a version such as 'v1beta1'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_version),
        examples: Examples::Text {
            accepts: &[
                "infrastructure.cluster.x-k8s.io/v1",
                "infrastructure.cluster.x-k8s.io/v1beta2",
                "k0smotron.io/v2alpha1",
            ],
            rejects: &[
                "infrastructure.cluster.x-k8s.io/",
                "infrastructure.cluster.x-k8s.io/1",
                "infrastructure.cluster.x-k8s.io/v0",
                "infrastructure.cluster.x-k8s.io/v1/x",
                "infrastructure.cluster.x-k8s.io/../../../api/v1/namespaces",
            ],
        },
        why: "Group and version become part of a URL.",
    },
    Rule {
        id: "SM033",
        path: "spec.infrastructureSpec.kind",
        cel: "self.size() == 0 || self.matches('^[A-Z][A-Za-z0-9]{0,62}$')",
        inputs: &[],
        message: "must be at most 63 letters and digits, the first an upper-case letter",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_kind),
        examples: Examples::Text {
            accepts: &["RemoteMachine"],
            rejects: &["k0s", "Foo/Bar", "Foo-Bar", "Foo Bar"],
        },
        why: "These are the kinds that Kubernetes allows.",
    },
    Rule {
        id: "SM034",
        path: "spec.infrastructureSpec.kind",
        cel: "!self.matches('(Template|Cluster|List|Identity)$')",
        inputs: &[],
        message: "must be the kind of an object of one machine, not a template, cluster, list or \
                  identity",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_kind_of_one_machine),
        examples: Examples::Text {
            accepts: &["RemoteMachine"],
            rejects: &[
                "RemoteMachineTemplate",
                "AWSCluster",
                "RemoteMachineList",
                "AWSClusterStaticIdentity",
            ],
        },
        why: "Objects that are shared by several machines must not be created and deleted with \
              one of them.",
    },
    Rule {
        id: "SM035",
        path: "spec.bootstrapSpec.namespace",
        cel: "self == object.metadata.?namespace.orValue(self)",
        inputs: &[],
        message: "must be the namespace of the ScheduledMachine",
        layer: Layer::Policy,
        predicate: Some(predicate::is_own_namespace),
        examples: Examples::Text {
            accepts: &["default"],
            rejects: &["kube-system", ""],
        },
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM036",
        path: "spec.infrastructureSpec.namespace",
        cel: "self == object.metadata.?namespace.orValue(self)",
        inputs: &[],
        message: "must be the namespace of the ScheduledMachine",
        layer: Layer::Policy,
        predicate: Some(predicate::is_own_namespace),
        examples: Examples::Text {
            accepts: &["default"],
            rejects: &["kube-system", ""],
        },
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM037",
        path: "spec.machineTemplate.labels",
        cel: QUALIFIED_KEYS,
        inputs: &[],
        message: "keys must be qualified names: at most 63 letters, digits, '-', '_' and '.', optionally after a DNS subdomain and '/'",
        layer: Layer::Policy,
        predicate: Some(predicate::has_qualified_keys),
        examples: Examples::Json {
            accepts: &["{}", r#"{"team": "a", "example.com/cost-centre": "7"}"#],
            rejects: &[
                r#"{"bad key!": "a"}"#,
                r#"{"/x": "a"}"#,
                r#"{"Example.com/x": "a"}"#,
                r#"{"-x": "a"}"#,
            ],
        },
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM038",
        path: "spec.machineTemplate.labels",
        cel: NO_RESERVED_KEYS,
        inputs: &[],
        message: "keys must not be reserved by Kubernetes, Cluster API or 5-Spot",
        layer: Layer::Policy,
        predicate: Some(predicate::has_no_reserved_keys),
        examples: Examples::Json {
            accepts: &[
                r#"{"example.com/x": "a"}"#,
                r#"{"node-role.kubernetes.io/batch": ""}"#,
                r#"{"node-restriction.kubernetes.io/zone": "a"}"#,
                r#"{"node.cluster.x-k8s.io/zone": "a"}"#,
                r#"{"cluster.x-k8s.io/skip-remediation": ""}"#,
                r#"{"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}"#,
            ],
            rejects: &[
                r#"{"5spot.finos.org/scheduled-machine": "other"}"#,
                r#"{"sub.5spot.finos.org/x": "a"}"#,
                r#"{"5spot.eribourg.dev/managed": "true"}"#,
                r#"{"topology.kubernetes.io/zone": "a"}"#,
                r#"{"k8s.io/x": "a"}"#,
                r#"{"cluster.x-k8s.io/cluster-name": "other"}"#,
                r#"{"cluster.x-k8s.io/control-plane": ""}"#,
                r#"{"machine.cluster.x-k8s.io/exclude-node-draining": ""}"#,
                r#"{"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}"#,
                r#"{"sub.node.cluster.x-k8s.io/x": ""}"#,
            ],
        },
        why: "With such a key the Machine could appear to belong to another owner, or its drain \
              could be skipped.",
    },
    Rule {
        id: "SM039",
        path: "spec.machineTemplate.labels",
        cel: LABEL_VALUES,
        inputs: &[],
        message: "values must be empty, or at most 63 letters, digits, '-', '_' and '.' with a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_label_values),
        examples: Examples::Json {
            accepts: &[r#"{"team": "a", "empty": ""}"#],
            rejects: &[
                r#"{"team": "a b"}"#,
                r#"{"team": "-a"}"#,
                r#"{"team": "a_"}"#,
            ],
        },
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM040",
        path: "spec.machineTemplate.annotations",
        cel: QUALIFIED_KEYS,
        inputs: &[],
        message: "keys must be qualified names: at most 63 letters, digits, '-', '_' and '.', optionally after a DNS subdomain and '/'",
        layer: Layer::Policy,
        predicate: Some(predicate::has_qualified_keys),
        examples: Examples::Json {
            accepts: &["{}", r#"{"team": "a", "example.com/cost-centre": "7"}"#],
            rejects: &[
                r#"{"bad key!": "a"}"#,
                r#"{"/x": "a"}"#,
                r#"{"Example.com/x": "a"}"#,
                r#"{"-x": "a"}"#,
            ],
        },
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM041",
        path: "spec.machineTemplate.annotations",
        cel: NO_RESERVED_KEYS,
        inputs: &[],
        message: "keys must not be reserved by Kubernetes, Cluster API or 5-Spot",
        layer: Layer::Policy,
        predicate: Some(predicate::has_no_reserved_keys),
        examples: Examples::Json {
            accepts: &[
                r#"{"example.com/x": "a"}"#,
                r#"{"node-role.kubernetes.io/batch": ""}"#,
                r#"{"node-restriction.kubernetes.io/zone": "a"}"#,
                r#"{"node.cluster.x-k8s.io/zone": "a"}"#,
                r#"{"cluster.x-k8s.io/skip-remediation": ""}"#,
                r#"{"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}"#,
            ],
            rejects: &[
                r#"{"5spot.finos.org/scheduled-machine": "other"}"#,
                r#"{"sub.5spot.finos.org/x": "a"}"#,
                r#"{"5spot.eribourg.dev/managed": "true"}"#,
                r#"{"topology.kubernetes.io/zone": "a"}"#,
                r#"{"k8s.io/x": "a"}"#,
                r#"{"cluster.x-k8s.io/cluster-name": "other"}"#,
                r#"{"cluster.x-k8s.io/control-plane": ""}"#,
                r#"{"machine.cluster.x-k8s.io/exclude-node-draining": ""}"#,
                r#"{"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}"#,
                r#"{"sub.node.cluster.x-k8s.io/x": ""}"#,
            ],
        },
        why: "With such a key the Machine could appear to belong to another owner, or its drain \
              could be skipped.",
    },
    Rule {
        id: "SM042",
        path: "spec.nodeTaints[].key",
        cel: QUALIFIED_NAME,
        inputs: &[],
        message: "must be a qualified name: at most 63 letters, digits, '-', '_' and '.', optionally after a DNS subdomain and '/'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_taint_key),
        examples: Examples::Text {
            accepts: &["workload", "gpu_type", "example.com/dedicated"],
            rejects: &[
                "",
                "work load",
                "/x",
                "Example.com/x",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        },
        why: "The API server would reject the taint.",
    },
    Rule {
        id: "SM043",
        path: "spec.nodeTaints[].key",
        cel: NO_RESERVED_TAINT,
        inputs: &[],
        message: "must not begin with 5spot.finos.org/, kubernetes.io/, node.kubernetes.io/ or node-role.kubernetes.io/",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_reserved_for_taints),
        examples: Examples::Text {
            accepts: &["example.com/x", "not-kubernetes.io/x"],
            rejects: &[
                "5spot.finos.org/x",
                "kubernetes.io/x",
                "node.kubernetes.io/unreachable",
                "node-role.kubernetes.io/control-plane",
            ],
        },
        why: "Kubernetes' own controllers set and remove taints with these prefixes.",
    },
    Rule {
        id: "SM044",
        path: "spec.nodeTaints[].value",
        cel: LABEL_VALUE,
        inputs: &[],
        message: "must be empty, or at most 63 letters, digits, '-', '_' and '.' with a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_label_value),
        examples: Examples::Text {
            accepts: &["", "batch", "a.b_c-d"],
            rejects: &["a b", "-a", "a."],
        },
        why: "The API server would reject the taint.",
    },
    Rule {
        id: "SM045",
        path: "spec.killIfCommands[]",
        cel: "self.matches('[^ ]')",
        inputs: &[],
        message: "must not be blank",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_blank),
        examples: Examples::Text {
            accepts: &["chrome", " x"],
            rejects: &["", " "],
        },
        why: "Every process would match.",
    },
    Rule {
        id: "SM046",
        path: "metadata.name",
        cel: NAME,
        inputs: &[],
        message: "must be a DNS label of at most 63 characters: lower-case letters, digits and '-', a letter or digit at both ends",
        layer: Layer::Policy,
        predicate: Some(predicate::is_name),
        examples: Examples::Text {
            accepts: &["worker", "5spot-1"],
            rejects: &[
                "Worker",
                "a.b",
                "-a",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        },
        why: "The name is used as a label value and as the name of a Node.",
    },
    Rule {
        id: "SM047",
        path: "spec.schedule",
        cel: NO_OTHER_FORM,
        inputs: &["windows", "cron", "duration", "daysOfWeek", "hoursOfDay"],
        message: "windows is mutually exclusive with cron, duration, daysOfWeek and hoursOfDay",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_no_other_form),
        examples: Examples::Json {
            accepts: &[
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "daysOfWeek": [], "hoursOfDay": []}"#,
            ],
            rejects: &[
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "cron": "0 9 * * *"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "duration": "8h"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "hoursOfDay": ["9"]}"#,
            ],
        },
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM048",
        path: "spec.machineTemplate.version",
        cel: KUBERNETES_VERSION,
        inputs: &[],
        message: "must be a Kubernetes version such as 'v1.31.2'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_kubernetes_version),
        examples: Examples::Text {
            accepts: &["v1.31.2", "1.31.2", "v1.30.0+k0s.0", "v1.32.0-rc.1"],
            rejects: &["", "latest", "v1.31", "v1.31.x", "1.31.2.3", "V1.31.2"],
        },
        why: "Cluster API rejects a Machine with another version, and kubeadm cannot join with it.",
    },
    Rule {
        id: "SM049",
        path: "spec.machineTemplate.failureDomain",
        cel: "self.size() > 0",
        inputs: &[],
        message: "must not be empty; omit it to let the provider choose",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_empty),
        examples: Examples::Text {
            accepts: &["zone-1"],
            rejects: &[""],
        },
        why: "Cluster API rejects a Machine with an empty failure domain.",
    },
    Rule {
        id: "SM050",
        path: "spec.machineTemplate.annotations",
        cel: BOUNDED_SIZE,
        inputs: &[],
        message: "keys and values together must be at most 64 KiB",
        layer: Layer::Policy,
        predicate: Some(predicate::are_of_bounded_size),
        examples: Examples::Sizes {
            accepts: &["0 bytes", "65536 bytes"],
            rejects: &["65537 bytes"],
        },
        why: "The API server rejects a Machine whose annotations exceed a total size, after its \
              other objects were created.",
    },
    Rule {
        id: "SM051",
        path: "spec",
        cel: TWO_KINDS,
        inputs: &[
            "bootstrapSpec.apiVersion",
            "bootstrapSpec.kind",
            "infrastructureSpec.apiVersion",
            "infrastructureSpec.kind",
        ],
        message: "bootstrapSpec and infrastructureSpec must not have the same group and kind",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_two_kinds),
        examples: Examples::Json {
            accepts: &[
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "K0sWorkerConfig", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}"#,
            ],
            rejects: &[
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}"#,
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta2", "kind": "RemoteMachine", "spec": {}}}"#,
            ],
        },
        why: "Both objects have the name of the ScheduledMachine, so one object would have both \
              roles.",
    },
    Rule {
        id: "SM052",
        path: "spec.schedule.windows[].name",
        cel: NAME,
        inputs: &[],
        message: "must be a DNS label of at most 63 characters: lower-case letters, digits and '-', a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_name),
        examples: Examples::Text {
            accepts: &["night", "week-1"],
            rejects: &[
                "",
                "Night",
                "a.b",
                "-a",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            ],
        },
        why: "The name stands in previews, events and messages.",
    },
    Rule {
        id: "SM053",
        path: "spec.schedule.windows[].days",
        cel: WINDOW_DAYS,
        inputs: &[],
        message: "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::are_all_days),
        examples: Examples::Json {
            accepts: &[r"[]", r#"["mon-fri"]"#, r#"["mon-wed,fri", "sun"]"#],
            rejects: &[r#"[""]"#, r#"["mon", "Tue"]"#, r#"["1-5"]"#],
        },
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM054",
        path: "spec.schedule.windows[].start",
        cel: TIME_OF_DAY,
        inputs: &[],
        message: "must be a time of day from '00:00' to '23:59'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_time_of_day),
        examples: Examples::Text {
            accepts: &["00:00", "07:30", "23:59"],
            rejects: &["", "24:00", "7:30", "07:60", "07:30:00", "noon"],
        },
        why: "It is read off the wall clock of the time zone.",
    },
    Rule {
        id: "SM055",
        path: "spec.schedule.windows[].end",
        cel: TIME_OF_DAY,
        inputs: &[],
        message: "must be a time of day from '00:00' to '23:59'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_time_of_day),
        examples: Examples::Text {
            accepts: &["00:00", "07:30", "23:59"],
            rejects: &["", "24:00", "7:30", "07:60", "07:30:00", "noon"],
        },
        why: "For midnight write '00:00': an end that is not after the start is on the next day.",
    },
    Rule {
        id: "SM056",
        path: "spec.schedule.windows[]",
        cel: "has(self.end) != has(self.duration)",
        inputs: &["end", "duration"],
        message: "exactly one of end and duration must be set",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_one_end),
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "night", "start": "19:00", "end": "07:30"}"#,
                r#"{"name": "weekend", "start": "07:30", "duration": "48h"}"#,
            ],
            rejects: &[
                r#"{"name": "night", "start": "19:00"}"#,
                r#"{"name": "night", "start": "19:00", "end": "07:30", "duration": "1h"}"#,
            ],
        },
        why: "Without either the window never ends; both could contradict each other.",
    },
    Rule {
        id: "SM057",
        path: "spec.schedule.windows[].duration",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["1h", "90m", "3600s"],
            rejects: &["", "1", "1d", "one hour"],
        },
        why: "It is the length of the window.",
    },
    Rule {
        id: "SM058",
        path: "spec.schedule.windows[].duration",
        cel: A_FIRING,
        inputs: &[],
        message: "must be from 1m to 168h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_firing),
        examples: Examples::Text {
            accepts: &["1m", "60s", "168h", "604800s"],
            rejects: &["0s", "59s", "169h", "9999999h"],
        },
        why: "A window of less than a minute ends before a machine is ready; one of more than a week is never closed.",
    },
    Rule {
        id: "SM059",
        path: "spec.schedule.exceptions[].name",
        cel: NAME,
        inputs: &[],
        message: "must be a DNS label of at most 63 characters: lower-case letters, digits and '-', a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_name),
        examples: Examples::Text {
            accepts: &["night", "week-1"],
            rejects: &[
                "",
                "Night",
                "a.b",
                "-a",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            ],
        },
        why: "The name stands in previews, events and messages.",
    },
    Rule {
        id: "SM060",
        path: "spec.schedule.exceptions[]",
        cel: CALENDAR_OR_DATES,
        inputs: &["calendarRef", "startDate", "endDate"],
        message: "either calendarRef, or both startDate and endDate must be set",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_calendar_or_dates),
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "e", "action": "Stop", "calendarRef": {"name": "zurich"}}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "e", "action": "Stop"}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24"}"#,
                r#"{"name": "e", "action": "Stop", "calendarRef": {"name": "zurich"}, "endDate": "2026-12-24"}"#,
            ],
        },
        why: "An exception needs dates, and they come from one place.",
    },
    Rule {
        id: "SM061",
        path: "spec.schedule.exceptions[].startDate",
        cel: A_DATE,
        inputs: &[],
        message: "must be a date such as '2026-12-24'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_date),
        examples: Examples::Text {
            accepts: &["2026-12-24", "2024-02-29"],
            rejects: &[
                "",
                "2026-02-29",
                "2026-13-01",
                "26-12-24",
                "2026-12-24T00:00:00Z",
                "24.12.2026",
            ],
        },
        why: "It is a local date in the time zone of the schedule.",
    },
    Rule {
        id: "SM062",
        path: "spec.schedule.exceptions[].endDate",
        cel: A_DATE,
        inputs: &[],
        message: "must be a date such as '2026-12-24'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_date),
        examples: Examples::Text {
            accepts: &["2026-12-24", "2028-02-29"],
            rejects: &[
                "",
                "2026-02-29",
                "2026-13-01",
                "26-12-24",
                "2026-12-24T00:00:00Z",
                "24.12.2026",
            ],
        },
        why: "It is a local date in the time zone of the schedule.",
    },
    Rule {
        id: "SM063",
        path: "spec.schedule.exceptions[]",
        cel: DATES_IN_ORDER,
        inputs: &["startDate", "endDate"],
        message: "endDate must not be before startDate",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_dates_in_order),
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2027-01-02"}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-23"}"#,
            ],
        },
        why: "Such an exception has no dates.",
    },
    Rule {
        id: "SM064",
        path: "spec.schedule.exceptions[].calendarRef.name",
        cel: OBJECT_NAME,
        inputs: &[],
        message: "must be the name of a ScheduleCalendar: lower-case letters, digits, '-' and '.', a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_object_name),
        examples: Examples::Text {
            accepts: &["zurich", "holidays.zurich"],
            rejects: &["", "Zurich", "-a", "a/b"],
        },
        why: "No object can have another name.",
    },
    Rule {
        id: "SM065",
        path: "spec.provisioning.leadTime",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["0s", "10m"],
            rejects: &["", "10", "-5m"],
        },
        why: "A lead time that cannot be read would be none.",
    },
    Rule {
        id: "SM066",
        path: "spec.provisioning.leadTime",
        cel: AT_MOST_TWO_HOURS,
        inputs: &[],
        message: "must be at most 2h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_at_most_two_hours),
        examples: Examples::Text {
            accepts: &["0s", "2h", "120m", "7200s"],
            rejects: &["3h", "121m", "7201s", "99999999999999999999h"],
        },
        why: "A machine that takes longer has another problem.",
    },
    Rule {
        id: "SM067",
        path: "spec.provisioning.timeout",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["20m", "1h"],
            rejects: &["", "20", "-5m"],
        },
        why: "A timeout that cannot be read would never pass.",
    },
    Rule {
        id: "SM068",
        path: "spec.provisioning.timeout",
        cel: A_MINUTE_TO_A_DAY,
        inputs: &[],
        message: "must be from 1m to 24h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_minute_to_a_day),
        examples: Examples::Text {
            accepts: &["1m", "60s", "24h"],
            rejects: &["0s", "59s", "25h", "99999999999999999999h"],
        },
        why: "Within a minute no machine is ready, and a day later somebody should know.",
    },
    Rule {
        id: "SM069",
        path: "spec.provisioning.minimumRun",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["0s", "30m"],
            rejects: &["", "30", "-5m"],
        },
        why: "A minimum that cannot be read would be none.",
    },
    Rule {
        id: "SM070",
        path: "spec.provisioning.minimumRun",
        cel: AT_MOST_A_DAY,
        inputs: &[],
        message: "must be at most 24h",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_at_most_a_day),
        examples: Examples::Text {
            accepts: &["0s", "24h"],
            rejects: &["25h", "99999999999999999999h"],
        },
        why: "With a longer minimum no window of a day would ever get a machine.",
    },
    Rule {
        id: "SM071",
        path: "spec.shutdown.lastCall",
        cel: DURATION,
        inputs: &[],
        message: "must be a duration string such as '5m', '30s', or '1h'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_duration),
        examples: Examples::Text {
            accepts: &["0s", "0m"],
            rejects: &["", "30", "-5m"],
        },
        why: "A last call that cannot be read would be none.",
    },
    Rule {
        id: "SM072",
        path: "spec.shutdown.lastCall",
        cel: NO_LAST_CALL,
        inputs: &[],
        message: "must be 0s; a last call is not supported yet",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_no_time),
        examples: Examples::Text {
            accepts: &["0s", "0m"],
            rejects: &["1s", "30m", "25h"],
        },
        why: "The operator does not apply it yet, and nothing is accepted and then ignored.",
    },
];
