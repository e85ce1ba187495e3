use std::collections::BTreeMap;

use fivespot_api::condition::Actor;
use fivespot_api::verdict::{State, Verdict};
use fivespot_api::{ScheduledMachineStatus, Usage, UsageMonth};
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    Capacity, Figures, Machine, Month, Query, Rates, Report, csv, html, schema, text,
};

const RATES: &str = "\
currency: CHF
pricePerKilowattHour: 0.25
co2GramsPerKilowattHour: 100
rates:
- {name: gpu, label: tier=gpu, pricePerHour: 2, watts: 1000}
- {name: desks, infrastructureKind: RemoteMachine, pricePerHour: 0.1, watts: 200}
";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn october() -> Month {
    "2026-10".parse().unwrap()
}

/// A machine that was wanted for `hours`, was late for half an hour of them, and started in
/// September.
fn machine(name: &str, hours: i64, labels: &[(&str, &str)]) -> Machine {
    let labels = labels.iter();
    Machine {
        namespace: "team-a".to_owned(),
        name: name.to_owned(),
        labels: labels
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        infrastructure_kind: "RemoteMachine".to_owned(),
        created: Some(at("2026-09-01T00:00:00Z")),
        usage: Usage {
            months: vec![UsageMonth {
                month: "2026-10".to_owned(),
                active_seconds: hours * 3_600 - 1_800,
                wanted_seconds: hours * 3_600,
                provisioning_seconds: 1_800,
                late_seconds: 1_800,
                audited_seconds: 0,
                reclaims: 1,
            }],
            start_time: Some(at("2026-09-02T00:00:00Z")),
            ..Usage::default()
        },
        verdict: None,
    }
}

fn blocked() -> Verdict {
    Verdict {
        state: State::Blocked,
        since: Some(at("2026-10-30T01:00:00Z")),
        reason: "ClusterNotFound".to_owned(),
        cause: "there is no Cluster production".to_owned(),
        remedy: Some("Create it.".to_owned()),
        page: Some("troubleshooting.md#reasons"),
        actor: Actor::Owner,
        is_stale: false,
    }
}

fn fleet() -> Vec<Machine> {
    let mut young = machine("young", 24, &[("team", "b")]);
    young.usage.start_time = Some(at("2026-10-30T00:00:00Z"));
    young.infrastructure_kind = "Metal3Machine".to_owned();
    young.verdict = Some(blocked());
    let mut idle = machine("idle", 0, &[]);
    idle.usage.months.clear();
    vec![
        young,
        machine("trainer", 100, &[("team", "a"), ("tier", "gpu")]),
        machine("desk", 200, &[("team", "a")]),
        idle,
    ]
}

fn report(rates: Option<&Rates>) -> Report {
    let query = Query {
        month: october(),
        now: at("2026-11-20T00:00:00Z"),
        label: Some("team"),
        rates,
    };
    Report::of(fleet(), &query)
}

#[test]
fn a_month_is_parsed_from_its_text() {
    assert_eq!(october().to_string(), "2026-10");
    assert_eq!(october().in_words(), "October 2026");
    assert_eq!(october().end(), at("2026-11-01T00:00:00Z"));
    assert_eq!(Month::at(at("2026-10-31T23:59:59Z")), october());
    for other in [
        "2026-13",
        "2026",
        "2026-1",
        "26-10",
        "2026-10-01",
        "",
        "2026/10",
        "2026-10-01T00:00:00",
    ] {
        let error = other.parse::<Month>().unwrap_err().to_string();
        assert_eq!(error, "expected a month such as 2026-10", "{other}");
    }
}

#[test]
fn the_months_beside_a_month_end_with_the_calendar() {
    let month = |text: &str| text.parse::<Month>().ok();
    assert_eq!(october().previous(), month("2026-09"));
    assert_eq!(october().next(), month("2026-11"));
    let last = month("9999-12").unwrap();
    assert_eq!((last.next(), last.end()), (None, Timestamp::MAX));
}

