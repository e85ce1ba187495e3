//! The figures of a month, for one machine or for several.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Rates;
use crate::rates::Rate;

/// The counts of a month, in seconds except for the reclaims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Seconds in which the schedule wanted the machine, except while it was disabled, killed or
    /// kept from starting by an override.
    #[schemars(range(min = 0))]
    pub wanted_seconds: i64,
    /// Seconds with a Ready Node.
    #[schemars(range(min = 0))]
    pub active_seconds: i64,
    /// Seconds in which objects of the machine existed without a Ready Node.
    #[schemars(range(min = 0))]
    pub provisioning_seconds: i64,
    /// Seconds in which the machine was wanted without a Ready Node.
    #[schemars(range(min = 0))]
    pub late_seconds: i64,
    /// Seconds in which the machine was wanted in audit mode, and would have been used.
    #[schemars(range(min = 0))]
    pub audited_seconds: i64,
    /// Seconds in which a machine existed, active and provisioning, or would have in audit mode.
    #[schemars(range(min = 0))]
    pub used_seconds: i64,
    /// Seconds of a machine that is always on, over the same time.
    #[schemars(range(min = 0))]
    pub always_on_seconds: i64,
    /// How often the owner of the host reclaimed it.
    #[schemars(range(min = 0))]
    pub reclaims: i64,
}

/// Amounts of money, energy and carbon dioxide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Amounts {
    /// In the currency of the rates, in a report rounded to cents.
    pub money: f64,
    /// Energy, in a report rounded to watt-hours.
    pub kilowatt_hours: f64,
    /// Carbon dioxide, in a report rounded to grams.
    pub co2_kilograms: f64,
}

/// The cost of the use, compared with machines that are always on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Costs {
    /// The cost of the time in which a machine existed.
    pub used: Amounts,
    /// The cost of a machine that is always on.
    pub always_on: Amounts,
    /// The difference.
    pub saved: Amounts,
}

impl Figures {
    pub(crate) fn add(&mut self, other: &Self) {
        // Other clients may write any number into a status.
        let add = |sum: &mut i64, number| *sum = sum.saturating_add(number);
        add(&mut self.wanted_seconds, other.wanted_seconds);
        add(&mut self.active_seconds, other.active_seconds);
        add(&mut self.provisioning_seconds, other.provisioning_seconds);
        add(&mut self.late_seconds, other.late_seconds);
        add(&mut self.audited_seconds, other.audited_seconds);
        add(&mut self.used_seconds, other.used_seconds);
        add(&mut self.always_on_seconds, other.always_on_seconds);
        add(&mut self.reclaims, other.reclaims);
    }
}

impl Rates {
    /// The costs of what was counted, at one of the rates. Not rounded.
    pub fn costs(&self, rate: &Rate, figures: &Figures) -> Costs {
        let used = amounts(figures.used_seconds, self, rate);
        let always_on = amounts(figures.always_on_seconds, self, rate);
        Costs {
            used,
            always_on,
            saved: Amounts {
                money: always_on.money - used.money,
                kilowatt_hours: always_on.kilowatt_hours - used.kilowatt_hours,
                co2_kilograms: always_on.co2_kilograms - used.co2_kilograms,
            },
        }
    }
}

/// Converts seconds to hours.
#[expect(
    clippy::cast_precision_loss,
    reason = "a month of a million machines is below 2^53 seconds"
)]
pub(crate) fn hours(seconds: i64) -> f64 {
    seconds as f64 / 3_600.0
}

fn amounts(seconds: i64, rates: &Rates, rate: &Rate) -> Amounts {
    let hours = hours(seconds);
    let kilowatt_hours = hours * rate.watts / 1_000.0;
    Amounts {
        money: hours * rate.price_per_hour
            + kilowatt_hours * rates.price_per_kilowatt_hour,
        kilowatt_hours,
        co2_kilograms: kilowatt_hours * rates.co2_grams_per_kilowatt_hour / 1_000.0,
    }
}

/// The costs in one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitCosts<'c> {
    pub(crate) unit: &'c str,
    pub(crate) used: f64,
    pub(crate) always_on: f64,
    pub(crate) saved: f64,
}

impl Costs {
    /// The costs in each unit.
    pub(crate) fn by_unit<'c>(&self, currency: &'c str) -> [UnitCosts<'c>; 3] {
        let of = |unit, kind: fn(&Amounts) -> f64| UnitCosts {
            unit,
            used: kind(&self.used),
            always_on: kind(&self.always_on),
            saved: kind(&self.saved),
        };
        [
            of(currency, |amounts| amounts.money),
            of("kWh", |amounts| amounts.kilowatt_hours),
            of("kg CO2", |amounts| amounts.co2_kilograms),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.used.add(&other.used);
        self.always_on.add(&other.always_on);
        self.saved.add(&other.saved);
    }

    /// Rounded to cents, watt-hours and grams.
    pub(crate) fn rounded(self) -> Self {
        Self {
            used: self.used.rounded(),
            always_on: self.always_on.rounded(),
            saved: self.saved.rounded(),
        }
    }
}

impl Amounts {
    fn add(&mut self, other: &Self) {
        self.money += other.money;
        self.kilowatt_hours += other.kilowatt_hours;
        self.co2_kilograms += other.co2_kilograms;
    }

    fn rounded(self) -> Self {
        Self {
            money: (self.money * 100.0).round() / 100.0,
            kilowatt_hours: (self.kilowatt_hours * 1_000.0).round() / 1_000.0,
            co2_kilograms: (self.co2_kilograms * 1_000.0).round() / 1_000.0,
        }
    }
}
