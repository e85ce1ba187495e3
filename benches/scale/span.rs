//! The requests of an operator in a span of the audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use benches::Entry;
use jiff::Timestamp;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::operator::is_operator;

/// Counts of the operator's requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// The number of requests by verb and resource, and by the response's status code if it is not
    /// a success.
    requests: BTreeMap<String, usize>,
    /// The number of responses with 429.
    refused: usize,
}

impl Span {
    /// Counts the operator's requests in these entries.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut span = Self::default();
        for entry in entries.iter().filter(|entry| is_operator(entry)) {
            let of = match entry.subresource.as_str() {
                "" => String::new(),
                subresource => format!("/{subresource}"),
            };
            let mut kind = format!("{} {}{of}", entry.verb, entry.resource);
            if entry.code >= 300 {
                let _ = write!(kind, " ({})", entry.code);
            }
            *span.requests.entry(kind).or_default() += 1;
            span.refused += usize::from(entry.code == 429);
        }
        span
    }

    /// Adds the counts of another span.
    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, count) in &other.requests {
            *self.requests.entry(kind.clone()).or_default() += count;
        }
        self.refused += other.refused;
    }

    /// The total number of requests.
    pub(crate) fn total(&self) -> usize {
        self.requests.values().sum()
    }

    /// How many responses were 429.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    /// The number of requests except watches and requests for Leases.
    pub(crate) fn active_requests(&self) -> usize {
        let those = self
            .requests
            .iter()
            .filter(|(kind, _)| !kind.starts_with("watch ") && !kind.contains(" leases"));
        those.map(|(_, count)| count).sum()
    }

    /// The number of successful writes, except those of Events and Leases.
    pub(crate) fn writes(&self) -> usize {
        let those = self.requests.iter().filter(|(kind, _)| {
            let is_read = ["get ", "list ", "watch "]
                .iter()
                .any(|verb| kind.starts_with(verb));
            let is_refused = kind.ends_with(')');
            let is_aside = kind.ends_with(" events") || kind.ends_with(" leases");
            !is_read && !is_refused && !is_aside
        });
        those.map(|(_, count)| count).sum()
    }

    /// The number of requests by verb and resource.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, usize)> {
        self.requests
            .iter()
            .map(|(kind, count)| (kind.as_str(), *count))
    }
}

/// Includes the totals, so that readers of a record need not classify requests.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut span = serializer.serialize_struct("Span", 4)?;
        span.serialize_field("requests", &self.requests)?;
        span.serialize_field("refused", &self.refused)?;
        span.serialize_field("writes", &self.writes())?;
        span.serialize_field("beyondIdling", &self.active_requests())?;
        span.end()
    }
}

/// When the last of the three objects of each machine was created: for the Machines that the
/// operator created, in seconds after the edge, ascending.
pub(crate) fn latenesses(entries: &[Entry], edge: Timestamp) -> Vec<f64> {
    let mut observed = BTreeSet::new();
    let created = entries.iter().filter(|entry| {
        is_operator(entry)
            && entry.verb == "create"
            && entry.resource == "machines"
            && entry.is_write()
    });
    let mut late: Vec<f64> = created
        .filter(|entry| entry.name.is_empty() || observed.insert(entry.name.clone()))
        .filter_map(|entry| entry.ended)
        .map(|ended| ended.duration_since(edge).as_secs_f64())
        .collect();
    late.sort_by(f64::total_cmp);
    late
}

/// The values at half, at 99 in 100 and at all of them.
pub(crate) fn quantiles(ascending: &[f64]) -> [f64; 3] {
    [500, 990, 1_000].map(|part| per_mille(ascending, part))
}

/// The value below which this many of a thousand lie. 0 if there are no values.
fn per_mille(ascending: &[f64], part: usize) -> f64 {
    let last = ascending.len().saturating_sub(1);
    let at = (ascending.len() * part / 1_000).min(last);
    ascending.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::USER;

    fn entry(user: &str, verb: &str, resource: &str, code: u16) -> Entry {
        let line = serde_json::json!({
            "stage": "ResponseComplete", "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource}, "responseStatus": {"code": code},
            "stageTimestamp": "2026-03-06T14:00:01.5Z",
        });
        Entry::read(&line.to_string()).expect("an event")
    }

    #[test]
    fn only_successful_writes_of_the_operator_count_as_writes() {
        let entries = [
            entry(USER, "create", "machines", 201),
            entry(USER, "create", "events", 201),
            entry(USER, "update", "leases", 200),
            entry(USER, "get", "machines", 429),
            entry(USER, "patch", "machines", 409),
            entry(USER, "update", "leases", 409),
            entry("capi", "patch", "machines", 200),
        ];
        let span = Span::of(&entries);
        let counts = (
            span.total(),
            span.writes(),
            span.refused(),
            span.active_requests(),
        );
        assert_eq!(counts, (6, 1, 1, 4));
    }

    #[test]
    fn requests_to_a_workload_cluster_as_another_user_are_counted() {
        let mut pod_list = entry("workload-admin", "list", "pods", 200);
        pod_list.agent = "5spot/0.1.0".to_owned();
        let mut other = entry("workload-admin", "list", "pods", 200);
        other.agent = "kubectl/v1.36.0".to_owned();
        assert_eq!(Span::of(&[pod_list, other]).total(), 1);
    }

    #[test]
    fn a_record_separates_reads_writes_and_idle_requests() {
        let mut recorded = entry(USER, "patch", "scheduledmachines", 200);
        recorded.subresource = "status".to_owned();
        let entries = [
            entry(USER, "get", "machines", 200),
            entry(USER, "list", "nodes", 200),
            entry(USER, "watch", "nodes", 200),
            entry(USER, "update", "leases", 200),
            entry(USER, "update", "leases", 409),
            recorded,
        ];
        let record = |entries: &[Entry]| serde_json::to_value(Span::of(entries)).ok();
        let expected = serde_json::json!({
            "requests": {
                "get machines": 1, "list nodes": 1, "watch nodes": 1, "update leases": 1,
                "update leases (409)": 1, "patch scheduledmachines/status": 1,
            },
            "refused": 0, "writes": 1, "beyondIdling": 3,
        });
        assert_eq!(record(&entries), Some(expected));
        let nothing = serde_json::json!({"requests": {}, "refused": 0, "writes": 0, "beyondIdling": 0});
        assert_eq!(record(&[]), Some(nothing));
    }

    #[test]
    fn a_refused_create_is_not_counted_as_the_creation_of_the_machine() {
        let edge = "2026-03-06T14:00:00Z".parse().expect("an instant");
        let entries = [
            entry(USER, "create", "machines", 409),
            entry(USER, "create", "machines", 201),
        ];
        assert_eq!(latenesses(&entries, edge), [1.5]);
    }

    #[test]
    fn the_value_at_500_per_mille_is_the_median() {
        assert_eq!(
            per_mille(&[1.0, 2.0, 3.0], 500).to_bits(),
            2.0_f64.to_bits()
        );
        assert_eq!(per_mille(&[], 990).to_bits(), 0.0_f64.to_bits());
        assert_eq!(per_mille(&[1.0, 2.0], 1_000).to_bits(), 2.0_f64.to_bits());
    }
}
