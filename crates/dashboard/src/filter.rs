//! The filter for the machines shown and how they are shown, from the query of the URL.

use fivespot_api::verdict::State;
use fivespot_controller::Key;
use fivespot_usage::Month;
use jiff::civil::Date;
use jiff::tz::TimeZone;
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
    /// The name of the time zone of the page. Empty for that of the machines.
    pub(crate) zone: String,
    /// The column by which the list is sorted; with `-` before it, in reverse.
    pub(crate) sort: String,
    /// The width in pixels that the browser has for a picture; it is no part of the URL.
    #[serde(skip)]
    pub(crate) width: Option<u32>,
}

/// A column by which the list can be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Machine,
    State,
    Phase,
    Cluster,
    Node,
    Next,
    Message,
}

impl Column {
    /// Every column, from left to right.
    pub(crate) const ALL: [Self; 7] = [
        Self::Machine,
        Self::State,
        Self::Phase,
        Self::Cluster,
        Self::Node,
        Self::Next,
        Self::Message,
    ];

    /// The title of the column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Machine => "Machine",
            Self::State => "State",
            Self::Phase => "Phase",
            Self::Cluster => "Cluster",
            Self::Node => "Node",
            Self::Next => "Next change",
            Self::Message => "Message",
        }
    }

    /// The column in a URL: the first word of its title.
    fn name(self) -> String {
        let word = self.title().split(' ').next().unwrap_or_default();
        word.to_lowercase()
    }
}

/// The chosen order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) column: Column,
    pub(crate) is_descending: bool,
}

impl Filter {
    /// Whether a machine in this state matches the filter.
    pub(crate) fn matches(&self, machine: &Machine, state: State) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let phase = phase_name(machine.phase());
        let label = match self.label.split_once('=') {
            _ if self.label.is_empty() => true,
            Some((key, value)) => machine.labels.get(key).is_some_and(|it| it == value),
            None => machine.labels.contains_key(&self.label),
        };
        self.matches_state_and_name(&machine.name, state)
            && is(&self.phase, phase)
            && is(&self.cluster, machine.cluster())
            && label
    }

    /// Whether it admits an object by its name, its namespace and its state.
    pub(crate) fn matches_state_and_name(&self, name: &Key, state: State) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let query: String = self.q.chars().take(MAX_VALUE_CHARS).collect();
        name.name.contains(query.trim())
            && is(&self.namespace, &name.namespace)
            && is(&self.state, state.as_str())
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

    /// The chosen order. `None` begins with what to look at first.
    pub(crate) fn order(&self) -> Option<Order> {
        let (name, is_descending) = match self.sort.strip_prefix('-') {
            Some(name) => (name, true),
            None => (self.sort.as_str(), false),
        };
        let column = Column::ALL.into_iter().find(|it| it.name() == name)?;
        Some(Order {
            column,
            is_descending,
        })
    }

    /// The same filter, sorted by a column: in reverse if it is sorted by it already.
    pub(crate) fn sorted_by(&self, column: Column) -> Self {
        let ascending = Order {
            column,
            is_descending: false,
        };
        let mark = if self.order() == Some(ascending) {
            "-"
        } else {
            ""
        };
        self.with(|it| {
            it.sort = format!("{mark}{}", column.name());
            it.page.clear();
        })
    }

    /// The time zone of the page: the chosen one, else that of the machines.
    pub(crate) fn zone_or(&self, machines: TimeZone) -> TimeZone {
        let chosen = Some(self.zone.as_str()).filter(|zone| !zone.is_empty());
        chosen.and_then(fivespot_schedule::zone).unwrap_or(machines)
    }

    /// Of the filter, only the time zone: all pages of a session have the same one.
    pub(crate) fn only_zone(&self) -> Self {
        let zone = self.zone.clone();
        Self::default().with(|it| it.zone = zone)
    }

    /// The same filter with a change.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
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
            ("zone", &self.zone),
            ("sort", &self.sort),
        ];
        let given = parts.into_iter().filter(|(_, value)| !value.is_empty());
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in given {
            let value: String = value.chars().take(MAX_VALUE_CHARS).collect();
            query.append_pair(name, &value);
        }
        match query.finish() {
            none if none.is_empty() => none,
            pairs => format!("?{pairs}"),
        }
    }
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
        let query = "?q=desk+%26+%3Cb%3E&phase=Active&label=team%3D%C3%A4";
        assert_eq!(filter.query(), query);
        assert_eq!(
            filter.with(|it| it.page = "3".to_owned()).query(),
            format!("{query}&page=3")
        );
        assert_eq!(Filter::default().query(), "");
    }

    #[test]
    fn a_column_is_sorted_in_reverse_when_it_is_chosen_again() {
        let once = Filter::default().sorted_by(Column::Next);
        assert_eq!(once.query(), "?sort=next");
        let twice = once.sorted_by(Column::Next);
        assert_eq!(twice.query(), "?sort=-next");
        assert_eq!(twice.sorted_by(Column::Next).query(), "?sort=next");
        assert_eq!(twice.sorted_by(Column::Node).query(), "?sort=node");
        let odd = Filter {
            sort: "color".to_owned(),
            ..Filter::default()
        };
        assert_eq!(odd.order(), None);
    }

    #[test]
    fn a_zone_that_does_not_exist_is_that_of_the_machines() {
        let zone = |name: &str| {
            let filter = Filter {
                zone: name.to_owned(),
                ..Filter::default()
            };
            let machines = TimeZone::get("Asia/Tokyo").unwrap();
            filter.zone_or(machines).iana_name().unwrap().to_owned()
        };
        assert_eq!(zone(""), "Asia/Tokyo");
        assert_eq!(zone("UTC"), "UTC");
        assert_eq!(zone("Europe/Zurich"), "Europe/Zurich");
        assert_eq!(zone("Europe/Zurch"), "Asia/Tokyo");
    }
}
