//! Sending the planner's actions.

use std::sync::Arc;

use fivespot_api::name;
use fivespot_plan::{Action, Call, Cause, Request, Side, Step, Target};
use kube::api::ApiResource;
use serde_json::Value;

use crate::Key;
use crate::failure;
use crate::gather::View;
use crate::kind::{cache_name, config_map, node, pod, scheduled_machine};
use crate::ledger::{Version, Written};
use crate::memo::Memo;
use crate::metrics::Metrics;
use crate::observe::StepTaken;
use crate::port::{Address, Port};
use crate::shape::Shape;
use crate::shell::Shell;
use crate::specs;
use crate::workload::{Link, pods_of};

/// How a list of actions ended.
pub(crate) enum Applied {
    /// All of them were sent, and none was refused but evictions.
    All {
        /// The ScheduledMachine's version afterwards, where an action has changed it.
        version: Option<String>,
    },
    /// The world has moved; what was planned no longer fits it.
    Moved,
    /// This instance may not act on the ScheduledMachine any more.
    Fenced,
    /// A step failed; those after it were not sent.
    Failed {
        /// Which.
        step: Step,
        /// In which way.
        cause: Cause,
        /// The server's words, or the client's.
        message: String,
    },
}

/// Sends `actions` in order and stops at the first that fails.
///
/// Every action may be repeated: the server's own guards make that harmless.
///
/// # Guarantees
/// An empty list never fails. A conflict is never retried here: the next plan sees newer facts.
pub(crate) async fn apply(
    shell: &Arc<Shell>,
    key: &Key,
    (view, memo): (&View, &Memo),
    actions: &[Action],
) -> Applied {
    let mut version = None;
    let observe = |action: &Action, refusal: Option<String>| {
        let object = &action.request.target.object;
        shell.options.observe.step(&StepTaken {
            at: view.now,
            key: key.clone(),
            step: action.step,
            object: format!("{}/{}", object.kind, object.name),
            refusal,
        });
    };
    for action in actions {
        let drain = drain_of(action, view);
        let sent = send(shell, key, (&action.request, action.step), memo);
        let Ok(sent) = shell.tenure.write(key, sent).await else {
            return Applied::Fenced;
        };
        let error = match sent {
            Ok(answer) => {
                tracing::info!(step = ?action.step, "step done");
                observe(action, None);
                measure(&shell.metrics, action, drain);
                if is_scheduled_machine(&action.request.target) {
                    version = text(&answer["metadata"]["resourceVersion"]);
                }
                continue;
            }
            Err(error) => error,
        };
        let words = failure::words(&error);
        observe(action, Some(words.clone()));
        if let Call::Evict { uid } | Call::DeletePod { uid, .. } = &action.request.call
            && is_about_the_pod(&error)
        {
            tracing::info!(pod = action.request.target.object.name, "eviction refused");
            shell.metrics.evicted(false);
            shell.desk(key, |desk| desk.memory.refused(uid, &words, view.now));
            continue;
        }
        return stopped(shell, action, &error).await;
    }
    Applied::All { version }
}

/// Whether the drain that the deletion of a Machine ends was in time; none where there was none.
fn drain_of(action: &Action, view: &View) -> Option<bool> {
    if action.step != Step::DeleteMachine {
        return None;
    }
    let status = view.object.status.as_ref()?;
    let shutdown = status.shutdown.as_ref()?;
    // A kill switch and a reclaim drain nothing: their deadline is their beginning.
    let is_drain = shutdown.deadline > shutdown.started_at;
    is_drain.then_some(view.now < shutdown.deadline)
}

fn measure(metrics: &Metrics, action: &Action, drain: Option<bool>) {
    if action.step == Step::EvictPod {
        metrics.evicted(true);
    }
    if let Some(is_in_time) = drain {
        metrics.drained(is_in_time);
    }
}

/// Whether an eviction was refused for this pod's sake, so that others may still go: by a
/// budget (429), by two of them (500), by a policy or a webhook, or because its namespace is
/// going: others on the Node are of other namespaces.
fn is_about_the_pod(error: &kube::Error) -> bool {
    match failure::cause(error) {
        Cause::Rejected | Cause::NamespaceTerminating => true,
        Cause::Unavailable => !matches!(failure::code(error), None | Some(401 | 409)),
        Cause::Forbidden | Cause::NotServed => false,
    }
}

async fn stopped(shell: &Shell, action: &Action, error: &kube::Error) -> Applied {
    let is_create = matches!(action.request.call, Call::Create(_));
    match failure::code(error) {
        Some(409) => return Applied::Moved,
        Some(404) if !is_create => return Applied::Moved,
        Some(404) => {
            let group = &action.request.target.object.group;
            shell.served.forget(group).await;
        }
        _ => {}
    }
    let message = failure::words(error);
    shell.metrics.failed(failure::kind(error));
    tracing::warn!(step = ?action.step, error = message, "step failed");
    Applied::Failed {
        step: action.step,
        cause: failure::cause(error),
        message,
    }
}

/// Where a request goes, and which cache will show what it does.
struct Route {
    port: Port,
    resource: ApiResource,
    cache: String,
    shape: Shape,
}

