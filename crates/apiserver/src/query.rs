//! The parameters of a request.

use crate::status::{Cause, Details, Reason, Status};

/// The query of a request, each parameter in its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) field_manager: String,
    pub(crate) field_validation: FieldValidation,
    pub(crate) dry_run: bool,
    pub(crate) force: bool,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    /// Most items in one answer; `None` for all.
    pub(crate) limit: Option<usize>,
    pub(crate) go_on: String,
    pub(crate) version: String,
    pub(crate) version_match: String,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u32>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: String,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) verbose: bool,
    /// `None`, `Metadata` or `Object`, for tables; empty for the default.
    pub(crate) include_object: String,
}

/// What becomes of unknown and repeated fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Query {
    /// Reads the part of a URL behind the question mark.
    ///
    /// # Errors
    /// `BadRequest` for a number that is none, `Invalid` for an unknown word where one of
    /// a few is expected.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            query.take(&decode(key), decode(value))?;
        }
        Ok(query)
    }

    fn take(&mut self, key: &str, value: String) -> Result<(), Status> {
        match key {
            "fieldManager" => self.field_manager = value,
            "fieldValidation" => self.field_validation = field_validation(&value)?,
            "dryRun" => self.dry_run = dry_run(&value)?,
            "force" => self.force = truth(&value),
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "limit" => self.limit = number(key, &value)?.filter(|it| *it > 0),
            "continue" => self.go_on = value,
            "resourceVersion" => self.version = value,
            "resourceVersionMatch" => self.version_match = value,
            "watch" => self.watch = truth(&value),
            "allowWatchBookmarks" => self.bookmarks = truth(&value),
            "sendInitialEvents" => self.send_initial_events = Some(truth(&value)),
            "timeoutSeconds" => self.timeout_seconds = number(key, &value)?,
            "gracePeriodSeconds" => self.grace_period_seconds = number(key, &value)?,
            "propagationPolicy" => self.propagation_policy = value,
            "orphanDependents" => self.orphan_dependents = Some(truth(&value)),
            "verbose" => self.verbose = truth(&value),
            "includeObject" => self.include_object = value,
            _ => {}
        }
        Ok(())
    }
}

/// Kubernetes takes every text but these for true.
fn truth(text: &str) -> bool {
    !matches!(text, "0" | "false" | "False" | "FALSE" | "f" | "F")
}

fn number<T: std::str::FromStr>(key: &str, text: &str) -> Result<Option<T>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let refuse = |_| Status::bad_request(format!("{key} must be a number, not {text:?}"));
    text.parse().map(Some).map_err(refuse)
}

fn dry_run(text: &str) -> Result<bool, Status> {
    match text {
        "All" => Ok(true),
        _ => Err(unsupported("dryRun", text, "\"All\"")),
    }
}

fn field_validation(text: &str) -> Result<FieldValidation, Status> {
    match text {
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Ignore" => Ok(FieldValidation::Ignore),
        "Strict" => Ok(FieldValidation::Strict),
        _ => {
            let known = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
            Err(unsupported("fieldValidation", text, known))
        }
    }
}

/// 422: an option has none of the words it may have.
fn unsupported(field: &str, value: &str, known: &str) -> Status {
    let message = format!("Unsupported value: {value:?}: supported values: {known}");
    let text = format!("Options.meta.k8s.io \"\" is invalid: {field}: {message}");
    let cause = Cause::new("FieldValueNotSupported", field, message);
    Status::new(422, Reason::Invalid, text).with_details(Details {
        group: "meta.k8s.io".to_owned(),
        kind: "Options".to_owned(),
        causes: vec![cause],
        ..Details::default()
    })
}

/// Undoes the encoding of a query: `+` is a space, `%xx` a byte.
pub(crate) fn decode(text: &str) -> String {
    percent(&text.replace('+', " "))
}

/// Undoes percent encoding; what is not well-formed stays as it is.
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
    fn a_query_is_read_with_its_encodings_undone() {
        let query =
            Query::parse("labelSelector=a%20in+%28b%2Cc%29&limit=5&watch=1&x=y").unwrap();
        assert_eq!(query.label_selector, "a in (b,c)");
        assert_eq!(query.limit, Some(5));
        assert!(query.watch);
    }

    #[test]
    fn a_dry_run_of_an_unknown_kind_is_refused() {
        assert!(Query::parse("dryRun=All").unwrap().dry_run);
        assert_eq!(Query::parse("dryRun=Some").unwrap_err().code, 422);
    }

    #[test]
    fn malformed_percent_signs_stay_as_they_are() {
        assert_eq!(percent("50%"), "50%");
        assert_eq!(percent("%4"), "%4");
        assert_eq!(percent("%zz%41"), "%zzA");
    }
}
