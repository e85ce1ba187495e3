//! URLs, read as Go's `net/url` reads them.

use std::fmt;
use std::sync::Arc;

use super::foreign::{Foreign, LibraryValue};
use super::{Row, Run, global, member, no_such_overload};
use crate::value::{Entries, Map};
use crate::{RunError, Value};

/// As Go writes a URL.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let user = self.user.as_deref();
            if user.is_some() || !self.host.is_empty() {
                f.write_str("//")?;
            }
            if let Some(user) = user {
                write!(f, "{user}@")?;
            }
            write!(f, "{}{}", self.host, self.path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        match &self.fragment {
            Some(fragment) => write!(f, "#{fragment}"),
            None => Ok(()),
        }
    }
}

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    /// What follows the scheme where that is not a slash.
    opaque: String,
    user: Option<String>,
    host: String,
    /// Escaped.
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

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
const HOST: Run = |args| part(args, |url| url.host.clone());
const HOSTNAME: Run = |args| part(args, |url| hostname(&url.host).to_owned());
const PORT: Run = |args| part(args, |url| port(&url.host).to_owned());
const PATH: Run = |args| part(args, |url| url.path.clone());

/// Whether text is an absolute URL or an absolute path; if not, why, in Go's words.
pub(super) fn check(text: &str) -> Result<(), String> {
    parse(text, true).map(drop)
}

/// Parses; `request` asks for an absolute URL or path and takes a fragment for path.
fn parse(text: &str, request: bool) -> Result<Url, String> {
    let failed = |why: &str| format!("parse {text:?}: {why}");
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err(failed("net/url: invalid control character in URL"));
    }
    if text.is_empty() && request {
        return Err(failed("empty url"));
    }
    if text == "*" {
        return Ok(Url {
            path: text.to_owned(),
            ..Url::default()
        });
    }
    let (rest, fragment) = match text.split_once('#') {
        Some((rest, fragment)) if !request => (rest, Some(fragment.to_owned())),
        _ => (text, None),
    };
    let (scheme, rest) = scheme(rest).map_err(failed)?;
    let scheme = scheme.to_ascii_lowercase();
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query.to_owned())),
        None => (rest, None),
    };
    let mut url = Url {
        scheme,
        query,
        fragment,
        ..Url::default()
    };
    let mut rest = rest;
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if request {
            return Err(failed("invalid URI for request"));
        }
        if rest
            .split('/')
            .next()
            .is_some_and(|first| first.contains(':'))
        {
            return Err(failed("first path segment in URL cannot contain colon"));
        }
    }
    let may_have_host = !url.scheme.is_empty() || !request && !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//")
        && may_have_host
    {
        rest = authority(after, &mut url).map_err(|why| failed(&why))?;
    }
    url.path = escaped_path(rest).map_err(|why| failed(&why))?;
    Ok(url)
}

/// Takes user and host off the front and returns what follows them.
fn authority<'t>(text: &'t str, url: &mut Url) -> Result<&'t str, String> {
    let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user.to_owned()), host),
        None => (None, authority),
    };
    url.host = valid_host(host)?;
    url.user = user;
    Ok(path)
}

fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, char) in text.char_indices() {
        match char {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn valid_host(host: &str) -> Result<String, String> {
    let colon_port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let digits = colon_port.strip_prefix(':').unwrap_or_default();
    let is_port = colon_port.is_empty()
        || colon_port.starts_with(':')
            && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_port {
        return Err(format!("invalid port {colon_port:?} after host"));
    }
    let allowed = |char: char| {
        !char.is_ascii()
            || char.is_ascii_alphanumeric()
            || "-_.~!$&'()*+,;=:[]<>\"%".contains(char)
    };
    match host.chars().find(|char| !allowed(*char)) {
        Some(char) => Err(format!(
            "invalid character {:?} in host name",
            char.to_string()
        )),
        None => Ok(host.to_owned()),
    }
}

/// The path as it is, if every character of it may stand in one, else escaped.
fn escaped_path(path: &str) -> Result<String, String> {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*[]%".contains(&byte)
    };
    let decoded = decode(path, false)?;
    if path.bytes().all(plain) {
        return Ok(path.to_owned());
    }
    let kept =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    let mut escaped = String::with_capacity(path.len());
    for byte in decoded {
        if kept(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.extend(hex_digits(byte));
        }
    }
    Ok(escaped)
}

/// Two capital digits.
fn hex_digits(byte: u8) -> impl Iterator<Item = char> {
    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    let digits = [digit(byte >> 4), digit(byte & 15)];
    digits
        .into_iter()
        .flatten()
        .map(|digit| digit.to_ascii_uppercase())
}

/// The bytes that percent signs stand for; in queries a plus is a space.
fn decode(text: &str, query: bool) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                let shown = String::from_utf8_lossy(&digits).into_owned();
                let value = u8::from_str_radix(&shown, 16);
                let whole = digits.len() == 2 && !shown.starts_with(['+', '-']);
                match value {
                    Ok(value) if whole => decoded.push(value),
                    _ => {
                        return Err(format!(
                            "invalid URL escape {:?}",
                            format!("%{shown}")
                        ));
                    }
                }
            }
            b'+' if query => decoded.push(b' '),
            other => decoded.push(other),
        }
    }
    Ok(decoded)
}

fn hostname(host: &str) -> &str {
    match host.split_once(']') {
        Some((inner, _)) => inner.strip_prefix('[').unwrap_or(inner),
        None => host.split(':').next().unwrap_or(host),
    }
}

fn port(host: &str) -> &str {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.split_once(':').map_or("", |(_, port)| port)
}

fn url<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::String(text)] = args else {
        return no_such_overload();
    };
    let parsed = parse(text, true).and_then(|_| parse(text, false));
    let parsed = parsed.map_err(|why| {
        RunError::text(format!(
            "URL parse error during conversion from string: {why}"
        ))
    })?;
    Ok(Value::Library(LibraryValue(Foreign::Url(Arc::new(parsed)))))
}

fn is_url<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(check(text).is_ok())),
        _ => no_such_overload(),
    }
}

fn receiver<'a>(args: &'a [Value<'_>]) -> Result<&'a Url, RunError> {
    match args {
        [Value::Library(LibraryValue(Foreign::Url(url)))] => Ok(url),
        _ => no_such_overload(),
    }
}

fn part<'v>(
    args: &[Value<'v>],
    part: impl Fn(&Url) -> String,
) -> Result<Value<'v>, RunError> {
    receiver(args).map(|url| Value::text(part(url)))
}

/// Every key with the list of its values; what cannot be decoded is left out.
fn query<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let query = receiver(args)?.query.as_deref().unwrap_or_default();
    let mut keys: Vec<(String, Vec<Value<'v>>)> = Vec::new();
    let text = |part: &str| {
        Some(String::from_utf8_lossy(&decode(part, true).ok()?).into_owned())
    };
    for pair in query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
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
