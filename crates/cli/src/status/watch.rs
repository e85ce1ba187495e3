//! A line for each change, until a signal.

#[cfg(test)]
mod tests;

use std::io::Write;

use fivespot_api::name::CAPACITY_PLURAL;
use fivespot_api::{ScheduledCapacity, ScheduledMachine};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};

use super::table::{PrintedRows, Row};
use super::zone::Zones;
use super::{Args, Form, api_of, capacity, row};
use crate::check::Judge;
use crate::cluster;
use crate::explain::unreadable::Unreadable;
use crate::named::Named;
use crate::preview::source;
use crate::signals::Signals;
use crate::{Failure, Outcome, output};

/// Prints a line for each change of machines and of ScheduledCapacities.
pub(super) async fn watch(
    args: &Args,
    named: Option<Named<'_>>,
    client: Client,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let operator = args.lease.operator();
    let judge = Judge::read(&client, &operator).await;
    output::notes("warning", &judge.warning(&operator));
    let watches = Watches::start(&client, args.all_namespaces, named);
    let judge = || Judge::read(&client, &operator);
    follow(args.output, watches, &client, judge, out).await
}

/// The watch of a kind.
#[derive(Default)]
struct Watched {
    /// Absent if the kind is not watched.
    events: Option<BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>>,
    /// The initial list. It is printed at once, so that its columns fit all rows.
    listed: Vec<DynamicObject>,
}

impl Watched {
    fn start(api: Api<DynamicObject>, named: Option<Named<'_>>) -> Self {
        let config = watcher::Config::default();
        let config = match named {
            None => config,
            Some(named) => match named.machine_selector() {
                Some(of_set) => config.labels(&of_set),
                None => config.fields(&format!("metadata.name={}", named.name)),
            },
        };
        Self {
            events: Some(watcher(api, config).boxed()),
            listed: Vec::new(),
        }
    }

    /// The next objects that have changed, and whether they were deleted; `None` if an event has
    /// none. Never ready if the kind is not watched.
    async fn next(&mut self) -> Result<Option<Changed>, watcher::Error> {
        let Some(events) = &mut self.events else {
            return std::future::pending().await;
        };
        let changed = |objects| Changed {
            objects,
            is_deleted: false,
        };
        Ok(match events.try_next().await? {
            Some(Event::Init) => {
                self.listed.clear();
                None
            }
            Some(Event::InitApply(object)) => {
                self.listed.push(object);
                None
            }
            Some(Event::InitDone) => Some(changed(std::mem::take(&mut self.listed))),
            Some(Event::Apply(object)) => Some(changed(vec![object])),
            Some(Event::Delete(object)) => Some(Changed {
                is_deleted: true,
                ..changed(vec![object])
            }),
            None => {
                self.events = None;
                None
            }
        })
    }
}

struct Changed {
    objects: Vec<DynamicObject>,
    is_deleted: bool,
}

/// Both kinds.
struct Watches {
    machines: Watched,
    capacities: Watched,
    /// Whether no object was named.
    is_list: bool,
}

impl Watches {
    /// Watches the object that is named, the machines of a set, or both kinds.
    fn start(client: &Client, is_all: bool, named: Option<Named<'_>>) -> Self {
        let has_machines = named.is_none_or(|it| !it.is_capacity());
        let has_capacities = named.is_none_or(Named::is_capacity);
        let start = |api| Watched::start(api, named);
        let machines =
            has_machines.then(|| start(api_of::<ScheduledMachine>(client, is_all)));
        let capacities =
            has_capacities.then(|| start(api_of::<ScheduledCapacity>(client, is_all)));
        Self {
            machines: machines.unwrap_or_default(),
            capacities: capacities.unwrap_or_default(),
            is_list: named.is_none(),
        }
    }
}

