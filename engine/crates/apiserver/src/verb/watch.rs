//! GET of a collection with `watch=true`.

use std::collections::VecDeque;
use std::time::Duration;

use kubemu_admission::FieldError;
use kubemu_clock::Clock;

use super::{list, page};
use crate::api_response::{ApiResponse, Content};
use crate::broadcaster::Scope;
use crate::call::Call;
use crate::options;
use crate::route::Target;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::{Bucket, Range};
use crate::watch::{Event, Watch, WatchParameters, bookmark};

pub(super) fn watch(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let query = &call.query;
    check(call)?;
    let scope = Scope {
        namespace: target.namespace.clone(),
        filter: list::filter(call, target)?,
    };
    let bucket = state.bucket(&target.resource);
    let since = since(&query.version)?;
    let newest = state.store.version();
    if let Some(since) = since.filter(|it| *it > newest) {
        return Err(page::too_large(since, newest));
    }
    let from_now = matches!(since, None | Some(0));
    let initial = query.send_initial_events.unwrap_or(from_now);
    let backlog = if initial {
        let mut events = everything(state, bucket, &scope);
        if query.send_initial_events == Some(true) && query.bookmarks {
            let mark = bookmark(&target.resource, newest, true);
            events.push_back(Event::Bookmark(mark));
        }
        Ok(events)
    } else if from_now {
        Ok(VecDeque::new())
    } else {
        replay(state, bucket, &scope, since.unwrap_or_default())
    };
    let watch = match backlog {
        Err(refused) => Watch::refused(target.resource.clone(), refused),
        Ok(backlog) => {
            let hold = call.holds_clock.then(|| state.clock.clone());
            let busy = hold
                .as_ref()
                .filter(|_| !backlog.is_empty())
                .map(Clock::busy);
            Watch::open(WatchParameters {
                resource: target.resource.clone(),
                conversion: state.conversion(&target.resource),
                backlog,
                live: state.broadcaster.subscribe(bucket, scope, hold),
                busy,
                version: newest,
                bookmarks: query.bookmarks,
                timeout: query
                    .timeout_seconds
                    .filter(|it| *it > 0)
                    .map(|it| Duration::from_secs(it.into())),
            })
        }
    };
    Ok(ApiResponse::new(200, Content::Watch(Box::new(watch))))
}

/// The resourceVersion after which a watch starts.
///
/// # Errors
/// 500, as in Kubernetes, for a version that is not a number.
fn since(version: &str) -> Result<Option<u64>, Status> {
    if version.is_empty() {
        return Ok(None);
    }
    let refuse = |_| Status::new(500, Reason::Unknown, page::malformed(version));
    version.parse().map(Some).map_err(refuse)
}

/// `sendInitialEvents` requires `resourceVersionMatch` and vice versa (KEP-3157).
fn check(call: &Call) -> Result<(), Status> {
    let query = &call.query;
    let field = "resourceVersionMatch";
    let alone = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    let errors = match (query.send_initial_events, query.version_match.as_str()) {
        (None, "") | (Some(_), "NotOlderThan") => return Ok(()),
        (None, _) => {
            let why = "resourceVersionMatch is forbidden for watch unless \
                       sendInitialEvents is provided";
            vec![FieldError::forbidden(field, why)]
        }
        (Some(_), "") => vec![FieldError::forbidden(field, alone)],
        (Some(_), word) => vec![
            FieldError::forbidden(field, alone),
            FieldError::not_supported(field, word.into(), ["NotOlderThan"]),
        ],
    };
    Err(options::invalid("ListOptions", &errors))
}

/// An event for each current object of the scope.
fn everything(state: &State, bucket: Bucket, scope: &Scope) -> VecDeque<Event> {
    let namespace = Some(scope.namespace.as_str()).filter(|it| !it.is_empty());
    let range = Range {
        namespace,
        after: None,
    };
    let Ok(found) = state.store.list(bucket, &range, None) else {
        return VecDeque::new();
    };
    let requested = found.filter(|(_, it)| scope.filter.matches(it));
    requested
        .map(|(_, it)| Event::Initial(it.clone()))
        .collect()
}

/// The events of the scope after a version.
fn replay(
    state: &State,
    bucket: Bucket,
    scope: &Scope,
    since: u64,
) -> Result<VecDeque<Event>, Status> {
    let changes = state.store.changes(bucket, since);
    let changes = changes.map_err(|old| Status::too_old(since, old.oldest))?;
    Ok(changes
        .filter_map(|it| scope.event_of(it))
        .map(Event::Changed)
        .collect())
}
