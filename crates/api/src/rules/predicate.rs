//! The rules in Rust, for the operator's own check.
//!
//! The CEL expressions are authoritative. These functions agree with them, which is tested on
//! generated values.

mod cron;
mod time;

use std::str::FromStr;

use fivespot_schedule::{Days, Duration};
use serde_json::Value;

pub(super) use cron::{
    has_cron_days_of_month, has_cron_days_of_week, has_cron_hours, has_cron_minutes,
    has_cron_months, has_five_fields,
};
pub(super) use time::{
    are_all_days, has_calendar_or_dates, has_date_or_range, has_dates_in_order,
    has_one_end, has_one_target, has_times_in_order, is_a_date, is_a_date_of_some_year,
    is_a_time, is_not_empty_selector, is_time_of_day, is_within_two_weeks,
};

use super::node::{is_empty_list, is_number, is_number_within, is_set, text};
use crate::name::{self, MAX_SET_NAME};
use crate::scheduled_capacity::field_path::{FieldPath, is_scalar};

pub(super) fn is_not_empty(node: &Value, _: &Value) -> bool {
    text(node, |text| !text.is_empty())
}

pub(super) fn is_not_blank(node: &Value, _: &Value) -> bool {
    text(node, |text| text.chars().any(|letter| letter != ' '))
}

fn is_duration(text: &str) -> bool {
    let digits = text.strip_suffix(['s', 'm', 'h']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a duration is within bounds. A text that is not a duration violates another rule.
fn is_within(text: &str, least: Duration, most: Duration) -> bool {
    !is_duration(text)
        || Duration::from_str(text)
            .is_ok_and(|duration| duration.within(least, most).is_ok())
}

pub(super) fn is_a_duration(node: &Value, _: &Value) -> bool {
    text(node, is_duration)
}

pub(super) fn is_at_most_a_day(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        is_within(text, Duration::ZERO, Duration::hours(24))
    })
}

pub(super) fn is_at_most_half_an_hour(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        is_within(text, Duration::ZERO, Duration::minutes(30))
    })
}

pub(super) fn holds_nothing_by_an_end(node: &Value, _: &Value) -> bool {
    let is_by_an_end = node["shutdown"]["endPolicy"] == "CompleteByWindowEnd";
    let minimum = node["minimumActive"].as_i64().unwrap_or(0);
    !is_by_an_end || node["stopsPerMinute"].is_null() && minimum == 0
}

pub(super) fn is_at_most_two_hours(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        is_within(text, Duration::ZERO, Duration::hours(2))
    })
}

pub(super) fn is_a_minute_to_a_day(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        is_within(text, Duration::minutes(1), Duration::hours(24))
    })
}

pub(super) fn is_a_firing(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        is_within(text, Duration::minutes(1), Duration::hours(168))
    })
}

pub(super) fn is_a_minute_to_two_weeks(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        is_within(text, Duration::minutes(1), Duration::hours(336))
    })
}

pub(super) fn is_cron_or_lists(node: &Value, _: &Value) -> bool {
    !is_set(node, "cron")
        || is_empty_list(node, "daysOfWeek") && is_empty_list(node, "hoursOfDay")
}

pub(super) fn has_no_other_form(node: &Value, _: &Value) -> bool {
    !is_set(node, "windows")
        || !is_set(node, "cron")
            && !is_set(node, "duration")
            && is_empty_list(node, "daysOfWeek")
            && is_empty_list(node, "hoursOfDay")
}

pub(super) fn is_complete(node: &Value, _: &Value) -> bool {
    is_set(node, "cron")
        || is_set(node, "windows")
        || is_set(node, "kind")
        || !is_empty_list(node, "daysOfWeek") && !is_empty_list(node, "hoursOfDay")
}

pub(super) fn has_duration_only_with_cron(node: &Value, _: &Value) -> bool {
    !is_set(node, "duration")
        || ["cron", "windows", "kind"]
            .iter()
            .any(|form| is_set(node, form))
}

