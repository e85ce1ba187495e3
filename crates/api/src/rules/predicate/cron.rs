//! The rules about cron expressions of five fields.

use serde_json::Value;

use crate::rules::node::{is_number, is_number_within, text};

fn cron_fields(text: &str) -> Option<[&str; 5]> {
    let outer_space = text.starts_with(' ') || text.ends_with(' ');
    let words: Vec<_> = text.split(' ').filter(|word| !word.is_empty()).collect();
    words.try_into().ok().filter(|_| !outer_space)
}

pub(in crate::rules) fn has_five_fields(node: &Value, _: &Value) -> bool {
    text(node, |text| cron_fields(text).is_some())
}

/// One cron field: its range of numbers, and the names for them.
struct CronField {
    place: usize,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

impl CronField {
    fn holds(&self, node: &Value) -> bool {
        text(node, |text| {
            cron_fields(text)
                .and_then(|fields| fields.get(self.place).copied())
                .is_none_or(|field| field.split(',').all(|entry| self.is_entry(entry)))
        })
    }

    fn is_entry(&self, entry: &str) -> bool {
        let (range, step) = entry
            .split_once('/')
            .map_or((entry, None), |(r, s)| (r, Some(s)));
        let is_step = step.is_none_or(|step| {
            is_number(step) && step.bytes().any(|digit| digit != b'0')
        });
        let is_range = match range.split_once('-') {
            Some((first, last)) => self.is_value(first) && self.is_value(last),
            None => range == "*" || step.is_none() && self.is_value(range),
        };
        is_step && is_range
    }

    fn is_value(&self, value: &str) -> bool {
        self.names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(value))
            || is_number_within(value, self.least, self.most)
    }
}

pub(in crate::rules) fn has_cron_minutes(node: &Value, _: &Value) -> bool {
    CronField {
        place: 0,
        least: 0,
        most: 59,
        names: &[],
    }
    .holds(node)
}

pub(in crate::rules) fn has_cron_hours(node: &Value, _: &Value) -> bool {
    CronField {
        place: 1,
        least: 0,
        most: 23,
        names: &[],
    }
    .holds(node)
}

pub(in crate::rules) fn has_cron_days_of_month(node: &Value, _: &Value) -> bool {
    CronField {
        place: 2,
        least: 1,
        most: 31,
        names: &[],
    }
    .holds(node)
}

pub(in crate::rules) fn has_cron_months(node: &Value, _: &Value) -> bool {
    let names = &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
        "dec",
    ];
    CronField {
        place: 3,
        least: 1,
        most: 12,
        names,
    }
    .holds(node)
}

pub(in crate::rules) fn has_cron_days_of_week(node: &Value, _: &Value) -> bool {
    let names = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    CronField {
        place: 4,
        least: 0,
        most: 7,
        names,
    }
    .holds(node)
}
