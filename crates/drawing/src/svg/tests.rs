use jiff::tz::TimeZone;

use super::*;

/// A fleet over days from 2026-03-06 in New York, where the clocks change on the 8th.
pub(crate) fn fleet(machines: i64, days: i64) -> Fleet {
    let zone = TimeZone::get("America/New_York").unwrap();
    let from: Timestamp = "2026-03-06T05:00:00Z".parse().unwrap();
    let at =
        |hours: i64| Timestamp::from_second(from.as_second() + hours * 3600).unwrap();
    let row = |machine: i64| Row {
        name: format!("team-a/desk-{machine:03}"),
        note: "mon-sun 9-17 in America/New_York".to_owned(),
        zone: zone.clone(),
        link: None,
        planned: (0..days)
            .map(|day| Span {
                since: at(day * 24 + 9),
                until: at(day * 24 + 18),
                kind: Kind::Window,
                name: String::new(),
            })
            .collect(),
        observed: Vec::new(),
        is_heading: false,
    };
    Fleet {
        title: "Machines of <team-a>".to_owned(),
        from,
        to: at(days * 24),
        zone: zone.clone(),
        now: Some(at(30)),
        wanted: None,
        width: None,
        rows: (0..machines).map(row).collect(),
    }
}

#[test]
fn a_small_fleet_is_drawn_as_it_was_looked_at() {
    let mut fleet = fleet(2, 3);
    fleet.rows[1].planned[1].kind = Kind::OverrideRun;
    fleet.rows[1].planned[1].name = "inc-4711".to_owned();
    let drawn = document(&fleet);
    let end_of_style = drawn.find("</style>").unwrap();
    insta::assert_snapshot!(drawn[end_of_style..].replace('>', ">\n"));
}

#[test]
fn two_hundred_machines_over_fourteen_days_fit_in_two_mebibytes() {
    let even = document(&fleet(200, 14));
    assert!(even.len() < 200 * 1024, "{}", even.len());
    // A machine that is wanted every other minute.
    let mut restless = fleet(20, 14);
    for row in &mut restless.rows {
        let start = restless.from.as_second();
        row.planned = (0..14 * 24 * 30)
            .map(|minute| Span {
                since: Timestamp::from_second(start + minute * 120).unwrap(),
                until: Timestamp::from_second(start + minute * 120 + 60).unwrap(),
                kind: Kind::Window,
                name: String::new(),
            })
            .collect();
    }
    let restless = document(&restless);
    assert!(restless.len() < 20 * 1024, "{}", restless.len());
}

#[test]
fn the_worst_row_is_bounded_by_its_columns() {
    let mut fleet = fleet(200, 14);
    let start = fleet.from.as_second();
    for row in &mut fleet.rows {
        // The largest number of spans that are drawn one by one, each of a different length.
        row.planned = (0..336)
            .map(|hour| Span {
                since: Timestamp::from_second(start + hour * 3600 + hour).unwrap(),
                until: Timestamp::from_second(start + hour * 3600 + 1700 + 3 * hour)
                    .unwrap(),
                kind: Kind::Window,
                name: String::new(),
            })
            .collect();
    }
    let drawn = document(&fleet);
    assert!(drawn.len() < 2 * 1024 * 1024, "{}", drawn.len());
}

#[test]
fn an_empty_fleet_and_ten_years_are_drawn() {
    let mut fleet = fleet(0, 1);
    assert!(document(&fleet).ends_with("</svg>\n"));
    fleet.to = "2036-03-06T00:00:00Z".parse().unwrap();
    assert!(document(&fleet).len() < 400_000);
    fleet.to = fleet.from;
    assert!(document(&fleet).ends_with("</svg>\n"));
}

#[test]
fn every_element_that_is_opened_is_closed() {
    let drawn = document(&fleet(3, 7)) + &crate::html::figure(&fleet(3, 7));
    let mut open = Vec::new();
    for tag in drawn.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn a_part_of_a_page_uses_the_width_that_it_has_and_is_never_narrower_than_a_file() {
    let drawn = |width| {
        let fleet = Fleet {
            width,
            ..fleet(2, 7)
        };
        let counts = fleet.counts();
        let drawn = bars(&fleet, &counts);
        let (_, width) = drawn.split_once(" width=\"").unwrap();
        width.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(drawn(None), "1016");
    assert_eq!(drawn(Some(1_520)), "1520");
    assert_eq!(drawn(Some(300)), "1016");
    assert_eq!(drawn(Some(u32::MAX)), "8000");
}

#[test]
fn the_rows_of_a_group_have_a_heading_that_is_no_machine() {
    let mut fleet = fleet(2, 7);
    fleet.rows.insert(1, Row::heading("team-b".to_owned()));
    assert!(fleet.description().starts_with("2 machines "));
    let figure = crate::html::figure(&fleet);
    assert!(
        figure.contains(r#"<li class="group">team-b</li>"#),
        "{figure}"
    );
    let table = crate::html::table(&fleet);
    let heading = r#"<tr><th scope="rowgroup" colspan="4">team-b</th></tr>"#;
    assert!(table.contains(heading), "{table}");
}
