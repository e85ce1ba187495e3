//! The schedules that objects share, in a table of their own.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use fivespot_api::{CapitalMarketsSchedule, TimeBasedSpotSchedule};
use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::listed::Listed;
use super::table::{Instants, or_dash};
use crate::columns::table;
use crate::document::Document;
use crate::preview::source::{self, Selection};

/// How many objects follow each schedule, by its namespace, kind and name.
#[derive(Debug, Default)]
pub(super) struct Followers(BTreeMap<[String; 3], usize>);

impl Followers {
    /// Counts an object that may follow a schedule.
    pub(super) fn add(&mut self, object: &Value) {
        *self.0.entry(followed(object)).or_default() += 1;
    }
}

/// The namespace, kind and name of the schedule that an object follows. Kind and name are empty if
/// its schedule is its own.
pub(super) fn followed(object: &Value) -> [String; 3] {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let followed = [
        "/metadata/namespace",
        "/spec/schedule/kind",
        "/spec/schedule/name",
    ];
    followed.map(text)
}

/// What was found of them.
pub(super) type Schedules = Listed<Row>;

/// One row: the state of one schedule, as the operator has published it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// Whether it is evaluated. Those that are not come first.
    is_ready: bool,
    namespace: String,
    kind: String,
    name: String,
    /// Whether it is open; absent before the first report.
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<bool>,
    /// How many ScheduledMachines and ScheduledCapacities follow it, of those that the user may
    /// list.
    followers: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
    reason: String,
    message: String,
    /// The time zone.
    #[serde(skip)]
    pub(super) zone: String,
}

impl Schedules {
    /// Reads the shared schedules of a namespace or of all. None if the kinds are not served. That
    /// they cannot be read is no error.
    pub(super) async fn list(
        client: &Client,
        selection: Selection<'_>,
        followers: &Followers,
    ) -> Self {
        let found = [
            source::listed::<TimeBasedSpotSchedule>(client, selection).await,
            source::listed::<CapitalMarketsSchedule>(client, selection).await,
        ];
        let mut schedules = Self::default();
        for found in found {
            match found {
                Ok(documents) => {
                    let rows = documents.iter().map(|it| Row::of(it, followers));
                    schedules.rows.extend(rows);
                }
                Err(unreadable) => schedules.unreadable.push(unreadable),
            }
        }
        schedules.rows.sort();
        schedules
    }

    /// Prints rows under their heads, in columns; or that they may not be read.
    pub(super) fn print(
        &self,
        out: &mut dyn Write,
        instants: &Instants,
    ) -> io::Result<()> {
        let heads = [
            "NAMESPACE",
            "SCHEDULE",
            "OPEN",
            "FOLLOWERS",
            "NEXT",
            "MESSAGE",
        ];
        self.print_with(out, |out, rows| {
            let rows: Vec<_> = rows.iter().map(|row| row.cells(instants)).collect();
            table(out, heads, &rows)
        })
    }
}

impl Row {
    fn of(document: &Document, followers: &Followers) -> Self {
        let text = |pointer: &str| document.text(pointer).to_owned();
        let key = ["/metadata/namespace", "/kind", "/metadata/name"].map(text);
        let conditions = document.object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|it| it["type"] == "Ready");
        let of_ready = |field: &str| {
            let found = ready.and_then(|it| it[field].as_str());
            found.unwrap_or_default().to_owned()
        };
        let [namespace, kind, name] = key.clone();
        Self {
            is_ready: of_ready("status") == "True",
            active: document.object["status"]["active"].as_bool(),
            followers: followers.0.get(&key).copied().unwrap_or_default(),
            next: text("/status/nextTransitionTime"),
            reason: of_ready("reason"),
            message: match ready {
                Some(_) => of_ready("message"),
                None => "the operator has not reported on it yet".to_owned(),
            },
            zone: text("/spec/timezone"),
            namespace,
            kind,
            name,
        }
    }

    /// Its namespace, kind and name.
    pub(super) fn key(&self) -> [String; 3] {
        [&self.namespace, &self.kind, &self.name].map(Clone::clone)
    }

    fn cells(&self, instants: &Instants) -> [String; 6] {
        let next = instants.text(or_dash(&self.next), &self.zone);
        let cells = [
            self.namespace.as_str(),
            &*format!("{} {}", self.kind, self.name),
            match self.active {
                Some(true) => "yes",
                Some(false) => "no",
                None => "-",
            },
            &*self.followers.to_string(),
            &*next,
            &self.message,
        ];
        cells.map(ToOwned::to_owned)
    }
}