pub(super) fn has_no_form_beside_reference(node: &Value, _: &Value) -> bool {
    !is_set(node, "kind")
        || ["cron", "duration", "windows"]
            .iter()
            .all(|form| !is_set(node, form))
            && is_empty_list(node, "daysOfWeek")
            && is_empty_list(node, "hoursOfDay")
}

const REFERENCE: [&str; 3] = ["apiVersion", "kind", "name"];

pub(super) fn is_whole_reference(node: &Value, _: &Value) -> bool {
    let set = REFERENCE.iter().filter(|member| is_set(node, member));
    [0, REFERENCE.len()].contains(&set.count())
}

pub(super) fn is_no_reference(node: &Value, _: &Value) -> bool {
    REFERENCE.iter().all(|member| !is_set(node, member))
}

pub(super) fn is_of_spot_group(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        let version = text.strip_prefix("spotschedules.5spot.finos.org/");
        version.is_some_and(|version| {
            let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
            !version.is_empty() && version.bytes().all(is_plain)
        })
    })
}

pub(super) fn is_schedule_kind(node: &Value, _: &Value) -> bool {
    text(node, is_kind_name)
}

pub(super) fn are_days(node: &Value, _: &Value) -> bool {
    text(node, |text| text.parse::<Days>().is_ok())
}

/// Applies a predicate to each end of each range of a comma-separated list.
fn every_end(text: &str, holds: impl Fn(&str) -> bool) -> bool {
    text.split(',').all(|entry| match entry.split_once('-') {
        Some((first, last)) => holds(first) && holds(last),
        None => holds(entry),
    })
}

fn are_hours_of_any_size(text: &str) -> bool {
    every_end(text, |end| is_number(end) && end.len() <= 2)
}

pub(super) fn are_hours(node: &Value, _: &Value) -> bool {
    text(node, are_hours_of_any_size)
}

pub(super) fn are_hours_of_a_day(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        !are_hours_of_any_size(text)
            || every_end(text, |end| is_number_within(end, 0, 23))
    })
}

/// Whether every text of a list satisfies a predicate about one text.
fn every_item(node: &Value, holds: impl Fn(&Value, &Value) -> bool) -> bool {
    let items = node.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().all(|item| holds(item, node))
}

pub(super) fn are_all_hours(node: &Value, _: &Value) -> bool {
    every_item(node, are_hours)
}

pub(super) fn are_all_hours_of_a_day(node: &Value, _: &Value) -> bool {
    every_item(node, are_hours_of_a_day)
}

pub(super) fn has_both_lists(node: &Value, _: &Value) -> bool {
    !is_empty_list(node, "daysOfWeek") && !is_empty_list(node, "hoursOfDay")
}

pub(super) fn is_zone_name(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "_+/-".contains(letter))
    })
}

pub(super) fn is_cluster_name(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        text.is_empty()
            || text.len() <= 63
                && text.starts_with(|first: char| first.is_ascii_alphanumeric())
                && text.chars().all(|letter| {
                    letter.is_ascii_alphanumeric() || "._-".contains(letter)
                })
    })
}

pub(super) fn has_group(node: &Value, _: &Value) -> bool {
    text(node, |text| text.contains('/'))
}

fn is_of_group(node: &Value, groups: &[&str]) -> bool {
    text(node, |text| {
        text.split_once('/')
            .is_none_or(|(group, _)| groups.contains(&group))
    })
}

pub(super) fn is_bootstrap_group(node: &Value, _: &Value) -> bool {
    is_of_group(node, &name::BOOTSTRAP_GROUPS)
}

pub(super) fn is_infrastructure_group(node: &Value, _: &Value) -> bool {
    is_of_group(node, &name::INFRASTRUCTURE_GROUPS)
}

fn is_positive(number: &str) -> bool {
    is_number(number) && !number.starts_with('0')
}

fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let split = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    match split {
        Some((major, minor)) => is_positive(major) && is_positive(minor),
        None => is_positive(rest),
    }
}

pub(super) fn has_version(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        text.split_once('/')
            .is_none_or(|(_, version)| is_version(version))
    })
}

