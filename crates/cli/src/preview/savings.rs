//! What the machines of a preview would cost, compared with always-on machines.

use fivespot_usage::{Rates, Total, text};
use serde::Serialize;

use crate::preview::forecast::Forecast;

/// The costs of all machines in the range of a preview. Serialized as a part of the JSON output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Savings {
    currency: String,
    #[serde(flatten)]
    total: Total,
}

impl Savings {
    pub(super) fn of(forecasts: &[Forecast], rates: Rates) -> Self {
        let machines = forecasts.iter().map(|forecast| {
            let machine = &forecast.planned.object;
            let kind = &machine.spec.infrastructure_spec.kind;
            let labels = machine.metadata.labels.clone().unwrap_or_default();
            let rate = rates.of(kind, &labels);
            let figures = forecast.figures();
            (figures, rate.map(|rate| rates.costs(rate, &figures)))
        });
        Self {
            total: Total::of(machines),
            currency: rates.currency,
        }
    }

    /// The same as a table.
    pub(super) fn text(&self) -> String {
        text::total(&self.total, &self.currency)
    }
}
