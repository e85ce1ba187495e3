//! The report: per machine, per label, and in total.

use std::collections::BTreeMap;

use fivespot_api::verdict::{State, Verdict};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Capacity, Costs, Figures, Machine, Month, Rates};

/// The parameters of a report.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// The month.
    pub month: Month,
    /// The current time; later times are not counted.
    pub now: Timestamp,
    /// The key of the label by whose values the figures are also added up.
    pub label: Option<&'q str>,
    /// The costs of machines.
    pub rates: Option<&'q Rates>,
}

/// The usage of a month, from status.usage.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "5spot report", deny_unknown_fields)]
pub struct Report {
    /// The month, in UTC.
    #[schemars(with = "String", regex(pattern = "^[0-9]{4}-[0-9]{2}$"))]
    pub month: Month,
    /// Its first instant.
    pub start_time: Timestamp,
    /// Until when it is counted: the end of the month, or the current time.
    pub end_time: Timestamp,
    /// Whether it is what the schedules plan; absent if it is what was used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_forecast: bool,
    /// The currency of the costs; absent without rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub currency: Option<String>,
    /// The label key of byLabel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub label: Option<String>,
    /// The figures by value of the label, sorted; machines without the label are last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_label: Vec<LabelTotal>,
    /// The machines, by namespace and name.
    pub items: Vec<Item>,
    /// The total of all machines.
    pub total: Total,
    /// The ScheduledCapacities, by namespace and name; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Machines without usage data for the month, as namespace/name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_account: Vec<String>,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Item {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The value of its label; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub label_value: Option<String>,
    /// The beginning of the count: of the month, or of the machine's account.
    pub start_time: Timestamp,
    /// The counts.
    #[serde(flatten)]
    pub figures: Figures,
    /// The name of its rate; absent if no rate matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub rate: Option<String>,
    /// The costs; absent without a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Costs")]
    pub costs: Option<Costs>,
    /// What its status says at present, as in the output of `5spot status`; absent in a forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::verdict")]
    pub verdict: Option<Verdict>,
}

/// Machines with the same value of a label.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct LabelTotal {
    /// The value; absent for machines without the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub value: Option<String>,
    /// Their total.
    #[serde(flatten)]
    pub total: Total,
}

/// The total of several machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Total {
    /// The number of machines.
    pub machines: usize,
    /// How many of them have no rate; the costs do not include them.
    pub without_rate: usize,
    /// The sum of the counts.
    #[serde(flatten)]
    pub figures: Figures,
    /// The sum of the costs; absent if no machine has a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Costs")]
    pub costs: Option<Costs>,
}

impl Report {
    /// The report on `machines`. Costs are rounded, sums after they were added up.
    pub fn of(machines: impl IntoIterator<Item = Machine>, query: &Query<'_>) -> Self {
        let mut machines: Vec<Machine> = machines.into_iter().collect();
        machines.sort_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        let mut items = Vec::new();
        let mut without_account = Vec::new();
        for machine in machines {
            if let Some(item) = item(&machine, query) {
                items.push(item);
            } else {
                let Machine {
                    namespace, name, ..
                } = machine;
                without_account.push(format!("{namespace}/{name}"));
            }
        }
        let total = total(&items, query);
        let by_label = match query.label {
            Some(_) => by_label(&items, query),
            None => Vec::new(),
        };
        for item in &mut items {
            item.costs = item.costs.map(Costs::rounded);
        }
        Self {
            month: query.month,
            start_time: query.month.start(),
            end_time: query.month.end().min(query.now).max(query.month.start()),
            is_forecast: false,
            currency: query.rates.map(|rates| rates.currency.clone()),
            label: query.label.map(ToOwned::to_owned),
            by_label,
            items,
            total,
            capacities: Vec::new(),
            without_account,
        }
    }

    /// The same with these ScheduledCapacities.
    #[must_use]
    pub fn with_capacities(mut self, capacities: Vec<Capacity>) -> Self {
        self.capacities = capacities;
        self.capacities.sort_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        self
    }
}

impl Report {
    /// The machines that a person must act on, as `namespace/name`: they add no use until then; and
    /// the capacities, as `scap namespace/name`.
    pub(crate) fn blocked(&self) -> Vec<String> {
        let is_blocked = |verdict: Option<&Verdict>| {
            verdict.is_some_and(|it| it.state == State::Blocked)
        };
        let mut names = self.names(|item| is_blocked(item.verdict.as_ref()));
        let capacities = self.capacities.iter();
        let blocked = capacities.filter(|it| is_blocked(it.verdict.as_ref()));
        names.extend(blocked.map(|it| format!("scap {}/{}", it.namespace, it.name)));
        names
    }

    /// The machines whose use is only planned because they were in audit mode, as
    /// `namespace/name`.
    pub(crate) fn audited(&self) -> Vec<String> {
        self.names(|item| item.figures.audited_seconds > 0)
    }

    fn names(&self, is_named: impl Fn(&Item) -> bool) -> Vec<String> {
        let items = self.items.iter().filter(|item| is_named(item));
        items
            .map(|item| format!("{}/{}", item.namespace, item.name))
            .collect()
    }
}

/// The figures of one machine, with costs that are not rounded. `None` without an account.
fn item(machine: &Machine, query: &Query<'_>) -> Option<Item> {
    let figures = machine.figures(query.month, query.now)?;
    let rated = query.rates.and_then(|rates| {
        let rate = rates.of(&machine.infrastructure_kind, &machine.labels)?;
        Some((rate.name.clone(), rates.costs(rate, &figures)))
    });
    let (rate, costs) = rated.unzip();
    let start = query.month.start();
    Some(Item {
        namespace: machine.namespace.clone(),
        name: machine.name.clone(),
        label_value: query.label.and_then(|key| machine.labels.get(key).cloned()),
        start_time: machine.since().map_or(start, |since| since.max(start)),
        figures,
        rate,
        costs,
        verdict: machine.verdict.clone(),
    })
}

fn total<'i>(items: impl IntoIterator<Item = &'i Item>, query: &Query<'_>) -> Total {
    let items = items.into_iter();
    let mut total = Total::of(items.map(|item| (item.figures, item.costs)));
    if query.rates.is_none() {
        total.without_rate = 0;
    }
    total
}

impl Total {
    /// The sum of machines, each with its costs if it has a rate. Costs are rounded after they were added
    /// up.
    pub fn of(machines: impl IntoIterator<Item = (Figures, Option<Costs>)>) -> Self {
        let mut total = Self::default();
        for (figures, costs) in machines {
            total.machines += 1;
            total.figures.add(&figures);
            match costs {
                Some(costs) => total.costs.get_or_insert_default().add(&costs),
                None => total.without_rate += 1,
            }
        }
        total.costs = total.costs.map(Costs::rounded);
        total
    }
}

fn by_label(items: &[Item], query: &Query<'_>) -> Vec<LabelTotal> {
    let mut of_value: BTreeMap<(bool, Option<&str>), Vec<&Item>> = BTreeMap::new();
    for item in items {
        let value = item.label_value.as_deref();
        of_value
            .entry((value.is_none(), value))
            .or_default()
            .push(item);
    }
    let totals = of_value.into_iter();
    totals
        .map(|((_, value), items)| LabelTotal {
            value: value.map(ToOwned::to_owned),
            total: total(items, query),
        })
        .collect()
}
