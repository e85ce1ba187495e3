mod capacities;
mod classes;
mod sets;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use fivespot_api::verdict::{Lease, State as VerdictState};
use fivespot_api::{Phase, ScheduleOverride, ScheduledMachine, SharedSchedule};
use fivespot_controller::Key;
use fivespot_drawing::Kind;
use fivespot_drawing::timeline::Mark;
use fivespot_schedule::DateEntry;
use futures::FutureExt as _;
use http::{Method, Request, Response, StatusCode, header};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::decoded::decoded;
use crate::filter::Filter;
use crate::machine::{Machine, PhaseHistory};
use crate::reader::{EventRecord, Leases, Reader, read_only};
use crate::schedule_inputs::ScheduleInputs;
use crate::serve::{Audience, Dashboard, Options};
use crate::state::State;
use crate::{page, shutdown};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn object(name: &str, status: Value) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "team-a", "labels": {"team": "a"}},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
            "clusterName": "production",
            "bootstrapSpec": {"apiVersion": "b/v1", "kind": "B", "spec": {}},
            "infrastructureSpec": {"apiVersion": "i/v1", "kind": "I", "spec": {}},
        },
        "status": status,
    })
}

fn machine(name: &str, status: Value) -> Machine {
    let machine = Machine::of(serde_json::from_value(object(name, status)).unwrap());
    machine.with_inputs(&ScheduleInputs::default())
}

/// A client whose server counts the requests and responds to each with 404.
fn counting() -> (Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let service = tower::service_fn(move |_: Request<kube::client::Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let status = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"});
        let response = Response::builder()
            .status(404)
            .body(kube::client::Body::from(status.to_string().into_bytes()));
        async move { response.map_err(tower::BoxError::from) }
    });
    (Client::new(service, "default"), count)
}

#[tokio::test]
async fn a_request_that_writes_is_refused_before_it_is_sent() {
    let (client, count) = counting();
    let api: Api<ConfigMap> = Api::default_namespaced(read_only(client));
    let written = api
        .create(&PostParams::default(), &ConfigMap::default())
        .await;
    let error = format!("{:?}", written.unwrap_err());
    assert!(
        error.contains("POST is not sent: the dashboard only reads"),
        "{error}"
    );
    assert!(
        api.delete("a", &kube::api::DeleteParams::default())
            .await
            .is_err()
    );
    assert_eq!(count.load(Ordering::Relaxed), 0);
    assert!(api.get("a").await.is_err());
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

async fn dashboard() -> Dashboard {
    dashboard_for(Audience::UrlHolder).await
}

async fn dashboard_for(audience: Audience) -> Dashboard {
    let (client, _) = counting();
    let options = fivespot_controller::Options::new(client, Clock::system());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let now = at("2026-03-06T12:00:00Z");
    Dashboard::new(Options {
        listener,
        reader: Reader::new(options, None),
        now: Arc::new(move || std::future::ready(now).boxed()),
        title: "test".to_owned(),
        rates: None,
        audience,
    })
    .unwrap()
}

#[tokio::test]
async fn behind_a_proxy_every_host_is_served_without_a_token_and_nothing_is_written() {
    let dashboard = dashboard_for(Audience::Proxy).await;
    assert!(dashboard.url().ends_with('/'), "{}", dashboard.url());
    let router = dashboard.router();
    let send = |method: Method, path: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "machines.example.com")
            .body(Body::empty())
            .unwrap();
        router.clone().oneshot(request).map(Result::unwrap)
    };
    for path in ["/", "/machines", "/capacities", "/savings"] {
        let page = send(Method::GET, path).await;
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        assert!(!page.headers().contains_key(header::SET_COOKIE), "{path}");
        let policy = &page.headers()[header::CONTENT_SECURITY_POLICY];
        assert!(policy.to_str().unwrap().starts_with("default-src 'none'"));
    }
    let refused = send(Method::POST, "/machines").await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_url_works_once_and_every_response_has_the_security_headers() {
    let dashboard = dashboard().await;
    let url = dashboard.url().to_owned();
    let (origin, query) = url.split_once("/?").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let router = dashboard.router();
    let send = |method: Method, path: String, host: &str, cookie: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host)
            .header(header::COOKIE, cookie)
            .body(Body::empty())
            .unwrap();
        router.clone().oneshot(request).map(Result::unwrap)
    };
    let token = format!("/?{query}");
    let foreign = send(Method::GET, token.clone(), "evil.example", "").await;
    assert_eq!(foreign.status(), StatusCode::MISDIRECTED_REQUEST);
    for method in [Method::HEAD, Method::POST, Method::PUT, Method::DELETE] {
        let refused = send(method.clone(), token.clone(), host, "").await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{method}");
    }
    let admitted = send(Method::GET, token.clone(), host, "").await;
    assert_eq!(admitted.status(), StatusCode::SEE_OTHER);
    let root = admitted.headers()[header::LOCATION].to_str().unwrap();
    let root = root.strip_suffix('/').unwrap();
    let cookie = admitted.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains(&format!("; Path={root};")), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    // The path alone opens nothing.
    for path in ["/", "/machines", "/live", "/savings.csv"] {
        let path = format!("{root}{path}");
        let without_cookie = send(Method::GET, path.clone(), host, "").await;
        assert_eq!(without_cookie.status(), StatusCode::UNAUTHORIZED, "{path}");
        let policy = without_cookie.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        if path.ends_with('/') {
            let page = send(Method::GET, path, host, &cookie).await;
            assert_eq!(page.status(), StatusCode::OK);
        }
    }
    let again = send(Method::GET, token, host, "").await;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
    // Both are outside the path of the cookie.
    for path in ["/style.css", "/live.js"] {
        let asset = send(Method::GET, path.to_owned(), host, "").await;
        assert_eq!(asset.status(), StatusCode::OK);
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let refused = send(method, format!("{root}/machines"), host, &cookie).await;
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    for nowhere in ["/", "/machines", "/nowhere"] {
        let nowhere = send(Method::GET, nowhere.to_owned(), host, &cookie).await;
        assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);
    }
}

