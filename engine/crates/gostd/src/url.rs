//! URLs, after `url.Parse` and `url.ParseRequestURI` (src/net/url/url.go).

mod authority;
mod escape;

use std::fmt;

use crate::strconv::Quoted;
use authority::Authority;
pub use escape::{Mode, unescape};
use escape::{escape, is_plain, text};

/// Whether Go's `url.ParseRequestURI` accepts `uri`: an absolute URL or an absolute path.
/// Cannot fail.
///
/// ```
/// use kubemu_gostd::url::is_request_uri;
/// assert!(is_request_uri("https://example.com/a") && is_request_uri("/a"));
/// assert!(!is_request_uri("example.com") && !is_request_uri("https://a%zz/"));
/// ```
pub fn is_request_uri(uri: &str) -> bool {
    check(uri).is_ok()
}

/// Checks that `uri` is an absolute URL or an absolute path.
///
/// # Errors
/// Go's message.
pub fn check(uri: &str) -> Result<(), String> {
    Url::parse_request(uri).map(drop)
}

/// The parts of a URL.
#[derive(Clone, Debug, Default)]
pub struct Url {
    /// In lower case; empty if there is none.
    pub scheme: String,
    /// The part after the scheme if it does not start with a slash.
    opaque: String,
    authority: Authority,
    /// Whether the path follows the scheme immediately, without `//` in between.
    omit_host: bool,
    path: Escaped,
    /// The part after the first `?`, as written.
    pub query: String,
    /// Whether there is a `?` with nothing after it.
    force_query: bool,
    fragment: Escaped,
}

/// A part that may contain escapes.
#[derive(Clone, Debug, Default)]
struct Escaped {
    /// As written.
    raw: String,
    decoded: Vec<u8>,
}

impl Escaped {
    fn new(raw: &str, mode: Mode) -> Result<Self, String> {
        Ok(Self {
            raw: raw.to_owned(),
            decoded: unescape(raw, mode)?,
        })
    }

    /// The text as written if all its characters are allowed in this part, otherwise escaped
    /// again.
    fn to_text(&self, mode: Mode) -> String {
        if is_plain(&self.raw, mode) {
            self.raw.clone()
        } else {
            escape(&self.decoded, mode)
        }
    }
}

impl Url {
    /// Same as Go's `url.Parse`.
    ///
    /// # Errors
    /// Go's message.
    pub fn parse(url: &str) -> Result<Self, String> {
        let failed = |url: &str, why: String| format!("parse {}: {why}", Quoted(url));
        let (start, fragment) = url.split_once('#').unwrap_or((url, ""));
        let mut parsed = Self::read(start, false).map_err(|why| failed(start, why))?;
        let fragment = Escaped::new(fragment, Mode::Fragment);
        parsed.fragment = fragment.map_err(|why| failed(url, why))?;
        Ok(parsed)
    }

    /// Same as Go's `url.ParseRequestURI`, which treats a fragment as part of the path.
    ///
    /// # Errors
    /// Go's message.
    pub fn parse_request(url: &str) -> Result<Self, String> {
        Self::read(url, true).map_err(|why| format!("parse {}: {why}", Quoted(url)))
    }

    fn read(url: &str, via_request: bool) -> Result<Self, String> {
        if url.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if url.is_empty() && via_request {
            return Err("empty url".to_owned());
        }
        let mut parsed = Self::default();
        if url == "*" {
            parsed.path = Escaped::new(url, Mode::Path)?;
            return Ok(parsed);
        }
        let (scheme, rest) = scheme(url)?;
        parsed.scheme = scheme.to_ascii_lowercase();
        let has_scheme = !scheme.is_empty();
        let rest = match rest.split_once('?') {
            Some((rest, query)) => {
                parsed.force_query = query.is_empty();
                query.clone_into(&mut parsed.query);
                rest
            }
            None => rest,
        };
        if !rest.starts_with('/') {
            if has_scheme {
                rest.clone_into(&mut parsed.opaque);
                return Ok(parsed);
            }
            if via_request {
                return Err("invalid URI for request".to_owned());
            }
            if first_segment(rest).contains(':') {
                let why = "first path segment in URL cannot contain colon";
                return Err(why.to_owned());
            }
        }
        let may_have_host = has_scheme || !via_request && !rest.starts_with("///");
        let path = match rest.strip_prefix("//") {
            Some(after) if may_have_host => {
                let end = after.find('/').unwrap_or(after.len());
                let (authority, path) = after.split_at(end);
                parsed.authority = Authority::parse(&parsed.scheme, authority)?;
                path
            }
            _ => {
                parsed.omit_host = has_scheme && rest.starts_with('/');
                rest
            }
        };
        parsed.path = Escaped::new(path, Mode::Path)?;
        Ok(parsed)
    }

    /// Host and port, unescaped.
    pub fn host(&self) -> String {
        text(&self.authority.host)
    }

    /// The host without its port, and without brackets if it is an IPv6 address.
    pub fn hostname(&self) -> String {
        self.authority.hostname()
    }

    /// The port; empty if there is none.
    pub fn port(&self) -> String {
        self.authority.port()
    }

    /// The path as escaped in a URL.
    pub fn escaped_path(&self) -> String {
        self.path.to_text(Mode::Path)
    }
}

fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// The scheme, empty if there is none, and the rest.
fn scheme(url: &str) -> Result<(&str, &str), String> {
    for (at, byte) in url.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => {
                let (scheme, rest) = url.split_at(at);
                return Ok((scheme, rest.strip_prefix(':').unwrap_or(rest)));
            }
            _ => break,
        }
    }
    Ok(("", url))
}

/// Formats the URL as Go does.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.write_hierarchy(f)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.decoded.is_empty() {
            write!(f, "#{}", self.fragment.to_text(Mode::Fragment))?;
        }
        Ok(())
    }
}

impl Url {
    fn write_hierarchy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_authority = !self.authority.is_empty();
        let is_started = !self.scheme.is_empty() || has_authority;
        let path = self.escaped_path();
        if is_started && (has_authority || !self.omit_host && !path.is_empty()) {
            f.write_str("//")?;
        }
        write!(f, "{}", self.authority)?;
        if !path.is_empty() && !path.starts_with('/') && !self.authority.host.is_empty() {
            f.write_str("/")?;
        }
        if !is_started && first_segment(&path).contains(':') {
            f.write_str("./")?;
        }
        f.write_str(&path)
    }
}

/// Two URLs are equal if their texts are equal, as in Kubernetes.
impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Url {}
