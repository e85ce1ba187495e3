//! Named formats, such as DNS labels: from Kubernetes 1.31 on.

use std::sync::LazyLock;

use regex::Regex;

use super::{Row, Run, global, member, no_such_overload};
use crate::time::Timestamp;
use crate::value::{Format, LibraryValue, LibraryValueKind};
use crate::{RunError, Value};
use kubemu_gostd::time::DATE;

const FORMAT: &str = "-> kubernetes.NamedFormat";

macro_rules! formats {
    ($(($name:literal, $pattern_size:literal, $check:expr)),* $(,)?) => {
        static FORMATS: &[Format] = &[$(
            Format { name: $name, pattern_size: $pattern_size, check: $check },
        )*];

        pub(super) const ROWS: &[Row] = &[
            global(
                "format.named",
                "format-named",
                "string -> optional(kubernetes.NamedFormat)",
                named,
            ),
            member(
                "validate",
                "format-validate",
                "kubernetes.NamedFormat, string -> optional(list(string))",
                validate,
            ),
            $(global(
                concat!("format.", $name),
                concat!("format.", $name),
                FORMAT,
                const { let run: Run = |_| format_value($name); run },
            ),)*
        ];
    };
}

formats![
    ("dns1123Label", 30, |text| label(text)),
    ("dns1123Subdomain", 60, |text| subdomain(text)),
    ("dns1035Label", 30, |text| label_1035(text)),
    ("qualifiedName", 60, |text| qualified_name(text)),
    ("dns1123LabelPrefix", 30, |text| label(&mask_trailing_dash(
        text
    ))),
    ("dns1123SubdomainPrefix", 60, |text| subdomain(
        &mask_trailing_dash(text)
    )),
    ("dns1035LabelPrefix", 30, |text| label_1035(
        &mask_trailing_dash(text)
    )),
    ("labelValue", 40, |text| label_value(text)),
    ("uri", 1103, |text| kubemu_gostd::url::check(text)
        .err()
        .into_iter()
        .collect()),
    ("uuid", 72, |text| unless(
        UUID.is_match(text),
        "does not match the UUID format"
    )),
    ("byte", 84, |text| unless(is_base64(text), "invalid base64")),
    ("date", 72, |text| unless(
        DATE.read(text).is_ok(),
        "invalid date"
    )),
    ("datetime", 72, |text| unless(
        is_date_time(text),
        "invalid datetime"
    )),
];

/// Whether text looks like padded base64; empty text does not.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(is_digit)
}

fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

fn format_value<'v>(name: &str) -> Result<Value<'v>, RunError> {
    match find(name) {
        Some(format) => Ok(Value::Library(LibraryValue(LibraryValueKind::Format(
            format,
        )))),
        None => no_such_overload(),
    }
}

fn named<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(name)] if find(name).is_some() => {
            format_value(name).map(Value::some)
        }
        [Value::String(_)] => Ok(Value::Optional(None)),
        _ => no_such_overload(),
    }
}

fn validate<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [
        Value::Library(LibraryValue(LibraryValueKind::Format(format))),
        Value::String(text),
    ] = args
    else {
        return no_such_overload();
    };
    let wrong = (format.check)(text);
    if wrong.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(
        wrong.into_iter().map(Value::text).collect(),
    )))
}

fn unless(right: bool, why: &str) -> Vec<String> {
    if right {
        Vec::new()
    } else {
        vec![why.to_owned()]
    }
}

// The rules and texts of k8s.io/apimachinery/pkg/api/validate/content follow.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str =
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character";

/// A pattern that must match the whole text. The patterns here are constants that compile.
fn whole(pattern: &str) -> Regex {
    match Regex::new(&format!("^(?:{pattern})$")) {
        Ok(regex) => regex,
        Err(why) => unreachable!("{pattern}: {why}"),
    }
}

static LABEL_PATTERN: LazyLock<Regex> = LazyLock::new(|| whole(LABEL));
static SUBDOMAIN_PATTERN: LazyLock<Regex> = LazyLock::new(|| whole(SUBDOMAIN));
static LABEL_1035_PATTERN: LazyLock<Regex> = LazyLock::new(|| whole(LABEL_1035));
static KEY_PATTERN: LazyLock<Regex> = LazyLock::new(|| whole(KEY));
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    whole("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
});
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    whole("([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
});

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} characters"))
}

/// The message for text that a pattern does not match.
fn mismatch(what: &str, pattern: &str, examples: &[&str]) -> String {
    let quoted: Vec<String> = examples
        .iter()
        .map(|example| format!("'{example}', "))
        .collect();
    let examples = quoted.join(" or ");
    format!("{what} (e.g. {examples}regex used for validation is '{pattern}')")
}

fn label(text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = too_long(text, 63).into_iter().collect();
    if !LABEL_PATTERN.is_match(text) {
        wrong.push(if SUBDOMAIN_PATTERN.is_match(text) {
            "must not contain dots".to_owned()
        } else {
            let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                 characters or '-', and must start and end with an alphanumeric character";
            mismatch(what, LABEL, &["my-name", "123-abc"])
        });
    }
    wrong
}

fn subdomain(text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = too_long(text, 253).into_iter().collect();
    if !SUBDOMAIN_PATTERN.is_match(text) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
             characters, '-' or '.', and must start and end with an alphanumeric character";
        wrong.push(mismatch(what, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

fn label_1035(text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = too_long(text, 63).into_iter().collect();
    if !LABEL_1035_PATTERN.is_match(text) {
        let what = "a DNS-1035 label must consist of lower case alphanumeric characters or \
             '-', start with an alphabetic character, and end with an alphanumeric character";
        wrong.push(mismatch(what, LABEL_1035, &["my-name", "abc-123"]));
    }
    wrong
}

fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let examples = ["MyName", "my.name", "123-abc"];
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            let rule = mismatch(KEY_TEXT, KEY, &examples);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            wrong.extend(
                subdomain(prefix)
                    .iter()
                    .map(|why| format!("prefix part {why}")),
            );
        }
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, 63).map(|why| format!("name part {why}")));
    if !KEY_PATTERN.is_match(name) {
        wrong.push(format!("name part {}", mismatch(KEY_TEXT, KEY, &examples)));
    }
    wrong
}

fn label_value(text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = too_long(text, 63).into_iter().collect();
    if !text.is_empty() && !KEY_PATTERN.is_match(text) {
        let what = "a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character";
        wrong.push(mismatch(
            what,
            &format!("({KEY})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// The name to validate for a prefix of names, which may end with a dash. As in Kubernetes, the
/// byte before the dash is not validated either; what it leaves of a character is invalid.
///
/// ```
/// use kubemu_cel::mask_trailing_dash;
/// assert_eq!(mask_trailing_dash("web-"), "wea");
/// assert_eq!(mask_trailing_dash("-"), "-");
/// assert_eq!(mask_trailing_dash("é-"), "?a");
/// ```
pub fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.len().checked_sub(2) {
        Some(end) if prefix.ends_with('-') => {
            let whole = (0..=end).rev().find_map(|at| prefix.get(..at));
            let whole = whole.unwrap_or_default();
            format!("{whole}{}a", "?".repeat(end - whole.len()))
        }
        _ => prefix.to_owned(),
    }
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    match text.split_once('t') {
        Some((date, clock)) => {
            Timestamp::parse_date(date).is_ok() && CLOCK.is_match(clock)
        }
        None => false,
    }
}