#[test]
fn pages_of_five_thousand_machines_are_bounded_in_size() {
    let state = State::new();
    for number in 0..5_000 {
        state.apply(machine(
            &format!("desk-{number:04}"),
            json!({"phase": "Inactive"}),
        ));
    }
    let snapshot = state.snapshot();
    let now = at("2026-03-06T12:00:00Z");
    let week = page::week::body(&snapshot, &Filter::default(), now)
        .live
        .into_string();
    let list = page::list::body(&snapshot, &Filter::default(), now)
        .live
        .into_string();
    for shown in [&week, &list] {
        assert!(shown.len() < 256 * 1024, "{}", shown.len());
        assert!(shown.contains("Page 1 of 50"), "{shown}");
    }
    // The curve counts all machines, not only those of the page.
    assert!(week.contains("at most 5000"));
    let one = Filter {
        q: "desk-4999".to_owned(),
        ..Filter::default()
    };
    let list = page::list::body(&snapshot, &one, now).live.into_string();
    assert!(list.contains("1 of 5000 machines"), "{list}");
}

/// The text of a page without its markup.
fn text(body: &page::Body) -> String {
    let mut text = String::new();
    let mut is_text = true;
    for char in body.live.clone().into_string().chars() {
        match char {
            '<' => is_text = false,
            '>' => is_text = true,
            char if is_text => text.push(char),
            _ => {}
        }
    }
    text
}

/// A state with `count` machines of that phase and a complete list.
fn machines_in(phase: &Value, count: usize) -> State {
    let state = State::new();
    for number in 0..count {
        let name = format!("desk-{number:03}");
        state.apply(machine(&name, json!({"phase": phase})));
    }
    state.set_listed();
    state
}

#[test]
fn the_pages_show_the_number_of_machines_and_the_range_shown() {
    let now = at("2026-03-06T12:00:00Z");
    let pages = |state: &State, filter: &Filter| {
        let snapshot = state.snapshot();
        let list = text(&page::list::body(&snapshot, filter, now));
        (list, text(&page::week::body(&snapshot, filter, now)))
    };
    let all = Filter::default();
    let many = machines_in(&json!("Active"), 230);
    let (list, week) = pages(&many, &all);
    assert!(list.contains("230 machines, 1 to 100 are shown"), "{list}");
    assert!(week.contains("100 of 230 machines have a row"), "{week}");
    let (list, _) = pages(&many, &all.with(|it| it.page = "3".to_owned()));
    assert!(
        list.contains("230 machines, 201 to 230 are shown"),
        "{list}"
    );
    let label = Filter {
        label: "team=a".to_owned(),
        ..Filter::default()
    };
    let (list, _) = pages(&many, &label);
    assert!(
        list.contains("230 of 230 machines, 1 to 100 are shown"),
        "{list}"
    );
    let one = machines_in(&json!("Active"), 1);
    let (list, week) = pages(&one, &all);
    assert!(
        list.contains("1 machine") && !list.contains("are shown"),
        "{list}"
    );
    for page in [list, week] {
        assert!(!page.contains("1 machines"), "{page}");
        assert!(!page.contains("all 1"), "{page}");
    }
}

#[test]
fn machines_are_counted_by_state_and_each_state_can_be_selected() {
    let now = at("2026-03-06T12:00:00Z");
    let state = machines_in(&Value::Null, 2);
    state.apply(machine("desk-9", json!({"phase": "Active"})));
    let counted = |state: &State, path: &str| {
        let all = page::judged(&state.snapshot(), now);
        page::machine_counts(path, &Filter::default(), &all).into_string()
    };
    for path in ["/", "/machines"] {
        let shown = counted(&state, path);
        let serving = format!("href=\"{path}?state=Serving\"");
        let unknown = format!("href=\"{path}?state=Unknown\"");
        let places = (shown.find(&unknown), shown.find(&serving));
        assert!(places.0.is_some() && places.0 < places.1, "{shown}");
        assert!(shown.contains("Unknown 2"), "{shown}");
    }
    let filter = Filter {
        state: "Unknown".to_owned(),
        ..Filter::default()
    };
    let body = page::list::body(&state.snapshot(), &filter, now);
    let form = body.fixed.clone().into_string();
    let chosen = "<option value=\"Unknown\" selected>Unknown</option>";
    assert!(form.contains(chosen), "{form}");
    assert!(text(&body).contains("2 of 3 machines"), "{}", text(&body));
    // No machine is in an unknown state, so the link is not shown.
    let shown = counted(&machines_in(&json!("Active"), 1), "/");
    assert!(!shown.contains("Unknown"), "{shown}");
}

/// A machine that has been blocked since 11:00.
fn blocked(name: &str) -> Machine {
    machine(
        name,
        json!({"phase": "Pending", "conditions": [
            {
                "type": "Ready", "status": "False", "reason": "KindNotServed",
                "message": "the API server does not serve it", "lastTransitionTime":
                "2026-03-06T11:00:00Z",
            },
            {
                "type": "Stalled", "status": "True", "reason": "KindNotServed",
                "message": "install it", "lastTransitionTime": "2026-03-06T11:00:00Z",
            },
        ]}),
    )
}