#[test]
fn an_account_is_that_of_the_status_until_now() {
    let now = at("2026-10-30T00:00:00Z");
    let never = ScheduledMachineStatus::default();
    assert_eq!(Machine::account(&never, None, now), Usage::default());
    let counted = ScheduledMachineStatus {
        usage: Some(machine("desk", 100, &[]).usage),
        ..never
    };
    let account = Machine::account(&counted, None, now);
    assert_eq!(account.start_time, Some(at("2026-09-02T00:00:00Z")));
    assert_eq!(account.months[0].wanted_seconds, 100 * 3_600);
}

#[test]
fn a_machine_in_audit_mode_costs_what_it_would_cost() {
    let rates = Rates::parse(RATES).unwrap();
    let audited = |is_audited: bool| {
        let mut machine = machine("desk", 100, &[("team", "a")]);
        let month = &mut machine.usage.months[0];
        month.late_seconds = 0;
        month.provisioning_seconds = 0;
        let hundred = 100 * 3_600;
        (month.active_seconds, month.audited_seconds) = if is_audited {
            (0, hundred)
        } else {
            (hundred, 0)
        };
        let query = Query {
            month: october(),
            now: at("2026-11-20T00:00:00Z"),
            label: None,
            rates: Some(&rates),
        };
        Report::of([machine], &query)
    };
    let (real, audit) = (audited(false), audited(true));
    assert_eq!(audit.total.costs, real.total.costs);
    assert_eq!(audit.total.figures.used_seconds, 100 * 3_600);
    let note =
        "In audit mode; 100.00 h in which they were wanted count as used: team-a/desk";
    assert!(text::document(&audit).contains(note));
    assert!(!text::document(&real).contains("audit"));
    assert!(html::document(&audit).contains("1 machine in audit mode"));
}

#[test]
fn an_account_at_the_limits_of_its_numbers_is_reported() {
    let rates = Rates::parse(RATES).unwrap();
    let at_limit = |name: &str, number: i64| {
        let mut machine = machine(name, 1, &[("team", "a")]);
        machine.usage.months[0] = UsageMonth {
            month: "2026-10".to_owned(),
            active_seconds: number,
            wanted_seconds: number,
            provisioning_seconds: number,
            late_seconds: number,
            audited_seconds: number,
            reclaims: number,
        };
        machine
    };
    for number in [i64::MAX, i64::MIN] {
        let query = Query {
            month: october(),
            now: at("2026-11-20T00:00:00Z"),
            label: Some("team"),
            rates: Some(&rates),
        };
        let machines = [at_limit("one", number), at_limit("two", number)];
        let report = Report::of(machines, &query);
        assert_eq!(report.items[0].figures.used_seconds, number);
        assert_eq!(report.total.figures.wanted_seconds, number);
        for written in [
            text::document(&report),
            csv::document(&report),
            html::document(&report),
        ] {
            assert!(written.contains("team-a"), "{written}");
        }
    }
}

#[test]
fn a_machine_is_compared_with_one_always_on_since_its_account_began() {
    let report = report(None);
    let always_on = |place: usize| report.items[place].figures.always_on_seconds;
    assert_eq!(report.items[0].name, "desk");
    assert_eq!(always_on(0), 744 * 3_600);
    assert_eq!(report.items[2].name, "young");
    assert_eq!(always_on(2), 48 * 3_600);
    assert_eq!(report.without_account, ["team-a/idle"]);
    assert_eq!(report.total.costs, None);
}

#[test]
fn the_current_month_is_compared_up_to_now() {
    let query = Query {
        month: october(),
        now: at("2026-10-11T00:00:00Z"),
        label: None,
        rates: None,
    };
    let report = Report::of(vec![machine("desk", 20, &[])], &query);
    assert_eq!(report.items[0].figures.always_on_seconds, 240 * 3_600);
    assert_eq!(report.end_time, query.now);
}