async fn route(shell: &Arc<Shell>, key: &Key, request: &Request) -> kube::Result<Route> {
    let object = &request.target.object;
    match request.side {
        Side::Management => {
            let (resource, shape) = if is_scheduled_machine(&request.target) {
                (scheduled_machine(), Shape::ScheduledMachine)
            } else {
                let served = shell.served.resource(object).await?;
                let served = served.ok_or_else(|| missing(&object.kind))?;
                let is_machine = object.group == fivespot_capi::version::GROUP;
                let shape = if is_machine {
                    Shape::Machine
                } else {
                    Shape::Provider
                };
                (served, shape)
            };
            Ok(Route {
                port: shell.port.clone(),
                cache: cache_name(&resource),
                resource,
                shape,
            })
        }
        Side::Workload => {
            let workload = shell
                .used_by(key)
                .ok_or_else(|| missing("workload cluster"))?;
            let Link::Up(port) = workload.link() else {
                return Err(missing("workload cluster"));
            };
            let cluster = workload.cluster().clone();
            let (resource, cache, shape) = match object.kind.as_str() {
                "Pod" => (pod(), pods_of(key), Shape::Pod(key.clone())),
                "ConfigMap" => {
                    let cache = workload.agent_configs();
                    (config_map(), cache, Shape::AgentConfig(cluster))
                }
                _ => (node(), workload.nodes(), Shape::Node(cluster)),
            };
            Ok(Route {
                port,
                resource,
                cache,
                shape,
            })
        }
    }
}

/// What is not there any more, as an API server would say it.
fn missing(what: &str) -> kube::Error {
    kube::Error::Api(Box::new(
        kube::core::Status::failure(&format!("{what} not found"), "NotFound")
            .with_code(404),
    ))
}

/// Creates a provider object whose spec was left out, with that of the ScheduledMachine as it is
/// stored now. Few such objects are in memory at a time.
///
/// # Errors
/// Also a conflict: the ScheduledMachine is not any more what was planned from.
async fn create_large(
    shell: &Shell,
    key: &Key,
    (port, at): (&Port, &Address<'_>),
    (object, field): (&Value, &str),
) -> kube::Result<Value> {
    // Never closed.
    let _turn = shell.large_creates.acquire().await.ok();
    let resource = scheduled_machine();
    let stored = Address {
        resource: &resource,
        namespace: Some(&key.namespace),
        name: &key.name,
        shape: Some(&Shape::ScheduledMachine),
    };
    let hash = object["metadata"]["annotations"][name::SPEC_HASH_ANNOTATION].as_str();
    let spec = match shell.port.get_parsed(&stored).await? {
        Some(stored) => specs::text(stored, (field, hash)),
        None => None,
    };
    let spec = spec.ok_or_else(changed)?;
    port.create_text(at, specs::with(object, &spec)).await
}

/// What was planned from has changed, as an API server would say it.
fn changed() -> kube::Error {
    let status =
        kube::core::Status::failure("the ScheduledMachine has changed", "Conflict");
    kube::Error::Api(Box::new(status.with_code(409)))
}

async fn send(
    shell: &Arc<Shell>,
    key: &Key,
    (request, step): (&Request, Step),
    memo: &Memo,
) -> kube::Result<Value> {
    let Route {
        port,
        resource,
        cache,
        shape,
    } = route(shell, key, request).await?;
    let target = &request.target;
    let namespace = target.namespace.as_deref();
    let at = Address {
        resource: &resource,
        namespace,
        name: &target.object.name,
        shape: Some(&shape),
    };
    let lists_begun = lists_begun(shell, &cache, namespace);
    let answer = match &request.call {
        Call::Create(object) => {
            let collection = Address { name: "", ..at };
            match specs::field(step).filter(|_| object.get("spec").is_none()) {
                Some(field) => {
                    create_large(shell, key, (&port, &collection), (object, field))
                        .await?
                }
                None => port.create(&collection, object).await?,
            }
        }
        Call::Patch(patch) => port.patch(&at, None, patch).await?,
        Call::Delete { uid } => port.delete(&at, uid, None).await?,
        // What an eviction has done shows in the pod's own time; it is asked for again only
        // after a live read.
        Call::Evict { uid } => return port.evict(&at, uid).await,
        Call::DeletePod { uid, grace } => {
            return port.delete(&at, uid, Some(*grace)).await;
        }
    };
    let object = Key::new(namespace.unwrap_or_default(), target.object.name.clone());
    match request.call {
        Call::Create(_) | Call::Patch(_) => {
            memo.wrote(&cache, &object, Some(&answer));
        }
        Call::Delete { .. } | Call::DeletePod { .. } | Call::Evict { .. } => {
            memo.wrote(&cache, &object, None);
        }
    }
    let written = written(&request.call, &answer, lists_begun);
    shell.desk(key, |desk| desk.ledger.record(cache, object, written));
    Ok(answer)
}

fn lists_begun(shell: &Shell, cache: &str, namespace: Option<&str>) -> u64 {
    let feed = shell.cache(cache);
    feed.map_or(0, |feed| {
        feed.store.lists_begun(namespace.unwrap_or_default())
    })
}

/// What the answer says that the write has left behind.
fn written(call: &Call, answer: &Value, lists_begun: u64) -> Written {
    let meta = &answer["metadata"];
    let version = text(&meta["resourceVersion"]).map(Version::new);
    let uid = text(&meta["uid"]).unwrap_or_default();
    match call {
        Call::Delete { uid } => {
            // The object itself is the answer while finalizers keep it.
            let is_kept = meta["finalizers"]
                .as_array()
                .is_some_and(|all| !all.is_empty());
            Written {
                uid: uid.clone(),
                left: version.filter(|_| is_kept),
                lists_begun,
            }
        }
        Call::Create(_)
        | Call::Patch(_)
        | Call::DeletePod { .. }
        | Call::Evict { .. } => {
            // Taking the last finalizer off an object that is being deleted removes it.
            let is_removed = text(&meta["deletionTimestamp"]).is_some()
                && meta["finalizers"].as_array().is_none_or(Vec::is_empty);
            Written {
                uid,
                left: version.filter(|_| !is_removed),
                lists_begun,
            }
        }
    }
}

fn is_scheduled_machine(target: &Target) -> bool {
    target.object.group == name::GROUP && target.object.kind == name::KIND
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
