//! Connections to a pod: `attach`, `exec` and `portforward`, up to admission
//! (`ConnectResource` in k8s.io/apiserver). There are no kubelets to connect to.

use kubemu_admission::policy::Operation;
use serde_json::{Map, Value, json};

use super::read;
use crate::api_response::ApiResponse;
use crate::authorization::Action;
use crate::call::Call;
use crate::plugin::Attributes;
use crate::query;
use crate::resource::Subresource;
use crate::route::Target;
use crate::state::State;
use crate::status::{Details, Reason, Status};
use crate::store::Key;

/// Runs admission for a connection, and then fails as a server that cannot reach the kubelet.
///
/// # Errors
/// Always: 403 if it is not admitted, 404 and 400 if there is no container or node to connect
/// to, 500 if only the kubelet is missing.
pub(super) fn connect(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    if call.query.dry_run {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    let mut options = options(call, target);
    let attributes = Attributes::new(call, target, Operation::Connect);
    let chain = state.chain.clone();
    let mut notes = chain.admit(state, &attributes, Some(&mut options))?;
    notes.extend(chain.validate(state, &attributes, Some(&options))?);
    state.check_complete()?;
    let mut refused = refusal(state, call, target, &options);
    refused.warnings.extend(notes.warnings);
    Err(refused)
}

/// The options of a connection, from the query.
fn options(call: &Call, target: &Target) -> Value {
    let kind = target.below().and_then(Subresource::kind);
    let (_, version, kind) = kind.unwrap_or_default();
    let mut options = Map::new();
    options.insert("kind".to_owned(), kind.into());
    options.insert("apiVersion".to_owned(), version.into());
    let known: &[&str] = match target.subresource.as_str() {
        "portforward" => &["ports"],
        "exec" => &["stdin", "stdout", "stderr", "tty", "container", "command"],
        _ => &["stdin", "stdout", "stderr", "tty", "container"],
    };
    for (key, text) in &call.query.others {
        if !known.contains(&key.as_str()) {
            continue;
        }
        let list = |value: Value, options: &mut Map<String, Value>| {
            let all = options.entry(key.clone()).or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.push(value);
            }
        };
        match key.as_str() {
            "command" => list(text.as_str().into(), &mut options),
            "ports" => {
                let ports = text.split(',').filter_map(|it| it.parse::<i32>().ok());
                ports.for_each(|it| list(it.into(), &mut options));
            }
            "container" => {
                options.insert(key.clone(), text.as_str().into());
            }
            _ if query::parse_bool(text) => {
                options.insert(key.clone(), true.into());
            }
            _ => {}
        }
    }
    Value::Object(options)
}

/// The error of an admitted connection (`streamLocation` in
/// pkg/registry/core/pod/strategy.go).
fn refusal(state: &mut State, call: &Call, target: &Target, options: &Value) -> Status {
    // A GET can also be upgraded to a connection; since 1.35 this requires the verb `create`.
    if state.kube.is_at_least(35)
        && let Err(refused) = state.rights().authorize(&call.user, &creation(call))
    {
        return refused;
    }
    let pod = match read::existing(state, target) {
        Ok(pod) => pod,
        Err(missing) => return missing,
    };
    if target.subresource != "portforward"
        && let Some(why) = container_error(&pod, options)
    {
        return Status::bad_request(why);
    }
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        let name = &target.name;
        return Status::bad_request(format!("pod {name} does not have a host assigned"));
    }
    if state
        .get(state.buckets.nodes, &Key::new("", node))
        .is_none()
    {
        let message = format!("nodes {node:?} not found");
        return Status::new(404, Reason::NotFound, message).with_details(Details {
            name: node.to_owned(),
            kind: "nodes".to_owned(),
            ..Details::default()
        });
    }
    let message = format!("error dialing backend: node {node:?} has no kubelet here");
    Status::new(500, Reason::Unknown, message)
}

/// The `create` action of a connection, independent of the HTTP method.
fn creation(call: &Call) -> Action {
    Action {
        verb: "create".to_owned(),
        ..Action::of(call)
    }
}

/// The error if the container of a pod is not specified or does not exist.
fn container_error(pod: &Value, options: &Value) -> Option<String> {
    let pod_name = crate::meta::name(pod);
    let named = options["container"].as_str().unwrap_or_default();
    let names = |list: &str| -> Vec<&str> {
        let all = pod["spec"][list].as_array().into_iter().flatten();
        all.filter_map(|it| it["name"].as_str()).collect()
    };
    let all: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(names)
        .collect();
    if named.is_empty() && names("containers").len() > 1 {
        let all = all.join(" ");
        return Some(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{all}]"
        ));
    }
    if named.is_empty() || all.contains(&named) {
        return None;
    }
    Some(format!("container {named} is not valid for pod {pod_name}"))
}