#[test]
fn a_forecast_counts_the_windows_of_the_month_and_the_lead_time_before_them() {
    let office = Schedule::weekly(&["mon-fri"], &["9-17"], "Europe/Zurich").unwrap();
    let (from, to) = (october().start(), october().end());
    let planned = Figures::planned(Some(&office), from, to);
    // 22 weekdays of nine hours; the clocks change on a Sunday.
    assert_eq!(planned.wanted_seconds, 22 * 9 * 3_600);
    assert_eq!(planned.active_seconds, planned.wanted_seconds);
    assert_eq!(planned.used_seconds, planned.wanted_seconds);
    assert_eq!(planned.always_on_seconds, 744 * 3_600);
    let early = office.with_lead_time("30m".parse().unwrap());
    let early = Figures::planned(Some(&early), from, to);
    assert_eq!(early.wanted_seconds, planned.wanted_seconds);
    assert_eq!(early.provisioning_seconds, 22 * 1_800);
    assert_eq!(early.used_seconds, early.wanted_seconds + 22 * 1_800);
    let never = Figures::planned(None, from, to);
    assert_eq!((never.used_seconds, never.wanted_seconds), (0, 0));
    assert_eq!(never.always_on_seconds, planned.always_on_seconds);
}

#[test]
fn a_forecast_is_cut_off_where_the_month_begins_and_ends() {
    let always = Schedule::weekly(&["mon-sun"], &["0-23"], "UTC").unwrap();
    let (from, to) = (october().start(), october().end());
    let planned = Figures::planned(Some(&always), from, to);
    assert_eq!(planned.used_seconds, planned.always_on_seconds);
    let usage = Machine::planned_account(Some(&always), october());
    let desk = Machine {
        usage,
        created: Some(at("2026-10-20T00:00:00Z")),
        ..machine("desk", 0, &[])
    };
    let query = Query {
        month: october(),
        now: to,
        label: None,
        rates: None,
    };
    let report = Report::of([desk], &query);
    assert_eq!(report.items[0].start_time, from);
    assert_eq!(report.items[0].figures, planned);
}

#[test]
fn a_chart_that_leaves_machines_out_says_how_many() {
    let query = Query {
        month: october(),
        now: at("2026-11-20T00:00:00Z"),
        label: None,
        rates: None,
    };
    let page = |machines: usize| {
        let named = |number: usize| machine(&format!("desk-{number}"), 24, &[]);
        html::document(&Report::of((0..machines).map(named), &query))
    };
    assert!(page(1).contains(">team-a/desk-0</text>"));
    assert!(!page(40).contains("more, in the table"));
    assert!(page(49).contains("and 9 more, in the table below"));
}

#[test]
fn the_first_rate_that_matches_is_the_rate_of_a_machine() {
    let rates = Rates::parse(RATES).unwrap();
    let report = report(Some(&rates));
    let named: Vec<_> = report
        .items
        .iter()
        .map(|item| item.rate.as_deref())
        .collect();
    assert_eq!(named, [Some("desks"), Some("gpu"), None]);
    // 200 hours at 0.10, and 40 kWh at 0.25.
    let desk = report.items[0].costs.unwrap();
    let of = |amounts: crate::Amounts| {
        let cents = [amounts.money, amounts.kilowatt_hours, amounts.co2_kilograms];
        cents.map(|it| format!("{it:.2}"))
    };
    assert_eq!(of(desk.used), ["30.00", "40.00", "4.00"]);
    assert_eq!(of(desk.always_on), ["111.60", "148.80", "14.88"]);
    assert_eq!(of(desk.saved), ["81.60", "108.80", "10.88"]);
    assert_eq!(report.total.without_rate, 1);
    let all = report.total.costs.unwrap();
    assert_eq!(of(all.used), ["255.00", "140.00", "14.00"]);
    let labels: Vec<_> = report.by_label.iter().map(|of| of.total.machines).collect();
    assert_eq!(labels, [2, 1]);
}