pub(super) fn is_kind(node: &Value, _: &Value) -> bool {
    text(node, |text| text.is_empty() || is_kind_name(text))
}

fn is_kind_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

pub(super) fn is_kind_of_one_machine(node: &Value, _: &Value) -> bool {
    let others = ["Template", "Cluster", "List", "Identity"];
    text(node, |text| {
        !others.iter().any(|other| text.ends_with(other))
    })
}

pub(super) fn is_own_namespace(node: &Value, object: &Value) -> bool {
    let own = object
        .pointer("/metadata/namespace")
        .unwrap_or(&Value::Null);
    // A file that is checked offline may omit its namespace; `kubectl apply` sets it.
    own.is_null() || node == own
}

/// Whether a part is at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends.
fn is_name_part(part: &str) -> bool {
    let at_end =
        |letter: Option<u8>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    part.len() <= 63
        && at_end(part.bytes().next())
        && at_end(part.bytes().last())
        && part
            .bytes()
            .all(|letter| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter))
}

fn is_dns_label(label: &str) -> bool {
    let at_end = |letter: Option<u8>| {
        letter
            .is_some_and(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    at_end(label.bytes().next())
        && at_end(label.bytes().last())
        && label.bytes().all(|letter| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-'
        })
}

/// Kubernetes' qualified name: an optional DNS subdomain and `/`, then a name part.
pub(super) fn is_qualified_name(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= 253
                && prefix.split('.').all(is_dns_label)
                && is_name_part(name)
        }
        None => is_name_part(key),
    }
}

fn every_key(node: &Value, holds: impl Fn(&str) -> bool) -> bool {
    node.as_object()
        .is_none_or(|map| map.keys().all(|key| holds(key)))
}

pub(super) fn has_qualified_keys(node: &Value, _: &Value) -> bool {
    every_key(node, is_qualified_name)
}

pub(super) fn has_no_reserved_keys(node: &Value, _: &Value) -> bool {
    every_key(node, |key| !is_reserved_in_template(key))
}

fn is_in_domain(prefix: &str, domain: &str) -> bool {
    prefix
        .strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_reserved_in_template(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    if is_in_domain(prefix, "cluster.x-k8s.io") {
        return prefix != "node.cluster.x-k8s.io"
            && key != "cluster.x-k8s.io/skip-remediation"
            && key != "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    }
    let is_given_away =
        ["node-role.kubernetes.io", "node-restriction.kubernetes.io"].contains(&prefix);
    !is_given_away
        && [
            "5spot.finos.org",
            "5spot.eribourg.dev",
            "kubernetes.io",
            "k8s.io",
        ]
        .iter()
        .any(|domain| is_in_domain(prefix, domain))
}

pub(super) fn is_label_value_text(value: &str) -> bool {
    value.is_empty() || is_name_part(value)
}

pub(super) fn has_label_values(node: &Value, _: &Value) -> bool {
    node.as_object()
        .is_none_or(|map| map.values().all(|value| text(value, is_label_value_text)))
}

pub(super) fn is_label_value(node: &Value, _: &Value) -> bool {
    text(node, is_label_value_text)
}

pub(super) fn is_taint_key(node: &Value, _: &Value) -> bool {
    text(node, is_qualified_name)
}

pub(super) fn is_not_reserved_for_taints(node: &Value, _: &Value) -> bool {
    text(node, |key| !is_reserved_taint_key(key))
}

/// Whether a taint key is reserved for Kubernetes or the operator.
pub(super) fn is_reserved_taint_key(key: &str) -> bool {
    let reserved = [
        "5spot.finos.org",
        "kubernetes.io",
        "node.kubernetes.io",
        "node-role.kubernetes.io",
    ];
    key.split_once('/')
        .is_some_and(|(prefix, _)| reserved.contains(&prefix))
}

/// The maximum total size of keys and values of the Machine's annotations, in bytes.
const MAX_ANNOTATION_BYTES: usize = 64 * 1024;

pub(super) fn are_of_bounded_size(node: &Value, _: &Value) -> bool {
    let entries = node.as_object().into_iter().flatten();
    let bytes = entries.map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        key.len().saturating_add(value.len())
    });
    bytes.fold(0, usize::saturating_add) <= MAX_ANNOTATION_BYTES
}

