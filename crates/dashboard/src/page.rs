//! The pages: their common frame and shared parts.

pub(crate) mod capacities;
pub(crate) mod form;
mod instant;
pub(crate) mod list;
pub(crate) mod machine;
pub(crate) mod savings;
mod sets;
pub(crate) mod week;

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::Phase;
use fivespot_api::condition::Remedy;
use fivespot_api::verdict::{Lease, State, Verdict};
use fivespot_controller::Key;
use fivespot_controller::refusal::needed_role;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, html};

use crate::filter::{Column, Filter, Order, PAGE};
use crate::machine::Machine;
use crate::reader::Leases;
use crate::state::{Objects, Snapshot};
pub(crate) use instant::{
    in_zone, instant_and_distance, local, relative, text_in_zone, whose_times,
};

/// The pages of the navigation: the path and the title of each.
const PAGES: [(&str, &str); 4] = [
    ("", "Week"),
    ("machines", "Machines"),
    ("capacities", "Capacities"),
    ("savings", "Savings"),
];

/// The content of a page.
pub(crate) struct Body {
    /// The part that stays while the page is open: the form.
    pub(crate) fixed: Markup,
    /// The part that the script fetches again when something changes.
    pub(crate) live: Markup,
}

/// A complete page with its head, navigation, and script. `root` is the path of all pages; the title
/// is one of [`PAGES`] or the name of a machine.
pub(crate) fn document(
    cluster: &str,
    root: &str,
    title: &str,
    filter: &Filter,
    body: Body,
) -> Markup {
    let zone = filter.only_zone().query();
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    span.brand { "5-Spot" }
                    nav aria-label="Pages" {
                        @for (path, name) in PAGES {
                            a href=(format!("{root}/{path}{zone}")) aria-current=[(name == title).then_some("page")] { (name) }
                        }
                    }
                    span.where { (cluster) }
                    span #status role="status" { "Loaded" }
                }
                main #main tabindex="-1" {
                    (body.fixed)
                    div #live { (body.live) }
                }
                script src="/live.js" data-live=(format!("{root}/live")) defer {}
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width,initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · 5-Spot" }
            link rel="icon" href="data:,";
            link rel="stylesheet" href="/style.css";
        }
    }
}

/// The page for a request without the cookie.
pub(crate) fn not_signed_in() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("Not signed in"))
            body {
                main {
                    h1 { "Not signed in" }
                    p {
                        "The URL of this dashboard works once, in one browser; its pages are in the history of \
                         that browser. Otherwise run the command again that printed it, "
                        code { "5spot dashboard" }
                        " or "
                        code { "5spot dev" }
                        ", and open its new URL."
                    }
                }
            }
        }
    }
}

/// The page for an unknown path. `root` is the path of all pages.
pub(crate) fn not_found(root: &str) -> Body {
    Body {
        fixed: html! {},
        live: html! {
            h1 { "Not found" }
            p { "This page does not exist, or the machine has been deleted. " a href=(format!("{root}/machines")) { "All machines" } }
        },
    }
}

/// Notices about errors in following the cluster.
pub(crate) fn notices(snapshot: &Snapshot, zone: &TimeZone) -> Markup {
    html! {
        @if let Lease::NotHeld { cause, .. } = &snapshot.leases.machines {
            p.notice.no-operator role="alert" {
                strong { "No operator runs" } ", so no machine starts or stops: " (in_zone(cause, zone)) ". "
                (Remedy::NO_OPERATOR.text)
            }
        }
        @if let Some(Lease::NotHeld { cause, .. }) = own_lease_of_capacities(snapshot) {
            p.notice.no-operator role="alert" {
                strong { "No controller of ScheduledCapacities runs" } ", so no value changes: "
                (in_zone(cause, zone)) ". " (Remedy::NO_OPERATOR.text)
            }
        }
        @if let Some(watch_error) = &snapshot.watch_error {
            p.notice role="alert" { "The cluster cannot be read at present, the page is out of date: " (watch_error) }
        }
        @for (kind, why) in snapshot.missed() {
            p.notice {
                @match needed_role(why) {
                    Some(role) => { (kind) ": not readable, the page does not include them; a role with " (role) " allows it" },
                    None => { (kind) " cannot be read at present, the page does not include them: " (why) },
                }
            }
        }
        @if !snapshot.machines.omitted.is_empty() {
            p.notice {
                @match snapshot.machines.omitted.len() {
                    1 => "1 more machine is not shown",
                    several => { (several) " more machines are not shown" },
                }
                ": there are too many."
            }
        }
        @if !snapshot.capacities.omitted.is_empty() {
            p.notice { "More capacities are not shown: there are too many." }
        }
        @if !snapshot.is_listed && snapshot.watch_error.is_none() {
            p.soft {
                "Reading the cluster"
                @if !snapshot.machines.all.is_empty() { ": " (machines(snapshot.machines.all.len())) " so far" }
                "…"
            }
        }
    }
}

