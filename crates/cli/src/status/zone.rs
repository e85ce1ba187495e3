//! The time zones in which the next changes of what follows a schedule are shown.

use std::collections::BTreeMap;

use fivespot_api::resource::{CAPITAL_MARKETS_SCHEDULE, TIME_BASED_SPOT_SCHEDULE};
use kube::Client;
use serde_json::Value;

use super::schedule::{Schedules, followed};
use crate::cluster;
use crate::named::Named;

/// The time zones of the schedules that objects share, by namespace, kind and name. Empty where the
/// user may not read the schedule.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<[String; 3], String>);

impl Zones {
    /// Those of the schedules that were listed.
    pub(super) fn listed(schedules: &Schedules) -> Self {
        let rows = schedules.rows.iter();
        Self(rows.map(|row| (row.key(), row.zone.clone())).collect())
    }

    /// Reads the schedule that an object follows, unless it was read before.
    pub(super) async fn read(&mut self, client: &Client, object: &Value) {
        let key = followed(object);
        let [namespace, kind, name] = &key;
        let kinds = [TIME_BASED_SPOT_SCHEDULE, CAPITAL_MARKETS_SCHEDULE];
        let Some(resource) = kinds.into_iter().find(|it| it.kind == kind) else {
            return;
        };
        if self.0.contains_key(&key) {
            return;
        }
        let found = cluster::readable(client, namespace, Named { resource, name }).await;
        let zone =
            found.and_then(|it| Some(it.data["spec"]["timezone"].as_str()?.to_owned()));
        self.0.insert(key, zone.unwrap_or_default());
    }

    /// The time zone of the schedule of an object. As where it is evaluated: that of the schedule
    /// that it follows, unless it has exceptions, whose local dates are those of its own.
    pub(super) fn of(&self, object: &Value) -> String {
        let own = &object["spec"]["schedule"];
        let shared = self.0.get(&followed(object)).filter(|it| !it.is_empty());
        let shared =
            shared.filter(|_| own["exceptions"].as_array().is_none_or(Vec::is_empty));
        let zone = shared.map(String::as_str).or(own["timezone"].as_str());
        zone.unwrap_or_default().to_owned()
    }
}