pub(super) fn is_kubernetes_version(node: &Value, _: &Value) -> bool {
    text(node, |text| {
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let [Some(major), Some(minor), Some(patch)] =
            [parts.next(), parts.next(), parts.next()]
        else {
            return false;
        };
        let (patch, suffix) = patch
            .find(['-', '+'])
            .map_or((patch, ""), |end| patch.split_at(end));
        [major, minor, patch].into_iter().all(is_number) && !suffix.contains('\n')
    })
}

/// Whether bootstrap and infrastructure are objects of different kinds, whatever their versions:
/// both get the name of the ScheduledMachine.
pub(super) fn has_two_kinds(node: &Value, _: &Value) -> bool {
    let kind_of = |role: &str| {
        let object = node.get(role)?;
        let group = object.get("apiVersion")?.as_str()?.split('/').next()?;
        Some((group, object.get("kind")?.as_str()?))
    };
    let kinds = kind_of("bootstrapSpec").zip(kind_of("infrastructureSpec"));
    kinds.is_none_or(|(bootstrap, infrastructure)| bootstrap != infrastructure)
}

pub(super) fn has_no_name(node: &Value, _: &Value) -> bool {
    !is_set(node, "name")
}

pub(super) fn has_no_namespace(node: &Value, _: &Value) -> bool {
    !is_set(node, "namespace")
}

pub(super) fn has_no_kata(node: &Value, _: &Value) -> bool {
    !is_set(node, "kata")
}

pub(super) fn has_commands_once(node: &Value, _: &Value) -> bool {
    !is_set(node, "killIfCommands") || !is_set(&node["reclaim"], "commands")
}

pub(super) fn is_name(node: &Value, _: &Value) -> bool {
    text(node, |name| name.len() <= 63 && is_dns_label(name))
}

pub(super) fn is_name_of_a_set(node: &Value, _: &Value) -> bool {
    text(node, |name| {
        name.len() <= MAX_SET_NAME && is_dns_label(name)
    })
}

pub(super) fn is_object_name(node: &Value, _: &Value) -> bool {
    text(node, |name| name.split('.').all(is_dns_label))
}

pub(super) fn is_field_path(node: &Value, _: &Value) -> bool {
    text(node, |path| path.parse::<FieldPath>().is_ok())
}

pub(super) fn is_scalar_value(node: &Value, _: &Value) -> bool {
    is_scalar(node)
}

pub(super) fn has_capacity_or_fields(node: &Value, _: &Value) -> bool {
    is_set(node, "capacity") != is_set(node, "fields")
}

pub(super) fn has_name_or_template(node: &Value, _: &Value) -> bool {
    let target = node.get("target").unwrap_or(&Value::Null);
    is_set(target, "name") != is_set(node, "template")
}

pub(super) fn is_scale(node: &Value, _: &Value) -> bool {
    text(node, |text| text == "scale")
}

pub(super) fn scales_only_replicas(node: &Value, _: &Value) -> bool {
    let subresource = node.pointer("/target/subresource");
    if subresource.and_then(Value::as_str) != Some("scale") {
        return true;
    }
    let is_replicas = |field: Option<&Value>| {
        field
            .and_then(Value::as_str)
            .is_none_or(|it| it == "replicas")
    };
    let fields = node.get("fields").and_then(Value::as_array);
    !is_set(node, "template")
        && is_replicas(node.pointer("/capacity/field"))
        && fields.is_none_or(|all| all.iter().all(|it| is_replicas(it.get("field"))))
}

pub(super) fn is_group_version(node: &Value, _: &Value) -> bool {
    text(node, |text| match text.split_once('/') {
        Some((group, version)) => {
            group.split('.').all(is_dns_label) && is_version(version)
        }
        None => is_version(text),
    })
}

pub(super) fn is_target_kind(node: &Value, object: &Value) -> bool {
    is_not_empty(node, object) && is_kind(node, object)
}
