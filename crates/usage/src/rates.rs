//! The rates of machines: a file that users write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

/// The maximum number of rates in a file.
const MAX_RATES: usize = 256;

/// The maximum number of characters of a name or a currency.
const MAX_NAME_LENGTH: usize = 63;

/// The maximum of a price, a power or a factor.
const HIGHEST: f64 = 1e9;

/// The costs of machines. The first of the [`rates`](Self::rates) that a machine matches is its
/// rate.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rates {
    /// The currency of the prices, for display: `CHF`.
    pub currency: String,
    /// The price of a kilowatt-hour, added to the price of the hours.
    #[serde(default)]
    pub price_per_kilowatt_hour: f64,
    /// The CO2 emission of a kilowatt-hour, in grams.
    #[serde(default)]
    pub co2_grams_per_kilowatt_hour: f64,
    /// The rates, in the order in which they are matched.
    pub rates: Vec<Rate>,
}

/// The hourly price and the power of some machines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rate {
    /// Its name, for display.
    pub name: String,
    /// Matches only machines with an infrastructure object of this kind.
    #[serde(default)]
    pub infrastructure_kind: Option<String>,
    /// Matches only machines with this label: `key` or `key=value`.
    #[serde(default)]
    pub label: Option<String>,
    /// The price per hour.
    #[serde(default)]
    pub price_per_hour: f64,
    /// The power of a machine, in watts.
    #[serde(default)]
    pub watts: f64,
}

/// Why a text is not a valid rates file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRates(String);

impl Rates {
    /// Parses a rates file: YAML or JSON.
    ///
    /// # Errors
    /// The text is neither, has an unknown or missing field, or an invalid value. The message
    /// names the field.
    pub fn parse(text: &str) -> Result<Self, InvalidRates> {
        let rates: Self = serde_saphyr::from_str(text)
            .map_err(|error| InvalidRates(error.to_string()))?;
        rates.check().map_err(InvalidRates)?;
        Ok(rates)
    }

    fn check(&self) -> Result<(), String> {
        named("currency", &self.currency)?;
        within("pricePerKilowattHour", self.price_per_kilowatt_hour)?;
        within("co2GramsPerKilowattHour", self.co2_grams_per_kilowatt_hour)?;
        if self.rates.is_empty() || self.rates.len() > MAX_RATES {
            let count = self.rates.len();
            return Err(format!(
                "rates: expected 1 to {MAX_RATES} rates, found {count}"
            ));
        }
        let mut names = BTreeSet::new();
        let mut matches_all: Option<&str> = None;
        for (place, rate) in self.rates.iter().enumerate() {
            let at = |field: &str| format!("rates[{place}].{field}");
            named(&at("name"), &rate.name)?;
            if !names.insert(&rate.name) {
                return Err(format!("{}: '{}' is listed twice", at("name"), rate.name));
            }
            if let Some(before) = matches_all {
                return Err(format!(
                    "rates[{place}]: '{}' is never used, because '{before}' above it matches \
                     every machine",
                    rate.name
                ));
            }
            for (field, text) in [
                ("infrastructureKind", &rate.infrastructure_kind),
                ("label", &rate.label),
            ] {
                if text.as_deref().is_some_and(str::is_empty) {
                    return Err(format!("{}: is empty", at(field)));
                }
            }
            within(&at("pricePerHour"), rate.price_per_hour)?;
            within(&at("watts"), rate.watts)?;
            if rate.infrastructure_kind.is_none() && rate.label.is_none() {
                matches_all = Some(&rate.name);
            }
        }
        Ok(())
    }

    /// The rate of a machine with this kind of infrastructure object and these labels.
    pub fn of(
        &self,
        infrastructure_kind: &str,
        labels: &BTreeMap<String, String>,
    ) -> Option<&Rate> {
        let mut rates = self.rates.iter();
        rates.find(|rate| {
            let kind = rate.infrastructure_kind.as_deref();
            kind.is_none_or(|kind| kind == infrastructure_kind)
                && rate.label.as_deref().is_none_or(|label| has(labels, label))
        })
    }
}

/// Whether a machine has the label `key` or `key=value`.
fn has(labels: &BTreeMap<String, String>, label: &str) -> bool {
    match label.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|it| it == value),
        None => labels.contains_key(label),
    }
}

fn named(field: &str, text: &str) -> Result<(), String> {
    let is_short = (1..=MAX_NAME_LENGTH).contains(&text.chars().count());
    if !is_short || text.trim() != text || text.chars().any(char::is_control) {
        return Err(format!(
            "{field}: expected a name of 1 to {MAX_NAME_LENGTH} characters"
        ));
    }
    // A spreadsheet interprets such a cell as a formula.
    if text.starts_with(['=', '+', '-', '@']) {
        return Err(format!("{field}: must not begin with =, +, - or @"));
    }
    Ok(())
}

fn within(field: &str, number: f64) -> Result<(), String> {
    if (0.0..=HIGHEST).contains(&number) {
        return Ok(());
    }
    Err(format!(
        "{field}: {number} is not a number from 0 to {HIGHEST}"
    ))
}

impl fmt::Display for InvalidRates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for InvalidRates {}
