//! Validation of names, labels and keys, with Kubernetes' messages.

pub(crate) use kubemu_gostd::unicode::to_lower;

/// The message of a pattern rule: its description, examples, the pattern.
fn breaks(rule: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<_> = examples.iter().map(|one| format!("'{one}', ")).collect();
    format!(
        "{rule} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

/// The message depends on the rule: that of names has the unit characters, those of label keys
/// and values have bytes; all of them count bytes.
fn longer_than(most: usize, unit: &str) -> String {
    format!("must be no more than {most} {unit}")
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str =
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    bytes.first().is_some_and(|byte| *byte != b'-')
        && bytes.last().is_some_and(|byte| *byte != b'-')
        && bytes.iter().all(inner)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_key_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    end(bytes.first())
        && end(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// The errors of `text` as a label of a DNS name (RFC 1123).
pub fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(longer_than(63, "characters"));
    }
    if !is_label(text) {
        wrong.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            breaks(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                 characters or '-', and must start and end with an alphanumeric character",
                &["my-name", "123-abc"],
                LABEL,
            )
        });
    }
    wrong
}

/// The errors of `text` as a DNS name (RFC 1123).
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(longer_than(253, "characters"));
    }
    if !is_subdomain(text) {
        wrong.push(breaks(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
             characters, '-' or '.', and must start and end with an alphanumeric character",
            &["example.com"],
            SUBDOMAIN,
        ));
    }
    wrong
}

/// The errors of `text` as a label that starts with a letter (RFC 1035).
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(longer_than(63, "characters"));
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        wrong.push(breaks(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            LABEL_1035,
        ));
    }
    wrong
}

/// The errors of `text` as a segment of a URL path.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// The same for a prefix of a name.
pub(crate) fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|part| text.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// The errors of `text` as the key of a label or an annotation.
pub fn label_key(text: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
                        start and end with an alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                breaks(RULE, EXAMPLES, KEY)
            )];
        }
        Some(("", name)) => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let of_prefix = dns_subdomain(prefix).into_iter();
            wrong.extend(of_prefix.map(|one| format!("prefix part {one}")));
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", longer_than(63, "bytes")));
    }
    if !is_key_part(name) {
        wrong.push(format!("name part {}", breaks(RULE, EXAMPLES, KEY)));
    }
    wrong
}

/// The errors of `text` as the value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(longer_than(63, "bytes"));
    }
    if !text.is_empty() && !is_key_part(text) {
        wrong.push(breaks(
            "a valid label must be an empty string or consist of alphanumeric characters, \
             '-', '_' or '.', and must start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            VALUE,
        ));
    }
    wrong
}

/// The errors of `text` as a name in a CEL expression.
pub(crate) fn c_identifier(text: &str) -> Vec<String> {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Vec::new();
    }
    vec![breaks(
        "a valid C identifier must start with alphabetic character or '_', followed by a \
         string of alphanumeric characters or '_'",
        &["my_name", "MY_NAME", "MyName"],
        "[A-Za-z_][A-Za-z0-9_]*",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_name_has_no_errors() {
        assert!(dns_label("a-1").is_empty());
        assert!(dns_subdomain("a-1.b").is_empty());
        assert!(dns_1035_label("v1alpha1").is_empty());
        assert!(label_key("example.com/My_Name.1").is_empty());
        assert!(label_value("").is_empty());
        assert!(path_segment("system:node").is_empty());
    }

    #[test]
    fn a_label_with_dots_is_rejected_with_a_message_about_dots() {
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
    }

    #[test]
    fn an_invalid_name_is_rejected_with_the_rule_an_example_and_the_pattern() {
        insta::assert_snapshot!(
            dns_subdomain("Bad_Name").join("\n"),
            @r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        );
        insta::assert_snapshot!(
            label_key("a/b/c").join("\n"),
            @"a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        );
    }

    #[test]
    fn both_parts_of_a_key_are_validated() {
        let wrong = label_key("Bad_/");
        assert_eq!(wrong.len(), 3);
        assert!(wrong[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
        assert_eq!(wrong[1], "name part must be non-empty");
        assert!(wrong[2].starts_with("name part must consist of"));
    }

    #[test]
    fn the_length_of_a_label_value_is_counted_in_bytes() {
        assert!(label_value(&"a".repeat(63)).is_empty());
        assert_eq!(
            label_value(&"a".repeat(64)),
            ["must be no more than 63 bytes"]
        );
    }
}
