//! Pagination: the snapshot of a list and the position in it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use crate::call::Call;
use crate::options;
use crate::resource::{GroupResource, Resource};
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::Key;
use crate::syntax;

/// The snapshot to read, and the position to start from.
pub(super) struct Page {
    /// `None` for the current state.
    pub(super) at: Option<u64>,
    pub(super) after: Option<Key>,
    /// Maximum number of items in one response; `None` for all.
    pub(super) limit: Option<usize>,
}

/// Parses the snapshot and the position from a list's parameters.
///
/// # Errors
/// 400 and 422 for invalid combinations of parameters, 504 for a future version.
pub(super) fn page(
    state: &State,
    call: &Call,
    resource: &Resource,
) -> Result<Page, Status> {
    let query = &call.query;
    let limit = query.limit;
    check_match(call)?;
    if !query.continue_token.is_empty() {
        let (at, after) = read_token(&query.continue_token)?;
        if !matches!(query.version.as_str(), "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return Ok(Page {
            at,
            after: Some(after),
            limit,
        });
    }
    let newest = Page {
        at: None,
        after: None,
        limit,
    };
    // Without `resourceVersionMatch`, a list with a limit uses exactly the given version. The
    // deletion of a collection always has a limit (`DeleteCollection` in k8s.io/apiserver).
    let exact = match query.version_match.as_str() {
        "" => limit.is_some() || call.method == Method::DELETE,
        word => word == "Exact",
    };
    match wanted_version(&query.version)? {
        Some(0) if is_cached(resource) => Ok(Page {
            limit: None,
            ..newest
        }),
        Some(version) if version > state.store.version() => {
            Err(too_large(version, state.store.version()))
        }
        Some(version) if version > 0 && exact => Ok(Page {
            at: Some(version),
            ..newest
        }),
        None | Some(_) => Ok(newest),
    }
}

/// Whether Kubernetes serves lists at any version from its watch cache. It then ignores the
/// limit (`computeListLimit` in k8s.io/apiserver). Events have no watch cache.
pub(super) fn is_cached(resource: &Resource) -> bool {
    resource.storage != GroupResource::new("", "events")
}

fn check_match(call: &Call) -> Result<(), Status> {
    let query = &call.query;
    let refuse = |error: FieldError| Err(options::invalid("ListOptions", &[error]));
    let forbid = |why: &str| refuse(FieldError::forbidden("resourceVersionMatch", why));
    if query.send_initial_events.is_some() {
        let why = "sendInitialEvents is forbidden for list";
        return refuse(FieldError::forbidden("sendInitialEvents", why));
    }
    match query.version_match.as_str() {
        "" => Ok(()),
        _ if !query.continue_token.is_empty() => {
            forbid("resourceVersionMatch is forbidden when continue is provided")
        }
        _ if query.version.is_empty() => {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        "Exact" if query.version == "0" => forbid(
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        "Exact" | "NotOlderThan" => Ok(()),
        word => {
            let known = ["Exact", "NotOlderThan", ""];
            let field = "resourceVersionMatch";
            refuse(FieldError::not_supported(field, word.into(), known))
        }
    }
}

/// The resourceVersion of a request; `None` if it has none.
pub(super) fn wanted_version(text: &str) -> Result<Option<u64>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let problem = malformed(text);
        Status::bad_request(format!("invalid resource version: {problem}"))
    })
}

/// Kubernetes' message for a version that is not a number.
pub(super) fn malformed(version: &str) -> String {
    format!(
        "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: \
         invalid syntax"
    )
}

/// 504: a future version.
pub(super) fn too_large(requested: u64, newest: u64) -> Status {
    let message = format!("Too large resource version: {requested}, current: {newest}");
    let cause = Cause::new("ResourceVersionTooLarge", "", "Too large resource version");
    Status::new(504, Reason::Timeout, format!("Timeout: {message}")).with_details(
        Details {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..Details::default()
        },
    )
}

/// The continue token after `last`, in the format of Kubernetes' own tokens
/// (k8s.io/apiserver/pkg/storage/continue.go); version -1 is the current state.
pub(super) fn token(at: Option<u64>, last: &Key) -> String {
    let start = json!({
        "v": "meta.k8s.io/v1",
        "rv": at.map_or(json!(-1), Value::from),
        "start": [&*last.namespace, &*last.name],
    });
    URL_SAFE_NO_PAD.encode(start.to_string())
}

/// The error of Go's decoder: it names the first byte that is not a digit, or the digit that is alone in
/// the last group.
fn illegal_base64(text: &str) -> String {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let found = text.bytes().position(|it| !is_digit(it));
    let at = found.unwrap_or_else(|| text.len().saturating_sub(1));
    format!("illegal base64 data at input byte {at}")
}

fn read_token(text: &str) -> Result<(Option<u64>, Key), Status> {
    let refuse = |why: String| {
        Status::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = URL_SAFE_NO_PAD.decode(text);
    let bytes = bytes.map_err(|_| refuse(illegal_base64(text)))?;
    let start: Value = serde_json::from_slice(&bytes).map_err(|error| {
        refuse(syntax::error(&bytes).unwrap_or_else(|| error.to_string()))
    })?;
    let malformed = |what: &str| refuse(format!("{what} (version meta.k8s.io/v1)"));
    let at = match &start["rv"] {
        Value::Number(number) if number.as_i64() == Some(-1) => None,
        number => Some(
            number
                .as_u64()
                .ok_or_else(|| malformed("incorrect encoded start resourceVersion"))?,
        ),
    };
    let part = |index: usize| {
        let part = start["start"][index].as_str();
        part.ok_or_else(|| malformed("encoded start key empty"))
    };
    Ok((at, Key::new(part(0)?, part(1)?)))
}

/// 410: the snapshot is not retained any longer. A paginated list can continue with the
/// current state.
pub(super) fn too_old(page: &Page, oldest: u64) -> Status {
    let Some(after) = &page.after else {
        return Status::too_old(page.at.unwrap_or_default(), oldest);
    };
    let mut refused = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You \
         can start a new list without the continue parameter, or use the continue token in \
         this response to retrieve the remainder of the results. Continuing with the provided \
         token results in an inconsistent list - objects that were created, modified, or \
         deleted between the time the first chunk was returned and now may show up in the \
         list.",
    );
    refused.continue_token = Some(token(None, after).into());
    refused
}