/// The Lease of the controller of capacities, if it differs from the operator's and there are any.
fn own_lease_of_capacities(snapshot: &Snapshot) -> Option<&Lease> {
    let Leases {
        machines,
        capacities,
    } = &snapshot.leases;
    Some(capacities)
        .filter(|_| !snapshot.capacities.all.is_empty() && capacities != machines)
}

/// `1 machine`, `12 machines`.
pub(crate) fn machines(count: usize) -> String {
    match count {
        1 => "1 machine".to_owned(),
        several => format!("{several} machines"),
    }
}

/// An object with the verdict about it.
#[derive(Clone, Debug)]
pub(crate) struct Judged<T> {
    pub(crate) name: Key,
    pub(crate) object: Arc<T>,
    pub(crate) verdict: Verdict,
}

impl<T> Judged<T> {
    /// All objects: those to look at first at the beginning, then by namespace and name.
    pub(crate) fn all(
        objects: &Objects<T>,
        verdict: impl Fn(&T) -> Verdict,
    ) -> Vec<Self> {
        let all = objects.all.iter();
        let all = all.map(|(name, object)| Self {
            name: name.clone(),
            object: object.clone(),
            verdict: verdict(object),
        });
        let mut all: Vec<Self> = all.collect();
        // The sort is stable, and the objects are ordered by name.
        all.sort_by_key(|it| it.verdict.state.rank());
        all
    }
}

/// All machines, as [`Judged::all`].
pub(crate) fn judged(snapshot: &Snapshot, now: Timestamp) -> Vec<Judged<Machine>> {
    Judged::all(&snapshot.machines, |machine| snapshot.verdict(machine, now))
}

/// The machines that a filter admits, in the same order.
pub(crate) fn matching(
    judged: &[Judged<Machine>],
    filter: &Filter,
) -> Vec<Judged<Machine>> {
    let admitted = judged
        .iter()
        .filter(|it| filter.matches(&it.object, it.verdict.state));
    admitted.cloned().collect()
}

/// Sorts machines as the filter says. Equal ones stay in their order, and those without a change come
/// last.
pub(crate) fn sort(machines: &mut [Judged<Machine>], order: Order) {
    let text = |it: &Judged<Machine>| match order.column {
        Column::Machine => it.object.name.to_string(),
        Column::Phase => phase_name(it.object.phase()).to_owned(),
        Column::Cluster => it.object.cluster().to_owned(),
        Column::Node => it.object.node().to_owned(),
        Column::Message => it.verdict.cause.clone(),
        Column::State | Column::Next => String::new(),
    };
    // Reversed before the sort too, which keeps the order of equal ones.
    if order.is_descending {
        machines.reverse();
    }
    match order.column {
        Column::State => machines.sort_by_key(|it| it.verdict.state),
        Column::Next => machines.sort_by_key(|it| {
            let next = it.object.next();
            (next.is_none() != order.is_descending, next)
        }),
        _ => machines.sort_by_cached_key(text),
    }
    if order.is_descending {
        machines.reverse();
    }
}