#[test]
fn blocked_machines_are_listed_first_and_drawn_as_failed() {
    let now = at("2026-03-06T12:00:00Z");
    let state = machines_in(&json!("Active"), 2);
    state.apply(blocked("desk-9"));
    let snapshot = state.snapshot();
    let list = text(&page::list::body(&snapshot, &Filter::default(), now));
    let place = |name: &str| list.find(name).unwrap();
    assert!(place("desk-9") < place("desk-000"), "{list}");
    let all = page::judged(&snapshot, now);
    assert_eq!(all[0].verdict.state, VerdictState::Blocked);
    let observed = all[0].object.observed(None, &all[0].verdict, now);
    assert_eq!(observed.len(), 1, "{observed:?}");
    assert_eq!(observed[0].kind, Kind::Failed);
    assert_eq!(observed[0].since, at("2026-03-06T11:00:00Z"));
}

/// A machine in a namespace, with a next change.
fn machine_of(namespace: &str, name: &str, next: Value) -> Machine {
    let message = "the window is open until 2026-03-06T18:00:00Z";
    let status = json!({"phase": "Active", "message": message, "nextTransition": next});
    let mut object = object(name, status);
    object["metadata"]["namespace"] = json!(namespace);
    object["spec"]["clusterName"] = json!(format!("cluster-of-{name}"));
    let machine = Machine::of(serde_json::from_value(object).unwrap());
    machine.with_inputs(&ScheduleInputs::default())
}

