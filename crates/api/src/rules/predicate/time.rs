//! The rules about windows, dates and times in Rust.

use fivespot_schedule::{DateEntry, Days};
use jiff::Timestamp;
use serde_json::Value;

use crate::rules::node::{is_empty_list, is_set, text};
use crate::time::MAX_OVERRIDE_DURATION;

pub(in crate::rules) fn are_all_days(node: &Value, _: &Value) -> bool {
    let days = node.as_array().into_iter().flatten();
    days.filter_map(Value::as_str)
        .all(|days| days.parse::<Days>().is_ok())
}

pub(in crate::rules) fn is_time_of_day(node: &Value, _: &Value) -> bool {
    text(node, |text| match text.split_once(':') {
        Some((hour, minute)) => is_two_digits(hour, "23") && is_two_digits(minute, "59"),
        None => false,
    })
}

/// Whether the text is two digits that are at most `most`.
fn is_two_digits(text: &str, most: &str) -> bool {
    text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit()) && text <= most
}

pub(in crate::rules) fn has_one_end(node: &Value, _: &Value) -> bool {
    is_set(node, "end") != is_set(node, "duration")
}

pub(in crate::rules) fn has_calendar_or_dates(node: &Value, _: &Value) -> bool {
    has_one_or_range(node, "calendarRef")
}

pub(in crate::rules) fn has_date_or_range(node: &Value, _: &Value) -> bool {
    has_one_or_range(node, "date")
}

fn has_one_or_range(node: &Value, one: &str) -> bool {
    let (first, last) = (is_set(node, "startDate"), is_set(node, "endDate"));
    if is_set(node, one) {
        !first && !last
    } else {
        first && last
    }
}

pub(in crate::rules) fn has_dates_in_order(node: &Value, _: &Value) -> bool {
    let member = |name: &str| node.get(name).and_then(Value::as_str);
    let both = member("startDate").zip(member("endDate"));
    both.is_none_or(|(first, last)| {
        !is_like_a_date(first) || !is_like_a_date(last) || first <= last
    })
}

/// Whether the text has the form of a date; another rule checks whether the date exists.
fn is_like_a_date(text: &str) -> bool {
    let lengths: Vec<_> = text.split('-').map(str::len).collect();
    lengths == [4, 2, 2] && text.bytes().all(|it| it.is_ascii_digit() || it == b'-')
}

fn is_date(text: &str) -> bool {
    DateEntry::range(text, text).is_ok()
}

pub(in crate::rules) fn is_a_date(node: &Value, _: &Value) -> bool {
    text(node, is_date)
}

pub(in crate::rules) fn is_a_date_of_some_year(node: &Value, _: &Value) -> bool {
    text(node, |text| DateEntry::parse(text).is_ok())
}

pub(in crate::rules) fn has_one_target(node: &Value, _: &Value) -> bool {
    is_set(node, "targetRef") != is_set(node, "selector")
}

pub(in crate::rules) fn is_not_empty_selector(node: &Value, _: &Value) -> bool {
    let labels = node.get("matchLabels").and_then(Value::as_object);
    labels.is_some_and(|labels| !labels.is_empty())
        || !is_empty_list(node, "matchExpressions")
}

/// An RFC 3339 time of this millennium, in capital letters.
fn time(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once('T')?;
    let (clock, offset) = if let Some(clock) = rest.strip_suffix('Z') {
        (clock, None)
    } else {
        let sign = rest.find(['+', '-'])?;
        (rest.get(..sign)?, Some(rest.get(sign + 1..)?))
    };
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let is_clock = |text: &str, most: &[&str]| {
        let parts: Vec<_> = text.split(':').collect();
        parts.len() == most.len()
            && parts
                .iter()
                .zip(most)
                .all(|(part, most)| is_two_digits(part, most))
    };
    let is_fraction = |text: &str| {
        (1..=9).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit())
    };
    let is_well_formed = date.starts_with('2')
        && is_date(date)
        && is_clock(clock, &["23", "59", "59"])
        && fraction.is_none_or(is_fraction)
        && offset.is_none_or(|offset| is_clock(offset, &["23", "59"]));
    is_well_formed.then(|| text.parse().ok()).flatten()
}

pub(in crate::rules) fn is_a_time(node: &Value, _: &Value) -> bool {
    text(node, |text| time(text).is_some())
}

pub(in crate::rules) fn has_times_in_order(node: &Value, _: &Value) -> bool {
    let member = |name: &str| node.get(name).and_then(Value::as_str).and_then(time);
    let both = member("startTime").zip(member("endTime"));
    both.is_none_or(|(start, end)| start < end)
}

pub(in crate::rules) fn is_within_two_weeks(node: &Value, object: &Value) -> bool {
    let created = object.pointer("/metadata/creationTimestamp");
    let created = created
        .and_then(Value::as_str)
        .and_then(|it| it.parse().ok());
    let latest =
        created.and_then(|it: Timestamp| it.checked_add(MAX_OVERRIDE_DURATION).ok());
    text(node, |text| {
        let both = time(text).zip(latest);
        both.is_none_or(|(end, latest)| end <= latest)
    })
}
