//! The API verbs, one module for each.

mod computed;
mod connect;
mod create;
pub(crate) mod delete;
mod evict;
mod list;
mod page;
mod patch;
mod place;
mod precondition;
mod read;
mod review;
mod scale;
mod update;
mod watch;
mod write;

use http::Method;

use crate::api_response::ApiResponse;
use crate::call::Call;
use crate::identity;
use crate::options;
use crate::resource::{Resource, Verb};
use crate::review::is_binding;
use crate::route::Target;
use crate::state::State;
use crate::status::{Details, Reason, Status};

/// Performs a request.
///
/// # Errors
/// The reason why it was rejected; nothing has been written then.
pub(crate) fn perform(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let mut result = dispatch(state, call, target);
    let is_refused =
        |it: &Status| !target.resource.custom && *it == Status::method_not_allowed();
    let is_served = !result.as_ref().is_err_and(is_refused);
    if let Some(warning) = &target.resource.deprecation
        && is_served
    {
        let warnings = match &mut result {
            Ok(response) => &mut response.warnings,
            Err(refused) => &mut refused.warnings,
        };
        warnings.insert(0, warning.clone());
    }
    result
}

fn dispatch(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let verb = target.verb(&call.method, call.query.watch);
    let served = verb.filter(|it| target.allows(*it));
    let verb = served.ok_or_else(|| not_served(call, target, verb))?;
    options::check(call)?;
    let kind = target.resource.builtin.as_ref();
    if let Some(objects) = kind.and_then(|it| it.computed()) {
        return computed::read(call, target, objects);
    }
    if target.subresource == "scale" {
        return scale::perform(state, call, target, verb);
    }
    if target.is_connection() {
        return connect::connect(state, call, target);
    }
    match verb {
        Verb::Get => read::get(state, call, target),
        Verb::List => list::list(state, call, target),
        Verb::Watch => watch::watch(state, call, target),
        Verb::Create => match target.subresource.as_str() {
            "eviction" => evict::evict(state, call, target),
            "binding" => evict::bind(state, call, target),
            "token" => identity::issue(state, call, target),
            _ if is_binding(&target.resource) => evict::bind_posted(state, call, target),
            _ => create::create(state, call, target),
        },
        Verb::Update => update::update(state, call, target),
        Verb::Patch => patch::patch(state, call, target),
        Verb::Delete => delete::delete(state, call, target),
        Verb::DeleteCollection => delete::delete_collection(state, call, target),
    }
}

/// 405; for a subresource of a custom object and for a watch of what can be listed the message
/// contains the verb.
fn not_served(call: &Call, target: &Target, verb: Option<Verb>) -> Status {
    let resource = &target.resource;
    if verb == Some(Verb::Watch) && target.allows(Verb::List) {
        return unsupported("watch", resource);
    }
    if !resource.custom || target.subresource.is_empty() {
        return Status::method_not_allowed();
    }
    let verb = match call.method {
        Method::POST => "create",
        Method::DELETE => "delete",
        _ => return Status::method_not_allowed(),
    };
    unsupported(verb, resource)
}

fn unsupported(verb: &str, resource: &Resource) -> Status {
    let what = resource.qualified();
    let message = format!("{verb} is not supported on resources of kind {what:?}");
    Status::new(405, Reason::MethodNotAllowed, message).with_details(Details {
        group: resource.group.clone(),
        kind: resource.plural.clone(),
        ..Details::default()
    })
}
