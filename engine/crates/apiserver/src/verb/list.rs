//! GET of a collection, with pagination.

use super::page::{Page, page, token, too_old};
use crate::api_response::{ApiResponse, Content, List};
use crate::call::Call;
use crate::resource::Resource;
use crate::route::Target;
use crate::selector::{Fields, Filter, Labels};
use crate::state::State;
use crate::status::Status;
use crate::store::{Key, Object, Range};

pub(super) fn list(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let selected = selected(state, call, target)?;
    let items = in_version_of(state, &target.resource, &selected.items)?;
    let list = List { items, ..selected };
    Ok(ApiResponse::new(200, Content::List(list)))
}

/// The page of objects that a request selects, in their storage version.
///
/// # Errors
/// 400 and 422 for invalid parameters, 410 for a version that is not retained, 504 for a future one.
pub(super) fn selected(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<List, Status> {
    let filter = filter(call, target)?;
    let page = page(state, call, &target.resource)?;
    let at = page.at.unwrap_or_else(|| state.store.version());
    let bucket = state.bucket(&target.resource);
    let mut items: Vec<Object> = Vec::new();
    let mut last: Option<Key> = None;
    let mut remaining = 0;
    let limit = page.limit.unwrap_or(usize::MAX);
    if let Some(pods) = pods_of_one_node(state, target, &filter, &page) {
        items = pods;
    } else {
        let range = Range {
            namespace: namespace(target),
            after: page.after.as_ref(),
        };
        let found = state.store.list(bucket, &range, page.at);
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
    let continue_token = match last {
        Some(last) if remaining > 0 => token(Some(at), &last),
        _ => String::new(),
    };
    // With a selector, counting the rest would require evaluating it for all remaining
    // objects.
    let counted = remaining > 0 && filter.is_empty();
    Ok(List {
        resource: target.resource.clone(),
        version: at,
        continue_token,
        remaining: counted.then_some(remaining),
        items,
    })
}

/// Objects in the version of `resource`. All of them are requested before one fails, so that a
/// webhook converts them in one call.
///
/// # Errors
/// 500 if one cannot be converted.
pub(super) fn in_version_of(
    state: &State,
    resource: &Resource,
    objects: &[Object],
) -> Result<Vec<Object>, Status> {
    let conversion = state.conversion(resource);
    let shown: Vec<_> = objects
        .iter()
        .map(|it| conversion.in_version_of(resource, it))
        .collect();
    shown.into_iter().collect()
}

/// The label and field selectors of a request.
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

pub(super) fn namespace(target: &Target) -> Option<&str> {
    target
        .resource
        .namespaced
        .then_some(target.namespace.as_str())
        .filter(|it| !it.is_empty())
}

/// The only selector that is frequent enough to have an index: pods of a node.
fn pods_of_one_node(
    state: &mut State,
    target: &Target,
    filter: &Filter,
    page: &Page,
) -> Option<Vec<Object>> {
    let pods = state.buckets.pods;
    if state.bucket(&target.resource) != pods || page.at.is_some() || page.limit.is_some()
    {
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
