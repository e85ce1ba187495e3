//! The work for a long list grows with its length, not with the square of it.

use std::time::{Duration, Instant};

use super::*;

/// Asserts that 16 times as many entries take about 16 times as long; comparing each entry with
/// each other one takes 256 times as long. The bound is between the two: other tests run meanwhile.
#[track_caller]
fn assert_in_proportion(work: impl Fn(usize)) {
    let shortest = |count: usize| -> Duration {
        let runs = (0..3).map(|_| {
            let begun = Instant::now();
            work(count);
            begun.elapsed()
        });
        runs.min().unwrap_or_default()
    };
    let (short, long) = (shortest(1_000), shortest(16_000));
    assert!(long < short * 100, "{short:?}, then {long:?}");
}

fn tags(range: std::ops::Range<usize>) -> Value {
    let tags = range.map(|it| format!("tag-{it}").into());
    json!({"tags": tags.collect::<Vec<Value>>()})
}

#[test]
fn updates_of_a_long_list_are_tracked_in_proportion_to_its_length() {
    assert_in_proportion(|count| {
        let mut server = Server::new();
        server.write("creator", "", widget(tags(0..count)));
        server.write("editor", "", widget(tags(count..2 * count)));
    });
}

#[test]
fn a_long_list_is_applied_in_proportion_to_its_length() {
    assert_in_proportion(|count| {
        let mut server = Server::new();
        server.apply("me", tags(0..count));
        server.apply("other", tags(count / 2..count + count / 2));
    });
}

#[test]
fn a_list_that_is_applied_in_another_order_is_merged_in_proportion() {
    assert_in_proportion(|count| {
        let mut server = Server::new();
        server.apply("me", tags(0..count));
        let mut reverse = tags(0..count);
        reverse["tags"].as_array_mut().unwrap().reverse();
        server.apply("me", reverse);
    });
}