/// The head of a table with these columns.
pub(crate) fn heads(columns: &[&str]) -> Markup {
    html! { thead { tr { @for column in columns { th scope="col" { (column) } } } } }
}

/// What is on the page of the filter.
pub(crate) fn page_of<'r, R>(rows: &'r [R], filter: &Filter) -> &'r [R] {
    let start = (filter.page() - 1).saturating_mul(PAGE).min(rows.len());
    let end = (start + PAGE).min(rows.len());
    rows.get(start..end).unwrap_or_default()
}

/// How many of all objects a filter admits, and the range shown on its page. `in_words` is the
/// number of all.
pub(crate) fn shown_range(
    filter: &Filter,
    matching: usize,
    all: usize,
    in_words: &str,
) -> Markup {
    let start = (filter.page() - 1).saturating_mul(PAGE).min(matching);
    let end = (start + PAGE).min(matching);
    html! {
        p.soft {
            @if matching < all || filter.is_restricted() { (matching) " of " }
            (in_words)
            @if matching > PAGE && start < end { ", " (start + 1) " to " (end) " are shown" }
        }
    }
}

/// Links to the previous and the next page.
pub(crate) fn pages(path: &str, filter: &Filter, count: usize) -> Markup {
    let (page, last) = (filter.page(), count.div_ceil(PAGE).max(1));
    let link = |to: usize| {
        format!(
            "{path}{}",
            filter.with(|it| it.page = to.to_string()).query()
        )
    };
    html! {
        @if last > 1 {
            nav.pages aria-label="Pages of the list" {
                @if page > 1 { a href=(link(page - 1)) rel="prev" { "Previous" } }
                span { "Page " (page) " of " (last) }
                @if page < last { a href=(link(page + 1)) rel="next" { "Next" } }
            }
        }
    }
}

/// The name of a phase on the pages and in a filter.
pub(crate) fn phase_name(phase: Option<Phase>) -> &'static str {
    phase.map_or("Unknown", Phase::as_str)
}

/// The number of objects in each state, each with a link to these objects; what to look at first
/// comes first. `label` says what is counted.
pub(crate) fn counts(
    path: &str,
    label: &str,
    filter: &Filter,
    states: impl Iterator<Item = State>,
) -> Markup {
    let mut counts: BTreeMap<State, usize> = BTreeMap::new();
    for state in states {
        *counts.entry(state).or_default() += 1;
    }
    let link = |state: State| {
        let is_chosen = filter.state == state.as_str();
        let chosen = if is_chosen { "" } else { state.as_str() };
        let filter = filter.with(|it| {
            chosen.clone_into(&mut it.state);
            it.page.clear();
        });
        format!("{path}{}", filter.query())
    };
    html! {
        ul.counts aria-label=(label) {
            @for (state, count) in counts {
                li {
                    a class=(format!("state-{state}")) href=(link(state)) title=(state.meaning())
                      aria-current=[(filter.state == state.as_str()).then_some("true")] {
                        span aria-hidden="true" { (state_symbol(state)) }
                        (state) " " (count)
                    }
                }
            }
        }
    }
}

/// The number of machines in each state.
pub(crate) fn machine_counts(
    path: &str,
    filter: &Filter,
    judged: &[Judged<Machine>],
) -> Markup {
    let states = judged.iter().map(|it| it.verdict.state);
    counts(path, "Machines by state", filter, states)
}

/// A state with its symbol, so that it is not shown by colour alone.
pub(crate) fn state(state: State) -> Markup {
    html! {
        span class=(format!("phase state-{state}")) title=(state.meaning()) {
            span aria-hidden="true" { (state_symbol(state)) }
            (state)
        }
    }
}

fn state_symbol(state: State) -> &'static str {
    match state {
        State::Blocked => "✕",
        State::Unknown => "?",
        State::Late => "▲",
        State::Starting => "◔",
        State::Leaving => "◑",
        State::Serving => "●",
        State::Held => "‖",
        State::Disabled => "–",
        State::Killed => "■",
        State::Off => "○",
    }
}
