//! The filter for the machines shown, from the query of the URL.

use std::fmt::Write as _;

use fivespot_api::verdict::State;
use fivespot_usage::Month;
use jiff::civil::Date;
use serde::Deserialize;

use crate::machine::Machine;
use crate::page::phase_name;

/// The number of machines on a page.
pub(crate) const PAGE: usize = 100;

/// The number of characters of a filter value that are used.
const MAX_VALUE_CHARS: usize = 256;

/// The selected filter. Absent and empty values both mean no restriction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    /// A part of the name.
    pub(crate) q: String,
    pub(crate) namespace: String,
    pub(crate) phase: String,
    /// A state of the verdict.
    pub(crate) state: String,
    pub(crate) cluster: String,
    /// `key` or `key=value`.
    pub(crate) label: String,
    /// The number of the page, from 1.
    pub(crate) page: String,
    /// The first day of the picture: `2026-03-09`.
    pub(crate) from: String,
    /// The number of days of the picture.
    pub(crate) days: String,
    /// The month of the savings: `2026-10`.
    pub(crate) month: String,
    /// The key of the label by which savings are grouped.
    pub(crate) by: String,
}

impl Filter {
    /// Whether a machine in this state matches the filter.
    pub(crate) fn matches(&self, machine: &Machine, state: State) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let phase = phase_name(machine.phase);
        let label = match self.label.split_once('=') {
            _ if self.label.is_empty() => true,
            Some((key, value)) => machine.labels.get(key).is_some_and(|it| it == value),
            None => machine.labels.contains_key(&self.label),
        };
        let query: String = self.q.chars().take(MAX_VALUE_CHARS).collect();
        machine.name.name.contains(query.trim())
            && is(&self.namespace, &machine.name.namespace)
            && is(&self.phase, phase)
            && is(&self.cluster, &machine.cluster)
            && is(&self.state, state.as_str())
            && label
    }

    /// Whether a value is set that can exclude machines.
    pub(crate) fn is_restricted(&self) -> bool {
        let values = [
            &self.q,
            &self.namespace,
            &self.phase,
            &self.cluster,
            &self.label,
            &self.state,
        ];
        values.into_iter().any(|it| !it.is_empty())
    }

    /// The number of the page, from 1.
    pub(crate) fn page(&self) -> usize {
        self.page.parse().unwrap_or(1).max(1)
    }

    /// The selected first day.
    pub(crate) fn first_day(&self) -> Option<Date> {
        self.from.parse().ok()
    }

    /// The number of days shown: 1, 7 or 14.
    pub(crate) fn days(&self) -> i64 {
        match self.days.as_str() {
            "1" => 1,
            "14" => 14,
            _ => 7,
        }
    }

    /// The selected month.
    pub(crate) fn month(&self) -> Option<Month> {
        self.month.parse().ok()
    }

    /// The key of the label by which savings are grouped.
    pub(crate) fn by(&self) -> Option<&str> {
        let key = self.by.trim();
        (!key.is_empty()).then_some(key)
    }

    /// The same filter with another month.
    pub(crate) fn with_month(&self, month: Month) -> Self {
        Self {
            month: month.to_string(),
            ..self.clone()
        }
    }

    /// The same filter with another page.
    pub(crate) fn with_page(&self, page: usize) -> Self {
        Self {
            page: page.to_string(),
            ..self.clone()
        }
    }

    /// The filter as a URL query with its question mark. Empty if no value is set.
    pub(crate) fn query(&self) -> String {
        let parts = [
            ("q", &self.q),
            ("namespace", &self.namespace),
            ("phase", &self.phase),
            ("cluster", &self.cluster),
            ("label", &self.label),
            ("state", &self.state),
            ("page", &self.page),
            ("from", &self.from),
            ("days", &self.days),
            ("month", &self.month),
            ("by", &self.by),
        ];
        let mut query = String::new();
        for (name, value) in parts.iter().filter(|(_, value)| !value.is_empty()) {
            let mark = if query.is_empty() { '?' } else { '&' };
            let _ = write!(query, "{mark}{name}={}", encoded(value));
        }
        query
    }
}

/// Percent-encodes a query value.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text
        .chars()
        .take(MAX_VALUE_CHARS)
        .collect::<String>()
        .bytes()
    {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_contains_the_selected_values() {
        let filter = Filter {
            q: "desk & <b>".to_owned(),
            phase: "Active".to_owned(),
            label: "team=ä".to_owned(),
            ..Filter::default()
        };
        let query = "?q=desk%20%26%20%3Cb%3E&phase=Active&label=team%3D%C3%A4";
        assert_eq!(filter.query(), query);
        assert_eq!(filter.with_page(3).query(), format!("{query}&page=3"));
        assert_eq!(Filter::default().query(), "");
    }
}