async fn follow(
    form: Form,
    mut watches: Watches,
    client: &Client,
    judge: impl AsyncFn() -> Judge,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let mut closed = std::pin::pin!(output::closed());
    let mut printed = PrintedRows::default();
    let mut zones = Zones::default();
    loop {
        let (changed, is_machine) = tokio::select! {
            () = signals.received() => return Ok(Outcome::Yes),
            () = &mut closed => return Ok(Outcome::Yes),
            changed = watches.machines.next() => {
                (changed.map_err(|error| failed("ScheduledMachines", error))?, true)
            }
            changed = watches.capacities.next() => match changed {
                Ok(changed) => (changed, false),
                // An older installation does not serve them, and a user may not read them.
                Err(error) if watches.is_list => {
                    watches.capacities = Watched::default();
                    note_unreadable(error);
                    continue;
                }
                Err(error) => return Err(failed("ScheduledCapacities", error)),
            },
        };
        let Some(Changed {
            objects,
            is_deleted,
        }) = changed
        else {
            continue;
        };
        if objects.is_empty() {
            continue;
        }
        let judge = judge().await;
        let mut lines = Vec::new();
        for object in objects {
            zones.read(client, &json!(object)).await;
            let mut line = if is_machine {
                Line::of_machine(&judge, &zones, &json!(object))
            } else {
                Line::of_capacity(&judge, &zones, object)?
            };
            if is_deleted {
                line = line.deleted();
            }
            if printed.is_changed(&line.row, is_deleted) {
                lines.push(line);
            }
        }
        lines.sort_by(|one, other| one.row.order(&other.row));
        if !lines.is_empty() {
            printed.set_instants(form.instants(&judge));
            print(form, &mut printed, lines, out)?;
        }
    }
}

fn failed(what: &str, error: watcher::Error) -> Failure {
    Failure::new(format!("watching {what}"), error)
        .remedy("check the cluster and your access to it")
}

/// Says that ScheduledCapacities cannot be read, unless they are not served.
fn note_unreadable(error: watcher::Error) {
    let error = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error,
        watcher::Error::WatchError(status) => kube::Error::Api(status),
        watcher::Error::NoResourceVersion => return,
    };
    if matches!(&error, kube::Error::Api(status) if cluster::is_not_served(status)) {
        return;
    }
    let unreadable = Unreadable::of(CAPACITY_PLURAL, &cluster::error_message(error));
    output::notes("warning", [&unreadable.text()]);
}

/// An object that has changed: as a row, and as a document.
struct Line {
    row: Row,
    /// Absent for a machine, whose document is the row.
    document: Option<Value>,
}

impl Line {
    fn of_machine(judge: &Judge, zones: &Zones, object: &Value) -> Self {
        Self {
            row: row(judge, zones, object),
            document: None,
        }
    }

    fn of_capacity(
        judge: &Judge,
        zones: &Zones,
        object: DynamicObject,
    ) -> Result<Self, Failure> {
        let document = source::capacity(object)?;
        let of_list = capacity::Row::of(&document, judge, zones);
        Ok(Self {
            row: of_list.among_machines(&document, zones),
            document: Some(json!(of_list)),
        })
    }

    /// The line of an object after its deletion.
    fn deleted(self) -> Self {
        let row = self.row.deleted();
        let document = self.document.map(|mut document| {
            document["phase"] = json!(row.phase());
            document["verdict"] = json!(row.verdict());
            document
        });
        Self { row, document }
    }

    fn into_document(self) -> Value {
        self.document.unwrap_or_else(|| json!(self.row))
    }
}

/// Prints rows that have changed.
fn print(
    form: Form,
    printed: &mut PrintedRows,
    lines: Vec<Line>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match form {
        Form::Text | Form::Wide => {
            let rows: Vec<Row> = lines.into_iter().map(|line| line.row).collect();
            printed.lines(out, &rows)?;
        }
        Form::Json => {
            for line in lines {
                writeln!(out, "{}", line.into_document())?;
            }
        }
        Form::Yaml => {
            for line in lines {
                writeln!(out, "---")?;
                output::yaml(out, &line.into_document())?;
            }
        }
    }
    Ok(out.flush()?)
}
