//! Agreeing with other instances, by Leases: carries out what [`election`](crate::election) or
//! [`membership`](crate::membership) decide.

mod alone;
mod lead;
mod shard;

use std::pin::pin;
use std::sync::Arc;

use fivespot_clock::Busy;
use futures::StreamExt as _;
use futures::future::{Either, select};
use k8s_openapi::api::coordination::v1;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::Status;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::failure;
use crate::feed::Task;
use crate::shell::Shell;
use crate::watch::rest;
use crate::{Coordination, Lease};
use fivespot_runtime::http::Address;
use fivespot_runtime::lease::{Record, Stored, Terms};

/// How this instance stands with the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// There are no others.
    #[default]
    Alone,
    /// It takes no part in the election, and writes nothing, because that one holds the Lease.
    Barred(String),
    /// Not known yet.
    Undecided,
    /// It leads.
    Leading,
    /// That one leads; empty while nobody does.
    Following(String),
    /// It has a Lease, and could not renew it in time: it writes nothing.
    Lapsed,
    /// It is one of so many shards, and acts on its share.
    Sharing(usize),
    /// It is one of so many shards, and does not act until all others know of it.
    Joining(usize),
}

/// Holds, or waits for, what [`Coordination`] asks for, until `leave` says to let it go, or is
/// dropped.
pub(crate) async fn coordinate(shell: Arc<Shell>, leave: oneshot::Receiver<()>) {
    match shell.options.coordination.clone() {
        Coordination::Alone => {}
        Coordination::Unelected(lease) => alone::watch(&shell, &lease, leave).await,
        Coordination::Leader(lease) => lead::lead(&shell, &lease, leave).await,
        Coordination::Shards(lease) => shard::share(&shell, &lease, leave).await,
    }
}

/// What the watch of Leases shows. Time stands still until it has been heard.
struct Shown {
    what: News,
    _arrived: Busy,
}

enum News {
    /// All of them.
    Listed(Vec<Stored>),
    /// One is new or has changed.
    Changed(Stored),
    /// One is gone.
    Gone(Stored),
}

/// Follows the Leases that `config` selects, for as long as the task is held.
fn follow_leases(
    shell: &Arc<Shell>,
    namespace: &str,
    config: watcher::Config,
) -> (Task, UnboundedReceiver<Shown>) {
    let (tell, told) = unbounded_channel();
    let api = Api::namespaced_with(shell.port.client(), namespace, &leases());
    let task = shell.spawn(follow(shell.clone(), api, config, tell));
    (task, told)
}

async fn follow(
    shell: Arc<Shell>,
    api: Api<DynamicObject>,
    config: watcher::Config,
    tell: UnboundedSender<Shown>,
) {
    let mut events = pin!(watcher(api, config));
    let mut loading = Some(shell.clock.busy());
    let mut failures = 0;
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        let what = match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(lease)) => {
                listed.push(stored(&lease));
                continue;
            }
            Ok(Event::InitDone) => News::Listed(std::mem::take(&mut listed)),
            Ok(Event::Apply(lease)) => News::Changed(stored(&lease)),
            Ok(Event::Delete(lease)) => News::Gone(stored(&lease)),
            Err(error) => {
                failures += 1;
                let error = failure::words(&failure::of_watch(error));
                shell
                    .outage
                    .complain(format_args!("watch of Leases failed"), &error);
                rest(&shell, "leases", failures, &mut loading).await;
                continue;
            }
        };
        failures = 0;
        let shown = Shown {
            what,
            _arrived: shell.clock.busy(),
        };
        loading = None;
        // Nobody listens any more when the instance has let go.
        let _ = tell.send(shown);
    }
}

fn stored(lease: &DynamicObject) -> Stored {
    Stored::read(&serde_json::to_value(lease).unwrap_or_default())
}

fn leases() -> ApiResource {
    ApiResource::erase::<v1::Lease>(&())
}

/// How a request about a Lease ended.
enum Answer<T> {
    Done(T),
    /// The Lease has changed, is gone, or is there already.
    Overtaken,
    /// No answer, or one that says nothing about the Lease.
    Failed(String),
}

/// Requests about one Lease, each given up when it takes longer than a renewal may.
struct Desk<'a> {
    shell: &'a Shell,
    lease: &'a Lease,
    terms: Terms,
    /// Its name, where it is not that of `lease`.
    name: String,
    /// The name that shards share.
    ring: Option<String>,
}

impl Desk<'_> {
    async fn within<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Answer<T> {
        let limit = self.shell.tenure.clock().sleep(self.terms.patience());
        match select(pin!(request), limit).await {
            Either::Left((Ok(answer), _)) => Answer::Done(answer),
            Either::Left((Err(error), _)) => match failure::code(&error) {
                Some(404 | 409) => Answer::Overtaken,
                _ => Answer::Failed(failure::words(&error)),
            },
            Either::Right(_) => Answer::Failed("no answer in time".to_owned()),
        }
    }

    async fn read(&self) -> Answer<Option<Stored>> {
        let resource = leases();
        let at = self.address(&resource, &self.name);
        let found = self.within(self.shell.port.get(&at)).await;
        found.map(|found| found.as_ref().map(Stored::read))
    }

    async fn create(&self, record: &Record) -> Answer<Stored> {
        let resource = leases();
        let at = self.address(&resource, "");
        let body = self.body(record, None);
        let created = self.within(self.shell.port.create(&at, &body)).await;
        created.map(|lease| Stored::read(&lease))
    }

    async fn replace(&self, record: &Record, version: &str) -> Answer<Stored> {
        let resource = leases();
        let at = self.address(&resource, &self.name);
        let body = self.body(record, Some(version));
        let replaced = self.within(self.shell.port.replace(&at, &body)).await;
        replaced.map(|lease| Stored::read(&lease))
    }

    /// Removes the Lease `name` of that uid and version.
    async fn remove(&self, name: &str, which: (&str, &str)) -> kube::Result<()> {
        let resource = leases();
        let at = self.address(&resource, name);
        let request = self.shell.port.delete_version(&at, which);
        let limit = self.shell.tenure.clock().sleep(self.terms.patience());
        match select(pin!(request), limit).await {
            Either::Left((answer, _)) => answer.map(|_| ()),
            Either::Right(_) => Err(kube::Error::Api(Box::new(
                Status::failure("no answer in time", "Timeout").with_code(504),
            ))),
        }
    }

    fn address<'b>(&'b self, resource: &'b ApiResource, name: &'b str) -> Address<'b> {
        Address {
            resource,
            namespace: Some(&self.lease.namespace),
            name,
            shape: None,
        }
    }

    fn body(&self, record: &Record, version: Option<&str>) -> Value {
        let at = (self.lease.namespace.as_str(), self.name.as_str());
        record.lease(at, version, self.ring.as_deref())
    }
}

impl<T> Answer<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Done(answer) => Answer::Done(with(answer)),
            Self::Overtaken => Answer::Overtaken,
            Self::Failed(why) => Answer::Failed(why),
        }
    }
}

/// Waits for `until`, if there is such an instant.
async fn alarm(shell: &Shell, until: Option<jiff::Timestamp>) {
    match until {
        Some(until) => shell.tenure.clock().sleep_until(until).await,
        None => std::future::pending().await,
    }
}
