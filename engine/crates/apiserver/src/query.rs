//! The query parameters of a request.

use std::time::Duration;

use kubemu_gostd::time;

use crate::status::Status;

/// The longest time that a request may take, for all its webhooks together.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_mins(1);

/// The parsed query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) field_manager: String,
    pub(crate) field_validation: FieldValidation,
    /// As sent.
    pub(crate) field_validation_value: String,
    pub(crate) dry_run: bool,
    /// As sent.
    pub(crate) dry_run_values: Vec<String>,
    pub(crate) force: bool,
    pub(crate) has_force: bool,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    /// Maximum number of items in one response; `None` for all.
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: String,
    pub(crate) version: String,
    pub(crate) version_match: String,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u32>,
    /// `timeout` as sent; see [`timeout`](Self::timeout).
    pub(crate) timeout_value: String,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: String,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) verbose: bool,
    /// `None`, `Metadata` or `Object`, for tables; empty for the default.
    pub(crate) include_object: String,
    /// All other parameters in order, such as the options of connections.
    pub(crate) others: Vec<(String, String)>,
    /// The first number parameter that is not a number.
    pub(crate) malformed: Option<String>,
}

/// How unknown and duplicate fields are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Query {
    /// Parses the query of a URL. [`check`](Self::check) rejects malformed numbers.
    pub(crate) fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            query.take(&decode(key), decode(value));
        }
        query
    }

    fn take(&mut self, key: &str, value: String) {
        match key {
            "fieldManager" => self.field_manager = value,
            "fieldValidation" => {
                self.field_validation = field_validation(&value);
                self.field_validation_value = value;
            }
            "dryRun" => {
                self.dry_run |= value == "All";
                self.dry_run_values.push(value);
            }
            "force" => {
                self.force = parse_bool(&value);
                self.has_force = true;
            }
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "limit" => {
                let limit = self.number(&value).filter(|it| *it > 0);
                self.limit = limit.and_then(|it| usize::try_from(it).ok());
            }
            "continue" => self.continue_token = value,
            "resourceVersion" => self.version = value,
            "resourceVersionMatch" => self.version_match = value,
            "watch" => self.watch = parse_bool(&value),
            "allowWatchBookmarks" => self.bookmarks = parse_bool(&value),
            "sendInitialEvents" => self.send_initial_events = Some(parse_bool(&value)),
            "timeoutSeconds" => {
                let seconds = self.number(&value);
                self.timeout_seconds = seconds.and_then(|it| u32::try_from(it).ok());
            }
            "timeout" => self.timeout_value = value,
            "gracePeriodSeconds" => self.grace_period_seconds = self.number(&value),
            "propagationPolicy" => self.propagation_policy = value,
            "orphanDependents" => self.orphan_dependents = Some(parse_bool(&value)),
            "verbose" => self.verbose = parse_bool(&value),
            "includeObject" => self.include_object = value,
            _ => self.others.push((key.to_owned(), value)),
        }
    }

    fn number(&mut self, text: &str) -> Option<i64> {
        let number = text.parse().ok();
        if number.is_none() && !text.is_empty() && self.malformed.is_none() {
            self.malformed = Some(text.to_owned());
        }
        number
    }

    /// The time that the request may take. Without a positive `timeout`, or with a longer one, it
    /// is the maximum (`WithRequestDeadline` in k8s.io/apiserver).
    ///
    /// # Errors
    /// 400 for a text that is not a duration.
    pub(crate) fn timeout(&self) -> Result<Duration, Status> {
        if self.timeout_value.is_empty() {
            return Ok(MAX_TIMEOUT);
        }
        let text = &self.timeout_value;
        let requested = time::Duration::parse(text).ok_or_else(|| {
            let (start, why) =
                ("invalid timeout specified in the request URL", flaw(text));
            Status::bad_request(format!("{start} - time: {why} duration {text:?}"))
        })?;
        let requested = u64::try_from(requested.nanos()).map(Duration::from_nanos);
        let requested = requested.ok().filter(|it| !it.is_zero());
        Ok(requested.map_or(MAX_TIMEOUT, |it| it.min(MAX_TIMEOUT)))
    }

    /// Rejects malformed numbers. The check runs after authorization.
    ///
    /// # Errors
    /// 400 for a text that is not a number.
    pub(crate) fn check(&self) -> Result<(), Status> {
        let Some(text) = &self.malformed else {
            return Ok(());
        };
        let message = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
        Err(Status::bad_request(message))
    }
}

/// What Go's `time.ParseDuration` says of a text that is not a duration, before the text itself.
fn flaw(text: &str) -> String {
    let is_number = |it: char| it.is_ascii_digit() || it == '.';
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    while rest.starts_with(is_number) {
        let after = rest.trim_start_matches(|it: char| it.is_ascii_digit());
        let after = after.strip_prefix('.').map_or(after, |it| {
            it.trim_start_matches(|it: char| it.is_ascii_digit())
        });
        let number = rest.strip_suffix(after).unwrap_or_default();
        if number == "." {
            break;
        }
        if after.is_empty() || after.starts_with('.') {
            return "missing unit in".to_owned();
        }
        let end = after.find(is_number).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        if !matches!(
            unit,
            "ns" | "us" | "\u{b5}s" | "\u{3bc}s" | "ms" | "s" | "m" | "h"
        ) {
            return format!("unknown unit {unit:?} in");
        }
        rest = next;
    }
    "invalid".to_owned()
}

/// The boolean value of a parameter: Kubernetes treats every text except these as true.
pub(crate) fn parse_bool(text: &str) -> bool {
    !matches!(text, "0" | "false" | "False" | "FALSE" | "f" | "F")
}

/// The field validation of a parameter; an unknown value is rejected later, with the kind of
/// the options.
fn field_validation(word: &str) -> FieldValidation {
    match word {
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        _ => FieldValidation::Warn,
    }
}

/// Decodes a query component: `+` is a space, `%xx` a byte.
pub(crate) fn decode(text: &str) -> String {
    percent(&text.replace('+', " "))
}

/// Percent-decodes a text; malformed sequences stay as they are.
pub(crate) fn percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%'
            && let [high, low, after @ ..] = tail
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            bytes.push(high * 16 + low);
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|it| u8::try_from(it).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = Query::parse("labelSelector=a%20in+%28b%2Cc%29&limit=5&watch=1&x=y");
        assert_eq!(query.label_selector, "a in (b,c)");
        assert_eq!(query.limit, Some(5));
        assert!(query.watch);
    }

    #[test]
    fn a_malformed_number_is_rejected() {
        assert_eq!(Query::parse("limit=-1").limit, None);
        assert_eq!(Query::parse("limit=many").check().unwrap_err().code, 400);
    }

    #[test]
    fn malformed_percent_signs_stay_as_they_are() {
        assert_eq!(percent("50%"), "50%");
        assert_eq!(percent("%4"), "%4");
        assert_eq!(percent("%zz%41"), "%zzA");
    }
}
