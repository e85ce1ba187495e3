//! GET of a collection, in pieces if wished.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::answer::{Answer, Content, List};
use crate::call::Call;
use crate::route::Target;
use crate::selector::{Fields, Filter, Labels};
use crate::state::{State, shown};
use crate::status::{Cause, Details, Reason, Status};
use crate::store::{Key, Object, Range};

pub(super) fn list(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<Answer, Status> {
    let filter = filter(call, target)?;
    let page = page(state, call)?;
    let at = page.at.unwrap_or_else(|| state.store.version());
    let shelf = state.shelf(&target.resource);
    let mut items: Vec<Object> = Vec::new();
    let mut last: Option<Key> = None;
    let mut remaining = 0;
    let limit = call.query.limit.unwrap_or(usize::MAX);
    if let Some(pods) = pods_of_one_node(state, target, &filter, &page) {
        items = pods;
    } else {
        let range = Range {
            namespace: namespace(target),
            after: page.after.as_ref(),
        };
        let found = state.store.list(shelf, &range, page.at);
        for (key, object) in found.map_err(|old| too_old(&page, old.oldest))? {
            if items.len() < limit {
                if filter.matches(object) {
                    items.push(object.clone());
                    last = Some(key.clone());
                }
            } else if filter.is_empty() || filter.matches(object) {
                remaining += 1;
                if !filter.is_empty() {
                    break;
                }
            }
        }
    }
    let go_on = match last {
        Some(last) if remaining > 0 => token(at, &last),
        _ => String::new(),
    };
    // With a selector the rest would have to be looked through to be counted.
    let counted = remaining > 0 && filter.is_empty();
    let items = items.iter().map(|it| shown(&target.resource, it)).collect();
    Ok(Answer::new(
        200,
        Content::List(List {
            resource: target.resource.clone(),
            version: at,
            go_on,
            remaining: counted.then_some(remaining),
            items,
        }),
    ))
}

/// Label and field selector of a request.
pub(super) fn filter(call: &Call, target: &Target) -> Result<Filter, Status> {
    let mut filter = Filter {
        labels: Labels::parse(&call.query.label_selector)?,
        fields: Fields::parse(&call.query.field_selector, &target.resource)?,
    };
    if !target.name.is_empty() {
        let one = format!("metadata.name={}", target.name);
        filter.fields = Fields::parse(&one, &target.resource)?;
    }
    Ok(filter)
}

/// Every object that a request selects, as they are kept.
pub(super) fn selected(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<Vec<Object>, Status> {
    let filter = filter(call, target)?;
    let shelf = state.shelf(&target.resource);
    let range = Range {
        namespace: namespace(target),
        after: None,
    };
    let found = state.store.list(shelf, &range, None);
    let found = found.map_err(|too_old| Status::too_old(0, too_old.oldest))?;
    Ok(found
        .filter(|(_, it)| filter.matches(it))
        .map(|(_, it)| it.clone())
        .collect())
}

pub(super) fn namespace(target: &Target) -> Option<&str> {
    target
        .resource
        .namespaced
        .then_some(target.namespace.as_str())
        .filter(|it| !it.is_empty())
}

/// The one selection that is asked for so often that it has an index.
fn pods_of_one_node(
    state: &mut State,
    target: &Target,
    filter: &Filter,
    page: &Page,
) -> Option<Vec<Object>> {
    let pods = state.shelves.pods;
    if state.shelf(&target.resource) != pods || page.at.is_some() || page.limited {
        return None;
    }
    let node = filter.fields.exactly("spec.nodeName")?;
    let found = state.index.pods_on(node).filter_map(|key| {
        let pod = state.store.get(pods, key)?;
        let here = target.namespace.is_empty() || target.namespace == *key.namespace;
        (here && filter.matches(pod)).then(|| pod.clone())
    });
    Some(found.collect())
}

/// Which snapshot is read, and from where on.
struct Page {
    /// `None` is the newest.
    at: Option<u64>,
    after: Option<Key>,
    limited: bool,
}

fn page(state: &State, call: &Call) -> Result<Page, Status> {
    let query = &call.query;
    let limited = query.limit.is_some();
    check_match(call)?;
    if !query.go_on.is_empty() {
        if !matches!(query.version.as_str(), "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let (at, after) = read_token(&query.go_on)?;
        return Ok(Page {
            at: Some(at),
            after: Some(after),
            limited,
        });
    }
    let newest = Page {
        at: None,
        after: None,
        limited,
    };
    match wanted_version(&query.version)? {
        None | Some(0) => Ok(newest),
        Some(version) if version > state.store.version() => {
            Err(too_large(version, state.store.version()))
        }
        Some(version) if query.version_match == "Exact" => Ok(Page {
            at: Some(version),
            ..newest
        }),
        Some(_) => Ok(newest),
    }
}

fn check_match(call: &Call) -> Result<(), Status> {
    let query = &call.query;
    let refuse = |message: &str| {
        let cause = Cause::new("FieldValueForbidden", "resourceVersionMatch", message);
        let text = format!(
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: {message}"
        );
        Err(
            Status::new(422, Reason::Invalid, text).with_details(Details {
                group: "meta.k8s.io".to_owned(),
                kind: "ListOptions".to_owned(),
                causes: vec![cause],
                ..Details::default()
            }),
        )
    };
    match query.version_match.as_str() {
        "" => Ok(()),
        _ if !query.go_on.is_empty() => refuse(
            "Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        _ if query.version.is_empty() => refuse(
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        "Exact" if query.version == "0" => refuse(
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        "Exact" | "NotOlderThan" => Ok(()),
        word => refuse(&format!(
            "Unsupported value: {word:?}: supported values: \"\", \"Exact\", \"NotOlderThan\""
        )),
    }
}

/// The version that a request names; `None` for none.
pub(super) fn wanted_version(text: &str) -> Result<Option<u64>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let message = format!("invalid resource version: {text:?}");
        Status::bad_request(message)
    })
}

/// 504: a version that has not come yet.
pub(super) fn too_large(wanted: u64, newest: u64) -> Status {
    let message = format!("Too large resource version: {wanted}, current: {newest}");
    let cause = Cause::new("ResourceVersionTooLarge", "", "Too large resource version");
    Status::new(504, Reason::Timeout, format!("Timeout: {message}")).with_details(
        Details {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..Details::default()
        },
    )
}

/// The text with which a list goes on, in the shape of Kubernetes' own tokens.
fn token(at: u64, last: &Key) -> String {
    let start = json!({"v": "meta.k8s.io/v1", "rv": at, "start": [&*last.namespace, &*last.name]});
    URL_SAFE_NO_PAD.encode(start.to_string())
}

fn read_token(text: &str) -> Result<(u64, Key), Status> {
    let refuse =
        || Status::bad_request("continue key is not valid: it was not made by a list");
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refuse())?;
    let start: Value = serde_json::from_slice(&bytes).map_err(|_| refuse())?;
    let at = start["rv"].as_u64().ok_or_else(refuse)?;
    let part = |index: usize| start["start"][index].as_str().ok_or_else(refuse);
    Ok((at, Key::new(part(0)?, part(1)?)))
}

/// 410: the snapshot is no longer retained.
fn too_old(page: &Page, oldest: u64) -> Status {
    if page.after.is_none() {
        return Status::too_old(page.at.unwrap_or_default(), oldest);
    }
    Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You \
         can start a new list without the continue parameter, or use the continue token in \
         this response to retrieve the remainder of the results. Continuing with the provided \
         token results in an inconsistent list - objects that were created, modified, or \
         deleted between the time the first chunk was returned and now may show up in the \
         list.",
    )
}
