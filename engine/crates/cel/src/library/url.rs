//! The functions of URLs.

use std::sync::Arc;

use super::{Row, Run, global, member, no_such_overload};
use crate::value::{Entries, Map};
use crate::value::{LibraryValue, LibraryValueKind};
use crate::{RunError, Value};
use kubemu_gostd::url::{Mode, Url, check, unescape};

/// The maximum number of query parameters that Go parses.
const MAX_PARAMETERS: usize = 10_000;

pub(super) const ROWS: &[Row] = &[
    global("url", "string_to_url", "string -> kubernetes.URL", url),
    global("isURL", "is_url_string", "string -> bool", is_url),
    member(
        "getScheme",
        "url_get_scheme",
        "kubernetes.URL -> string",
        SCHEME,
    ),
    member("getHost", "url_get_host", "kubernetes.URL -> string", HOST),
    member(
        "getHostname",
        "url_get_hostname",
        "kubernetes.URL -> string",
        HOSTNAME,
    ),
    member("getPort", "url_get_port", "kubernetes.URL -> string", PORT),
    member(
        "getEscapedPath",
        "url_get_escaped_path",
        "kubernetes.URL -> string",
        PATH,
    ),
    member(
        "getQuery",
        "url_get_query",
        "kubernetes.URL -> map(string, list(string))",
        query,
    ),
];

const SCHEME: Run = |args| part(args, |url| url.scheme.clone());
const HOST: Run = |args| part(args, Url::host);
const HOSTNAME: Run = |args| part(args, Url::hostname);
const PORT: Run = |args| part(args, Url::port);
const PATH: Run = |args| part(args, Url::escaped_path);

fn url<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::String(text)] = args else {
        return no_such_overload();
    };
    let parsed = check(text).and_then(|()| Url::parse(text));
    let parsed = parsed.map_err(|why| {
        RunError::text(format!(
            "URL parse error during conversion from string: {why}"
        ))
    })?;
    Ok(Value::Library(LibraryValue(LibraryValueKind::Url(
        Arc::new(parsed),
    ))))
}

fn is_url<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(check(text).is_ok())),
        _ => no_such_overload(),
    }
}

fn receiver<'a>(args: &'a [Value<'_>]) -> Result<&'a Url, RunError> {
    match args {
        [Value::Library(LibraryValue(LibraryValueKind::Url(url)))] => Ok(url),
        _ => no_such_overload(),
    }
}

fn part<'v>(
    args: &[Value<'v>],
    part: impl Fn(&Url) -> String,
) -> Result<Value<'v>, RunError> {
    receiver(args).map(|url| Value::text(part(url)))
}

/// Every key with the list of its values; parameters that cannot be decoded are skipped.
fn query<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let query = receiver(args)?.query.as_str();
    let mut keys: Vec<(String, Vec<Value<'v>>)> = Vec::new();
    let text = |part: &str| {
        let decoded = unescape(part, Mode::QueryComponent).ok()?;
        Some(String::from_utf8_lossy(&decoded).into_owned())
    };
    let pairs = query.split('&').take(MAX_PARAMETERS + 1);
    // Go returns no parameters if there are too many.
    let is_read = pairs.count() <= MAX_PARAMETERS;
    for pair in query
        .split('&')
        .filter(|pair| is_read && !pair.is_empty() && !pair.contains(';'))
    {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (text(key), text(value)) else {
            continue;
        };
        let value = Value::text(value);
        match keys.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => keys.push((key, vec![value])),
        }
    }
    let mut entries = Entries::default();
    for (key, values) in keys {
        entries.insert(Value::text(key), Value::list(values))?;
    }
    Ok(Value::Map(Map::Owned(entries.into())))
}