#[test]
fn an_invalid_rates_file_is_rejected_with_the_name_of_the_field() {
    for (text, wanted) in [
        (
            RATES.replace("0.1,", "-0.1,"),
            "rates[1].pricePerHour: -0.1 is not a number from 0",
        ),
        (
            RATES.replace("watts: 200", "watts: .nan"),
            "rates[1].watts: NaN is not a number",
        ),
        (RATES.replace("watts: 200", "watt: 200"), "watt"),
        (
            RATES.replace("name: desks", "name: gpu"),
            "rates[1].name: 'gpu' is listed twice",
        ),
        (
            RATES.replace("label: tier=gpu, ", ""),
            "rates[1]: 'desks' is never used, because 'gpu'",
        ),
        (
            RATES.replace("currency: CHF", "currency: ''"),
            "currency: expected a name",
        ),
        (
            RATES.replace("currency: CHF", "currency: '=1+1'"),
            "currency: must not begin with",
        ),
        (
            RATES.replace("currency: CHF", "currency: ' CHF'"),
            "currency: expected a name",
        ),
        (
            RATES.replace("currency: CHF", r#"currency: "C\tF""#),
            "currency: expected a name",
        ),
        (RATES.replace("currency: CHF\n", ""), "currency"),
        (
            RATES.replace("label: tier=gpu", "label: ''"),
            "rates[0].label: is empty",
        ),
        (
            "currency: CHF\nrates: []\n".to_owned(),
            "rates: expected 1 to 256 rates, found 0",
        ),
        (many_rates(257), "rates: expected 1 to 256 rates, found 257"),
        ("[".to_owned(), "line 1"),
    ] {
        let error = Rates::parse(&text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    assert!(Rates::parse(&many_rates(256)).is_ok());
}

fn many_rates(count: usize) -> String {
    let rate =
        |number| format!("- {{name: r{number}, label: l, pricePerHour: 1, watts: 1}}\n");
    let rates: String = (0..count).map(rate).collect();
    let (head, _) = RATES.split_once("- ").unwrap();
    format!("{head}{rates}")
}

#[test]
fn a_total_has_the_costs_only_with_rates_and_says_what_has_none() {
    let rates = Rates::parse(RATES).unwrap();
    let rated = text::total(&report(Some(&rates)).total, "CHF");
    for line in ["hours", "CHF", "kWh", "kg CO2"] {
        assert!(rated.lines().any(|of| of.starts_with(line)), "{rated}");
    }
    let without = "Without a rate, so not in the costs: 1 of 3\n";
    assert!(rated.ends_with(without), "{rated}");
    let plain = text::total(&report(None).total, "CHF");
    assert!(
        plain.contains("324.00") && !plain.contains("kWh"),
        "{plain}"
    );
    assert!(!plain.contains("Without a rate"), "{plain}");
}

#[test]
fn the_report_reads_well_in_a_terminal() {
    let rates = Rates::parse(RATES).unwrap();
    insta::assert_snapshot!(text::document(&report(Some(&rates))));
}

#[test]
fn the_csv_file_has_a_line_for_each_machine_and_a_cell_for_each_column() {
    let rates =
        Rates::parse(&RATES.replace("name: gpu", "name: 'gpu, \"big\"'")).unwrap();
    let text = csv::document(&report(Some(&rates)));
    insta::assert_snapshot!(text.replace("\r\n", "\n"));
    assert_eq!(text.matches("\r\n").count(), 4);
}

#[test]
fn the_page_shows_each_figure_as_a_number_and_the_shares_as_bars() {
    let rates = Rates::parse(RATES).unwrap();
    let page = html::document(&report(Some(&rates)));
    let (_, body) = page.split_once("</style></head>").unwrap();
    let in_lines = ["<h", "<p>", "<tr>", "<rect", "<text"]
        .iter()
        .fold(body.to_owned(), |text, tag| {
            text.replace(tag, &format!("\n{tag}"))
        });
    insta::assert_snapshot!(in_lines);
}

#[test]
fn there_is_no_bar_where_nothing_was_counted() {
    let free = RATES.replace("watts: 200", "watts: 0");
    let rates = Rates::parse(&free).unwrap();
    let mut machine = machine("desk", 0, &[]);
    let now = at("2026-10-02T00:00:00Z");
    machine.usage.start_time = Some(now);
    let query = Query {
        month: october(),
        now,
        label: None,
        rates: Some(&rates),
    };
    let page = html::document(&Report::of([machine], &query));
    assert!(page.contains("0.0 of 0.0 h"));
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    assert!(!page.contains(">kWh</text>"));
}

#[test]
fn the_months_of_a_year_are_rows_of_one_table() {
    let (plain, rated) = (report(None), report(Some(&Rates::parse(RATES).unwrap())));
    let table = html::by_month(&[plain, rated]).into_string();
    assert_eq!(table.matches("October 2026</th>").count(), 2);
    assert!(table.contains("CHF used") && table.contains("no rate"));
}

#[test]
fn the_page_is_self_contained_and_escapes_text() {
    let mut machines = fleet();
    machines[1].labels = BTreeMap::from([("team".to_owned(), "<script>".to_owned())]);
    let query = Query {
        month: october(),
        now: at("2026-11-20T00:00:00Z"),
        label: Some("team"),
        rates: None,
    };
    let page = html::document(&Report::of(machines, &query));
    for asset in ["http:", "https:", "<script", "<link", "@import", "src="] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(asset), "{asset}");
    }
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn the_page_counts_the_machines_beyond_its_maximum_of_rows() {
    let query = Query {
        month: october(),
        now: at("2026-11-20T00:00:00Z"),
        label: None,
        rates: None,
    };
    let page = |machines: usize| {
        let named = |number: usize| machine(&format!("desk-{number}"), 24, &[]);
        html::document(&Report::of((0..machines).map(named), &query))
    };
    assert!(!page(500).contains("in the CSV file"));
    assert!(
        page(501).contains("1 more machine is only in the CSV file and in the total.")
    );
    assert!(
        page(502).contains("2 more machines are only in the CSV file and in the total.")
    );
}

/// Checks a value against a schema, as far as our schema uses the keywords.
fn check(value: &Value, schema: &Value, place: &str) {
    let kind = schema["type"].as_str().unwrap();
    let is_right = match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.as_u64().is_some(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("{other}"),
    };
    assert!(is_right, "{place} is {value}, not {kind}");
    for required in schema["required"].as_array().into_iter().flatten() {
        let name = required.as_str().unwrap();
        assert!(value.get(name).is_some(), "{place}.{name} is missing");
    }
    let described = |_: &&Value| schema.get("properties").is_some();
    let members = Some(value).filter(described).and_then(Value::as_object);
    for (name, member) in members.into_iter().flatten() {
        let of = schema["properties"].get(name);
        let of = of.unwrap_or_else(|| panic!("{place}.{name} is not in the schema"));
        check(member, of, &format!("{place}.{name}"));
    }
    for member in value.as_array().into_iter().flatten() {
        check(member, &schema["items"], &format!("{place}[]"));
    }
}

#[test]
fn the_json_output_conforms_to_its_schema_and_has_every_property() {
    let rates = Rates::parse(RATES).unwrap();
    let report = report(Some(&rates)).with_capacities(vec![shop()]);
    let report = serde_json::to_value(report).unwrap();
    check(&report, &schema::json(), "report");
    let plain = Report::of(
        Vec::new(),
        &Query {
            month: october(),
            now: at("2026-11-20T00:00:00Z"),
            label: None,
            rates: None,
        },
    );
    check(
        &serde_json::to_value(plain).unwrap(),
        &schema::json(),
        "report",
    );
    let shown = report.to_string();
    let described = schema::json().to_string();
    for name in [
        "currency",
        "byLabel",
        "withoutAccount",
        "verdict",
        "isStale",
        "labelValue",
        "costs",
        "value",
        "capacities",
        "values",
    ] {
        let quoted = format!("\"{name}\"");
        assert!(
            shown.contains(&quoted) && described.contains(&quoted),
            "{name}"
        );
    }
}

/// What a capacity with two values is planned to be in October.
fn shop() -> Capacity {
    let shop = serde_json::json!({
        "metadata": {"name": "shop", "namespace": "team-a"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["8-17"], "timezone": "UTC"},
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
            "capacity": {"field": "replicas", "activeValue": 5, "inactiveValue": 1},
        },
    });
    let shop: fivespot_api::ScheduledCapacity = serde_json::from_value(shop).unwrap();
    let schedule = shop.spec.schedule.schedule_with(&BTreeMap::new()).unwrap();
    Capacity::planned(&shop, Some(&schedule), october(), october().end())
}

#[test]
fn the_hours_of_capacities_are_in_a_table_of_their_own() {
    let query = Query {
        month: october(),
        now: at("2026-11-01T00:00:00Z"),
        label: None,
        rates: None,
    };
    let report = Report::of([], &query).with_capacities(vec![shop()]);
    insta::assert_snapshot!(text::document(&report));
    assert!(html::document(&report).contains("<td>replicas=5</td><td>220.00</td>"));
}