/// The order in which names occur in a text.
fn order(text: &str, names: &[&str]) -> Vec<String> {
    let mut found: Vec<(usize, &str)> = names
        .iter()
        .map(|name| (text.find(name).unwrap(), *name))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

#[test]
fn the_list_is_sorted_by_the_chosen_column_and_the_head_says_so() {
    let state = State::new();
    state.apply(machine_of("b", "one", json!("2026-03-06T18:00:00Z")));
    state.apply(machine_of("a", "two", json!("2026-03-07T09:00:00Z")));
    state.apply(machine_of("c", "three", Value::Null));
    let now = at("2026-03-06T12:00:00Z");
    let list = |sort: &str| {
        let filter = Filter {
            sort: sort.to_owned(),
            ..Filter::default()
        };
        let list = page::list::body(&state.snapshot(), &filter, now);
        list.live.into_string()
    };
    let names = [">one<", ">two<", ">three<"];
    for (sort, expected) in [
        ("", [">two<", ">one<", ">three<"]),
        ("machine", [">two<", ">one<", ">three<"]),
        ("-machine", [">three<", ">one<", ">two<"]),
        ("next", [">one<", ">two<", ">three<"]),
        ("-next", [">two<", ">one<", ">three<"]),
        ("-phase", [">two<", ">one<", ">three<"]),
        ("cluster", [">one<", ">three<", ">two<"]),
    ] {
        assert_eq!(order(&list(sort), &names), expected, "{sort}");
    }
    assert!(
        list("next").contains(r#"aria-sort="ascending"><a href="machines?sort=-next">"#)
    );
    assert!(list("-next").contains(r#"aria-sort="descending""#));
    assert!(!list("").contains("aria-sort"));
}

#[test]
fn every_time_of_a_page_is_in_the_chosen_zone() {
    let state = State::new();
    state.apply(machine_of("a", "one", json!("2026-03-06T18:00:00Z")));
    let now = at("2026-03-06T12:00:00Z");
    let list = |zone: &str| {
        let filter = Filter {
            zone: zone.to_owned(),
            ..Filter::default()
        };
        text(&page::list::body(&state.snapshot(), &filter, now))
    };
    let zurich = list("Europe/Zurich");
    for shown in [
        "in 6h (Fri 6 Mar 19:00 CET)",
        "the window is open until Fri 6 Mar 19:00 CET",
        "Times are those of Europe/Zurich.",
    ] {
        assert!(zurich.contains(shown), "{shown}: {zurich}");
    }
    // The zone of the machine.
    let own = list("");
    assert!(own.contains("until Fri 6 Mar 18:00 UTC"), "{own}");
}

#[test]
fn text_that_only_looks_like_an_instant_is_left_as_it_is() {
    let zone = TimeZone::get("Asia/Tokyo").unwrap();
    let shown = |text: &str| {
        let html = page::in_zone(text, &zone).into_string();
        html.split('<')
            .filter_map(|part| part.rsplit('>').next())
            .collect::<String>()
    };
    for (text, expected) in [
        ("", ""),
        ("Z", "Z"),
        (
            "ZÜRICH 2026-13-06T23:00:00Z Z",
            "ZÜRICH 2026-13-06T23:00:00Z Z",
        ),
        ("é2026-03-06T23:00:00Z!", "éSat 7 Mar 08:00 JST!"),
        (
            "2026-03-06T23:00:00Z2026-03-06T23:00:00Z",
            "Sat 7 Mar 08:00 JSTSat 7 Mar 08:00 JST",
        ),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn a_machine_without_a_next_change_says_why() {
    let next = |schedule: Value| {
        let mut object = object("one", json!({"phase": "Active"}));
        object["spec"]["schedule"] = schedule;
        let machine = Machine::of(serde_json::from_value(object).unwrap());
        let machine = machine.with_inputs(&ScheduleInputs::default());
        let now = at("2026-03-06T12:00:00Z");
        page::list::next(&machine, &TimeZone::UTC, now).into_string()
    };
    let always = json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]});
    let mut disabled = always.clone();
    disabled["enabled"] = json!(false);
    let never = json!({"cron": "0 0 30 2 *", "duration": "1h"});
    for (schedule, expected) in [
        (always, "none: always wanted"),
        (never, "none: never wanted"),
        (disabled, "none: disabled or killed"),
    ] {
        assert!(next(schedule.clone()).contains(expected), "{schedule}");
    }
}

#[test]
fn the_week_groups_machines_by_namespace_and_begins_with_what_is_blocked() {
    let state = State::new();
    for namespace in ["a", "b"] {
        for name in ["one", "two"] {
            state.apply(machine_of(namespace, name, Value::Null));
        }
    }
    let now = at("2026-03-06T12:00:00Z");
    let headings = || {
        let week = page::week::body(&state.snapshot(), &Filter::default(), now);
        let week = week.live.into_string();
        let groups = week.split(r#"<li class="group">"#).skip(1);
        let names = groups.map(|it| it.split('<').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(headings(), ["a", "b"]);
    state.apply(blocked("worker"));
    assert_eq!(headings(), ["team-a", "a", "b"]);
    let one = Filter {
        namespace: "b".to_owned(),
        ..Filter::default()
    };
    let week = page::week::body(&state.snapshot(), &one, now);
    assert!(!week.live.into_string().contains(r#"class="group""#));
}

#[test]
fn a_killed_machine_is_not_drawn_as_wanted() {
    let mut killed = object("desk-1", json!({"phase": "Terminated"}));
    let (from, to) = (at("2026-03-02T00:00:00Z"), at("2026-03-09T00:00:00Z"));
    let planned = |object: &Value| {
        let state = State::new();
        state.apply(Machine::of(serde_json::from_value(object.clone()).unwrap()));
        let machines = state.snapshot().machines.all;
        machines.values().next().unwrap().planned(from, to)
    };
    assert!(!planned(&killed).is_empty());
    killed["spec"]["killSwitch"] = json!(true);
    assert_eq!(planned(&killed), []);
}

/// The Lease of an operator that reconciles capacities too.
fn not_held(lease: Lease) -> Leases {
    Leases {
        machines: lease.clone(),
        capacities: lease,
    }
}

#[test]
fn a_banner_says_that_no_operator_runs_and_no_state_is_believed() {
    let now = at("2026-03-06T12:00:00Z");
    let state = machines_in(&json!("Active"), 1);
    let shown = |state: &State| {
        let snapshot = state.snapshot();
        let week = text(&page::week::body(&snapshot, &Filter::default(), now));
        (week, page::judged(&snapshot, now)[0].verdict.state)
    };
    state.set_leases(Leases::default());
    let (page, judged) = shown(&state);
    assert!(!page.contains("No operator runs"), "{page}");
    assert_eq!(judged, VerdictState::Serving);
    let changes = state.changes();
    state.set_leases(not_held(Lease::NotHeld {
        cause: "5spot-0 renewed the Lease 5m ago".to_owned(),
        since: None,
    }));
    assert!(changes.has_changed().unwrap(), "open pages are updated");
    let (page, judged) = shown(&state);
    assert!(page.contains("5spot-0 renewed the Lease 5m ago"), "{page}");
    assert_eq!(judged, VerdictState::Unknown);
}

#[test]
fn the_banner_tells_its_instants_in_the_time_zone_of_the_page() {
    let now = at("2026-03-06T12:00:00Z");
    let state = machines_in(&json!("Active"), 1);
    state.set_leases(not_held(Lease::NotHeld {
        cause: "5spot-0 renewed the Lease at 2026-03-06T11:55:00Z".to_owned(),
        since: None,
    }));
    let filter = Filter {
        zone: "Asia/Tokyo".to_owned(),
        ..Filter::default()
    };
    let page = page::list::body(&state.snapshot(), &filter, now);
    let page = page.live.into_string();
    let (_, banner) = page.split_once("No operator runs").unwrap();
    let (banner, _) = banner.split_once("</p>").unwrap();
    assert!(banner.contains("20:55"), "{banner}");
    assert!(!banner.contains(">2026-03-06T11:55:00Z"), "{banner}");
}

#[test]
fn machines_beyond_the_limit_are_counted() {
    let state = machines_in(&json!("Active"), 1);
    let name = |number: usize| Key::new("team-a", format!("more-{number}"));
    let notice = |count: usize| {
        let mut snapshot = state.snapshot();
        snapshot.machines.omitted = (0..count).map(name).collect();
        page::notices(&snapshot, &jiff::tz::TimeZone::UTC).into_string()
    };
    assert!(
        notice(1).contains("1 more machine is not shown"),
        "{}",
        notice(1)
    );
    assert!(
        notice(2).contains("2 more machines are not shown"),
        "{}",
        notice(2)
    );
}

#[test]
fn a_filter_admits_the_machines_that_match_it() {
    let active = machine("desk-1", json!({"phase": "Active"}));
    let stalled = blocked("desk-2");
    let filter = |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        (
            filter.matches(&active, VerdictState::Serving),
            filter.matches(&stalled, VerdictState::Blocked),
        )
    };
    assert_eq!(filter(&|_| {}), (true, true));
    assert_eq!(filter(&|it| it.phase = "Active".to_owned()), (true, false));
    assert_eq!(filter(&|it| it.state = "Blocked".to_owned()), (false, true));
    assert_eq!(filter(&|it| it.q = "k-2".to_owned()), (false, true));
    assert_eq!(filter(&|it| it.label = "team".to_owned()), (true, true));
    assert_eq!(filter(&|it| it.label = "team=b".to_owned()), (false, false));
    assert_eq!(
        filter(&|it| it.cluster = "production".to_owned()),
        (true, true)
    );
    assert_eq!(
        filter(&|it| it.namespace = "team-b".to_owned()),
        (false, false)
    );
}

#[test]
fn an_object_that_cannot_be_decoded_is_listed_with_the_reason() {
    let odd =
        json!({"metadata": {"name": "odd", "namespace": "a"}, "spec": {"schedule": 7}});
    let odd = Machine::of(serde_json::from_value(odd).unwrap());
    let found = odd.verdict(&Lease::Held, at("2026-03-06T12:00:00Z"));
    assert!(
        found.cause.starts_with("the object cannot be read: "),
        "{found:?}"
    );
}

#[test]
fn observed_spans_follow_the_phase_changes_in_any_order_of_arrival() {
    let mut phases = PhaseHistory::default();
    phases.add(at("2026-03-06T18:00:00Z"), Phase::ShuttingDown);
    phases.add(at("2026-03-06T09:00:00Z"), Phase::Pending);
    phases.add(at("2026-03-06T09:00:30Z"), Phase::Active);
    phases.add(at("2026-03-06T18:01:00Z"), Phase::Inactive);
    phases.add(at("2026-03-06T18:01:00Z"), Phase::Inactive);
    let machine = machine("desk-1", json!({"phase": "Inactive"}));
    let now = at("2026-03-06T20:00:00Z");
    let observed: Vec<_> = machine
        .observed(Some(&phases), &machine.verdict(&Lease::Held, now), now)
        .iter()
        .map(|span| format!("{:?} {} {}", span.kind, span.since, span.until))
        .collect();
    assert_eq!(
        observed,
        [
            "Starting 2026-03-06T09:00:00Z 2026-03-06T09:00:30Z",
            "Running 2026-03-06T09:00:30Z 2026-03-06T18:00:00Z",
            "ShuttingDown 2026-03-06T18:00:00Z 2026-03-06T18:01:00Z",
        ]
    );
}

#[test]
fn without_events_the_status_gives_the_start_of_a_running_machine() {
    let machine = machine(
        "desk-1",
        json!({
            "phase": "Active",
            "machineRef": {"apiVersion": "c/v1", "kind": "Machine", "name": "desk-1"},
            "lastScheduledTime": "2026-03-06T09:00:00Z",
        }),
    );
    let now = at("2026-03-06T12:00:00Z");
    let found = machine.verdict(&Lease::Held, now);
    let observed = machine.observed(None, &found, now);
    assert_eq!(observed.len(), 1);
    assert_eq!(
        (observed[0].since, observed[0].until),
        (at("2026-03-06T09:00:00Z"), now)
    );
}

fn phase_event(instant: &str, phase: &str) -> EventRecord {
    EventRecord {
        at: at(instant),
        is_warning: false,
        reason: "Changed".to_owned(),
        action: format!("PhaseTransitionTo{phase}"),
        note: format!("-> {phase}"),
    }
}

fn marks(status: Value, events: &[EventRecord]) -> Option<Vec<(String, Mark)>> {
    let object: ScheduledMachine =
        serde_json::from_value(object("desk-1", status)).unwrap();
    let timeline = shutdown::timeline(&object, events, at("2026-03-06T18:02:00Z"))?;
    let entries = timeline.entries.into_iter();
    Some(
        entries
            .map(|entry| (entry.at.to_string(), entry.mark))
            .collect(),
    )
}

#[test]
fn the_last_shutdown_begins_and_ends_with_its_events() {
    let mut refused = phase_event("2026-03-06T18:00:10Z", "");
    refused.is_warning = true;
    let events = [
        phase_event("2026-03-05T18:00:00Z", "ShuttingDown"),
        phase_event("2026-03-05T18:01:00Z", "Inactive"),
        phase_event("2026-03-06T09:00:00Z", "Pending"),
        phase_event("2026-03-06T18:00:00Z", "ShuttingDown"),
        refused,
        phase_event("2026-03-06T18:01:00Z", "Inactive"),
        phase_event("2026-03-06T19:00:00Z", "Pending"),
    ];
    let expected = [
        ("2026-03-06T18:00:00Z", Mark::Begin),
        ("2026-03-06T18:00:10Z", Mark::Failure),
        ("2026-03-06T18:01:00Z", Mark::End),
    ];
    let expected = expected.map(|(at, mark)| (at.to_owned(), mark));
    assert_eq!(marks(json!({}), &events), Some(expected.to_vec()));
    assert_eq!(marks(json!({}), &events[2..3]), None);
}

#[test]
fn a_shutdown_in_progress_has_its_deadline_and_no_events_of_an_earlier_one() {
    let status = json!({"phase": "ShuttingDown", "shutdown": {
        "machineUID": "m-1", "startedAt": "2026-03-06T18:00:00Z",
        "deadline": "2026-03-06T18:05:00Z", "reason": "ScheduleEnded",
    }});
    let events = [
        phase_event("2026-03-05T18:00:00Z", "ShuttingDown"),
        phase_event("2026-03-05T18:01:00Z", "Inactive"),
    ];
    let expected = [
        ("2026-03-06T18:00:00Z", Mark::Begin),
        ("2026-03-06T18:02:00Z", Mark::Now),
        ("2026-03-06T18:05:00Z", Mark::Planned),
    ];
    let expected = expected.map(|(at, mark)| (at.to_owned(), mark));
    assert_eq!(marks(status, &events), Some(expected.to_vec()));
}

#[test]
fn a_shutdown_shows_what_the_conditions_report_and_what_it_waits_for() {
    let condition = |kind: &str, at: &str, message: &str| {
        json!({
            "type": kind, "status": "False", "reason": "Draining", "message": message,
            "lastTransitionTime": at,
        })
    };
    let status = json!({
        "phase": "ShuttingDown",
        "shutdown": {
            "machineUID": "m-1", "startedAt": "2026-03-06T18:00:00Z",
            "deadline": "2026-03-06T18:05:00Z", "reason": "ScheduleEnded",
        },
        "conditions": [
            condition("Ready", "2026-03-06T18:00:00Z", "evicting 2 pods; shop-0 is not evicted"),
            condition("Scheduled", "2026-03-06T18:00:00Z", "closed"),
            condition("NodeAccess", "2026-03-06T09:00:00Z", "of the opening"),
            condition("MachineReady", "2026-03-06T18:01:00Z", "the Machine is being deleted"),
        ],
    });
    let object: ScheduledMachine =
        serde_json::from_value(object("desk-1", status)).unwrap();
    let timeline = shutdown::timeline(&object, &[], at("2026-03-06T18:02:00Z")).unwrap();
    let text = fivespot_drawing::timeline::text(&timeline);
    let lines: Vec<_> = text.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "Fri 18:00:00       +0s  ┬ shutdown begins: the schedule has closed",
            "Fri 18:01:00       +1m  ├ MachineReady is False: the Machine is being deleted",
            "Fri 18:02:00       +2m  ▸ now: evicting 2 pods; shop-0 is not evicted",
            "Fri 18:05:00       +5m  ┊ deadline: the Machine is deleted at the latest",
        ]
    );
}

#[test]
fn an_override_and_a_calendar_change_the_planned_spans_at_once() {
    let state = State::new();
    let mut object = object("desk-1", json!({}));
    object["spec"]["schedule"]["exceptions"] =
        json!([{"name": "holidays", "action": "Stop", "calendarRef": {"name": "site"}}]);
    state.apply(Machine::of(serde_json::from_value(object).unwrap()));
    let (from, to) = (at("2026-03-05T00:00:00Z"), at("2026-03-07T00:00:00Z"));
    let planned = || {
        let snapshot = state.snapshot();
        let machine = snapshot.machines.all.values().next().unwrap();
        let spans = machine.planned(from, to);
        spans
            .iter()
            .map(|span| (span.kind, span.name.clone()))
            .collect::<Vec<_>>()
    };
    let window = || (Kind::Window, String::new());
    assert_eq!(planned(), [window(), window()]);
    let name = |name: &str| Key::new("team-a", name);
    let date = DateEntry::parse("2026-03-05").unwrap();
    state.change_calendar(&name("site"), Some([date].into_iter().collect()));
    let holiday = || (Kind::ExceptionStop, "holidays".to_owned());
    assert_eq!(planned(), [holiday(), window()]);
    let late: ScheduleOverride = serde_json::from_value(json!({
        "metadata": {"name": "late", "namespace": "team-a"},
        "spec": {
            "targetRef": {"name": "desk-1"}, "mode": "Run",
            "startTime": "2026-03-06T18:00:00Z", "endTime": "2026-03-06T20:00:00Z",
        },
    }))
    .unwrap();
    state.change_override(&name("late"), Some(Arc::new(late)));
    let run = (Kind::OverrideRun, "late".to_owned());
    assert_eq!(planned(), [holiday(), window(), run]);
    state.change_override(&name("late"), None);
    assert_eq!(planned(), [holiday(), window()]);
    state.change_calendar(&name("site"), None);
    assert_eq!(planned(), [window(), window()]);
}

/// The planned spans of the only machine from Thursday to Friday.
fn planned_spans(state: &State) -> Vec<String> {
    let snapshot = state.snapshot();
    let machine = snapshot.machines.all.values().next().unwrap();
    let spans = machine.planned(at("2026-03-05T00:00:00Z"), at("2026-03-07T00:00:00Z"));
    let spans = spans.iter();
    spans
        .map(|span| format!("{:?} {} {}", span.kind, span.since, span.until))
        .collect()
}

#[test]
fn a_machine_that_follows_a_shared_schedule_has_its_planned_spans() {
    let state = State::new();
    let mut object = object("desk-1", json!({}));
    object["spec"]["schedule"] = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule", "name": "office",
    });
    state.apply(Machine::of(serde_json::from_value(object).unwrap()));
    assert!(planned_spans(&state).is_empty(), "it does not exist yet");
    let kind = "TimeBasedSpotSchedule";
    let office = Key::new("team-a", "office");
    let change = |name: &Key, hours: &str| {
        let spec = json!({
            "daysOfWeek": ["mon-fri"], "hoursOfDay": [hours],
            "exceptions": [
                {"name": "holidays", "action": "Stop", "calendarRef": {"name": "site"}},
            ],
        });
        let shared = SharedSchedule::of_spec(kind, &spec).unwrap();
        state.change_shared(kind, name, Some(shared));
    };
    change(&Key::new("team-b", "office"), "7");
    change(&Key::new("team-a", "night"), "8");
    assert!(planned_spans(&state).is_empty(), "those are other objects");
    change(&office, "9-11");
    let thursday = "Window 2026-03-05T09:00:00Z 2026-03-05T12:00:00Z";
    let friday = "Window 2026-03-06T09:00:00Z 2026-03-06T12:00:00Z";
    assert_eq!(planned_spans(&state), [thursday, friday]);
    let date = DateEntry::parse("2026-03-05").unwrap();
    let site = Key::new("team-a", "site");
    state.change_calendar(&site, Some([date].into_iter().collect()));
    let holiday = "ExceptionStop 2026-03-05T00:00:00Z 2026-03-06T00:00:00Z";
    assert_eq!(planned_spans(&state), [holiday, friday]);
    state.change_shared(kind, &office, None);
    assert!(planned_spans(&state).is_empty(), "it is deleted");
}

#[test]
fn the_schedule_of_another_provider_is_planned_as_the_operator_has_observed_it() {
    let state = State::new();
    let reference = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1", "kind": "ManualSchedule", "name": "desk",
    });
    let mut observed = reference.clone();
    observed["active"] = json!(false);
    observed["nextTransitionTime"] = json!("2026-03-06T18:00:00Z");
    let mut object = object("desk-1", json!({"spotSchedule": observed}));
    object["spec"]["schedule"] = reference;
    state.apply(Machine::of(serde_json::from_value(object).unwrap()));
    let open = "Window 2026-03-06T18:00:00Z 2026-03-07T00:00:00Z";
    assert_eq!(planned_spans(&state), [open]);
}

/// An override of `machine` that lets it run from 18:00 to 20:00, created at that time.
fn late(name: &str, machine: &str, created: Timestamp) -> Arc<ScheduleOverride> {
    let object = json!({
        "metadata": {"name": name, "namespace": "team-a", "creationTimestamp": created},
        "spec": {
            "targetRef": {"name": machine}, "mode": "Run",
            "startTime": "2026-03-06T18:00:00Z", "endTime": "2026-03-06T20:00:00Z",
        },
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

/// The names of the machines that run from 18:00 to 19:00 because of an override.
fn running_late(state: &State) -> Vec<String> {
    let (from, to) = (at("2026-03-06T18:00:00Z"), at("2026-03-06T19:00:00Z"));
    let all = state.snapshot().machines.all.into_values();
    all.filter(|machine| {
        let mut spans = machine.planned(from, to).into_iter();
        spans.any(|span| span.kind == Kind::OverrideRun)
    })
    .map(|machine| machine.name.name.clone())
    .collect()
}

#[test]
fn an_override_that_the_operator_does_not_consider_changes_no_schedule() {
    let state = machines_in(&json!("Active"), 1);
    let name = |name: String| Key::new("team-a", name);
    let created = at("2026-03-06T12:00:00Z");
    let target = state
        .snapshot()
        .machines
        .all
        .keys()
        .next()
        .unwrap()
        .name
        .clone();
    let newest = late("newest", &target, created);
    state.change_override(&name("newest".to_owned()), Some(newest));
    assert_eq!(running_late(&state), [target.as_str()]);
    for number in 0..256 {
        let older = format!("older-{number}");
        let of_another = late(&older, "another", at("2026-03-06T11:00:00Z"));
        state.change_override(&name(older), Some(of_another));
    }
    assert!(running_late(&state).is_empty());
    // A machine that is read later has the same overrides.
    state.apply(machine(&target, json!({})));
    assert!(running_late(&state).is_empty());
    state.change_override(&name("older-7".to_owned()), None);
    assert_eq!(running_late(&state), [target.as_str()]);
}

#[test]
fn a_selector_is_compared_with_every_label_of_a_machine() {
    let state = State::new();
    let mut many = object("desk-1", json!({}));
    let labels = (0..40).map(|number| (format!("label-{number:02}"), json!("x")));
    many["metadata"]["labels"] = Value::Object(labels.collect());
    state.apply(Machine::of(serde_json::from_value(many).unwrap()));
    let mut selecting =
        ScheduleOverride::clone(&late("late", "desk-1", at("2026-03-06T12:00:00Z")));
    selecting.spec.target_ref = None;
    selecting.spec.selector =
        serde_json::from_value(json!({"matchLabels": {"label-39": "x"}})).unwrap();
    let name = Key::new("team-a", "late");
    state.change_override(&name, Some(Arc::new(selecting)));
    assert_eq!(running_late(&state), ["desk-1"]);
}

#[test]
fn an_override_recomputes_only_the_machines_that_it_targets() {
    let state = State::new();
    for name in ["desk-1", "desk-2", "desk-3"] {
        state.apply(machine(name, json!({})));
    }
    let all = || {
        state
            .snapshot()
            .machines
            .all
            .into_values()
            .collect::<Vec<_>>()
    };
    let before = all();
    let name = Key::new("team-a", "late");
    let about = |target: &str| Some(late("late", target, at("2026-03-06T12:00:00Z")));
    state.change_override(&name, about("desk-2"));
    let after = all();
    let pairs = before.iter().zip(&after);
    let is_same: Vec<bool> = pairs.map(|(one, other)| Arc::ptr_eq(one, other)).collect();
    assert_eq!(is_same, [true, false, true]);
    // The override was deleted and created again for another machine between two lists.
    state.change_override(&name, about("desk-3"));
    assert_eq!(running_late(&state), ["desk-3"]);
}

#[test]
fn a_kind_that_cannot_be_read_is_reported_until_it_can() {
    let state = State::new();
    state.apply(machine("desk-1", json!({})));
    let now = at("2026-03-06T12:00:00Z");
    let shown = || {
        let body = page::week::body(&state.snapshot(), &Filter::default(), now);
        body.live.into_string()
    };
    state.set_unreadable("ScheduleOverrides", "forbidden".to_owned());
    let notice = "ScheduleOverrides cannot be read at present, the page does not include them: \
                  forbidden";
    assert!(shown().contains(notice), "{}", shown());
    state.set_readable("ScheduleOverrides");
    assert!(!shown().contains("cannot be read"), "{}", shown());
}

#[test]
fn savings_include_the_machines_that_the_filter_admits_up_to_now() {
    let state = State::new();
    for (name, team) in [("desk-1", "a"), ("desk-2", "b")] {
        let status = json!({
            "phase": "Active",
            "inSchedule": true,
            "usage": {
                "startTime": "2026-03-02T00:00:00Z",
                "months": [{"month": "2026-03", "activeSeconds": 3600, "wantedSeconds": 3600}],
                "accountedTime": "2026-03-06T09:00:00Z",
                "accountedState": "Active",
            },
        });
        let mut object = object(name, status);
        object["metadata"]["labels"] = json!({"team": team});
        state.apply(Machine::of(serde_json::from_value(object).unwrap()));
    }
    let now = at("2026-03-06T12:00:00Z");
    let snapshot = state.snapshot();
    let report = |filter: &Filter| page::savings::report(&snapshot, filter, None, now);
    let all = report(&Filter {
        by: "team".to_owned(),
        ..Filter::default()
    });
    assert_eq!(all.total.figures.active_seconds, 2 * 4 * 3_600);
    assert_eq!(all.total.figures.always_on_seconds, 2 * 108 * 3_600);
    assert_eq!(all.by_label.len(), 2);
    let some = report(&Filter {
        label: "team=b".to_owned(),
        ..Filter::default()
    });
    assert_eq!(some.items[0].name, "desk-2");
    assert_eq!(some.items.len(), 1);
    let body = page::savings::body(&snapshot, &Filter::default(), &all, now);
    let text = body.live.into_string();
    assert!(text.contains("\"savings.csv"), "{text}");
    assert!(!text.contains("style="), "{text}");
    // A month in the future is replaced by the current month.
    let later = report(&Filter {
        month: "2027-01".to_owned(),
        ..Filter::default()
    });
    assert_eq!(later.month.to_string(), "2026-03");
}

#[test]
fn a_page_shows_a_partial_list_with_a_notice_that_reading_continues() {
    let state = State::new();
    state.apply(machine("desk-1", json!({})));
    let shown = || {
        let now = at("2026-03-06T12:00:00Z");
        let body = page::list::body(&state.snapshot(), &Filter::default(), now);
        body.live.into_string()
    };
    let notice = "Reading the cluster: 1 machine so far…";
    assert!(shown().contains(notice), "{}", shown());
    assert!(
        shown().contains("\"machines/team-a/desk-1\""),
        "{}",
        shown()
    );
    state.set_listed();
    assert!(!shown().contains("Reading the cluster"), "{}", shown());
}

#[test]
fn metadata_that_the_pages_do_not_need_is_dropped() {
    let mut object = object("desk-1", json!({}));
    object["metadata"]["managedFields"] = json!([
        {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
        {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:clusterName": {}}}},
    ]);
    object["metadata"]["resourceVersion"] = json!("7");
    object["metadata"]["annotations"] = json!({"last-applied": "large"});
    let object = serde_json::from_value(object).unwrap();
    let listed = decoded::<ScheduledMachine>(object).unwrap();
    let managed = listed.metadata.managed_fields.unwrap();
    assert_eq!(managed[0].fields_v1, None);
    assert_eq!(
        managed[1].fields_v1.as_ref().unwrap().0,
        json!({"f:spec": {}})
    );
    assert_eq!(listed.metadata.annotations, None);
    assert_eq!(listed.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(listed.metadata.name.as_deref(), Some("desk-1"));
}

#[test]
fn a_machine_of_a_class_is_shown_with_its_class_and_the_cluster_that_it_gives() {
    let mut object = object("desk-1", json!({"clusterName": "night"}));
    object["spec"] = json!({
        "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
        "classRef": {"name": "desks"},
    });
    let of_class = Machine::of(serde_json::from_value(object).unwrap())
        .with_inputs(&ScheduleInputs::default());
    let now = at("2026-03-06T12:00:00Z");
    let shown = |machine: &Machine| {
        let facts = page::machine::facts(machine, &TimeZone::UTC, now);
        facts.into_string()
    };
    let text = shown(&of_class);
    for fact in [
        "<dt>Cluster</dt><dd>night</dd>",
        "<dt>Class</dt><dd>desks</dd>",
    ] {
        assert!(text.contains(fact), "{text}");
    }
    let text = shown(&machine("desk-2", json!({})));
    assert!(
        text.contains("<dt>Cluster</dt><dd>production</dd>"),
        "{text}"
    );
    assert!(!text.contains("Class"), "{text}");
}

#[test]
fn the_usage_of_a_machine_is_shown_by_month_the_latest_first() {
    let now = at("2026-03-06T12:00:00Z");
    let status = json!({
        "usage": {
            "startTime": "2026-02-01T00:00:00Z",
            "months": [
                {"month": "2026-02", "activeSeconds": 7_200, "wantedSeconds": 7_200},
                {"month": "2026-03", "activeSeconds": 3_600, "wantedSeconds": 3_600},
            ],
            "accountedTime": "2026-03-06T09:00:00Z",
            "accountedState": "None",
        },
    });
    let shown = page::machine::usage(&machine("desk-1", status), None, now).into_string();
    let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{shown}"));
    assert!(place("March 2026") < place("February 2026"));
    // February has 28 days.
    assert!(place("February 2026") < place("672.00"));
    let shown = page::machine::usage(&machine("desk-2", json!({})), None, now);
    assert!(shown.into_string().contains("has not recorded any use yet"));
}
