//! Texts that are nearly of a form: an address with a stray percent sign, a number with
//! two signs. Most disagreements between two readers are about such texts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::random::Random;

/// What a text is like, with texts that are of that form or known to be near it.
type Form = (&'static str, &'static [&'static str]);

const FORMS: &[Form] = &[
    (
        "url",
        &[
            "https://example.com:80/a/b?x=1&y=2#f",
            "http://user:p%20w@a.example/%2f",
            "https://[::1]:443/",
            "http://[fe80::1%25eth0]/",
            "http://192.168.0.1:8080",
            "/a/b",
            "mongodb://u:p@host1:1,host2:2/db",
            "mailto:a@example.com",
            "scheme+a.b-c://x",
            "http://a.example?k",
            "*",
            "//host/path",
            "file:///etc/x",
        ],
    ),
    (
        "host",
        &[
            "a.example.com",
            "xn--bcher-kva.example",
            "a-b.c",
            "1.2",
            "localhost",
            "a.b.",
            "00-01",
            "1--a--b",
            "_dns.a",
        ],
    ),
    (
        "ip",
        &[
            "10.0.0.1",
            "::1",
            "fe80::1%eth0",
            "::ffff:1.2.3.4",
            "2001:db8::8a2e:370:7334",
            "0.0.0.0",
            "1:2:3:4:5:6:7:8",
            "255.255.255.255",
        ],
    ),
    (
        "cidr",
        &[
            "10.0.0.0/8",
            "::/0",
            "2001:db8::/32",
            "10.1.2.3/16",
            "::ffff:1.2.3.0/120",
        ],
    ),
    (
        "mac",
        &["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab"],
    ),
    (
        "quantity",
        &[
            "1",
            "100Mi",
            "1.5G",
            "-2k",
            "50m",
            "1e3",
            "12E",
            ".5",
            "5.",
            "1E-3",
            "+7u",
            "9223372036854775807",
            "0.000000001n",
            "99999999999999999999Ki",
        ],
    ),
    (
        "duration",
        &[
            "1h",
            "5m30s",
            "1.5s",
            "-30s",
            "100ms",
            "2us",
            "3µs",
            "4μs",
            "7ns",
            "0",
            "+1h",
            "2 weeks",
            "1d",
            "9223372036854775807ns",
            "2562047h47m16.854775807s",
            ".5h",
        ],
    ),
    (
        "time",
        &[
            "2024-02-29T12:00:00Z",
            "2023-12-31T23:59:59.5+02:00",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "2016-12-31t23:59:60z",
            "2024-01-01T24:00:00Z",
            "2006-01-02T15:04:05Z07:00",
            "2024-01-01 00:00:00",
        ],
    ),
    (
        "date",
        &["2024-02-29", "1970-01-01", "0001-01-01", "2023-02-30"],
    ),
    (
        "number",
        &[
            "0",
            "-1",
            "+7",
            "007",
            "1.5",
            "1e3",
            "-0.0",
            "0x1F",
            "1_000",
            "NaN",
            "Inf",
            "infinity",
            "true",
            "TRUE",
            "T",
            "False",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "1e400",
            "5e-324",
            "0x1p-2",
        ],
    ),
    (
        "semver",
        &[
            "1.2.3",
            "1.0.0-alpha.1",
            "v1.2",
            "2.0.0+b1",
            "1.0.0-0",
            "01.2.3",
            "1",
        ],
    ),
    (
        "name",
        &[
            "a",
            "a-b.c",
            "example.com/a_b",
            "kubernetes.io/metadata.name",
            "A.b_c-D",
            "0-9",
            "widgets.example.com",
        ],
    ),
    (
        "uuid",
        &[
            "123e4567-e89b-12d3-a456-426614174000",
            "f47ac10b58cc4372a5670e02b2c3d479",
            "00000000-0000-3000-8000-000000000000",
        ],
    ),
    (
        "email",
        &[
            "a@example.com",
            "Alice <a@e.com>",
            "\"a b\"@e.com",
            "bob@[192.168.0.1]",
            "a.b+c@d",
        ],
    ),
    ("byte", &["YWJj", "AA==", "w6k=", "_-8=", ""]),
    (
        "serial",
        &[
            "978-3-16-148410-0",
            "3-16-148410-0",
            "4111 1111 1111 1111",
            "123-45-6789",
            "507f1f77bcf86cd799439011",
            "#fff",
            "#a1B2c3",
            "rgb(1,2,3)",
        ],
    ),
    (
        "pattern",
        &[
            "^[a-z]+$",
            "a|b",
            "(a|b)*c",
            "[[:alpha:]]{1,3}",
            "\\d{2,3}\\.?",
            "\\p{Greek}+",
            "\\pL",
            "\\P{Lu}",
            "\\x{10FFFF}",
            "(?i)a(?-i:b)",
            "(?P<n>a)",
            "(?<n>a)",
            "\\Qa.b\\E",
            "[^\\w\\s]",
            "\\bfoo\\B",
            "a{2}{3}",
            "x*?y+?",
            "\\A.\\z",
            "[a-\\d]",
            "\\ \\-",
            "(?s:.)(?m:^$)(?U:a*)",
            "\\C",
            "[\\]a]",
        ],
    ),
    (
        "directive",
        &["%s|%d", "%.2f", "%x %X", "%b%o", "%e", "%%", "%.3s", "%5d"],
    ),
    (
        "zone",
        &[
            "UTC",
            "+05:30",
            "-02:00",
            "America/New_York",
            "Local",
            "",
            "23:59",
        ],
    ),
    (
        "path",
        &[".spec.a", ".a.b[0]", ".a['b']", ".spec.replicas", "{.a}"],
    ),
    (
        "text",
        &[
            "",
            "a",
            "abc",
            "héé",
            "日本語",
            "😀",
            "a,b,c",
            " c ",
            "q\"uote",
            "tab\t",
            "a\nb",
            "İ",
            "ß",
            "\u{1}",
            "\u{7f}",
        ],
    ),
];

/// What is put into a text: signs that mean something to some reader.
const PIECES: &[&str] = &[
    "%", "%zz", "%41", "%25", ":", "::", "/", "//", "@", "[", "]", "-", "--", ".", "..",
    "+", "0", "00", "1", "9", "e", "E", "x", "_", " ", "\t", "\n", "\u{0}", "é", "😀",
    "\u{200b}", "\\", "'", "\"", "#", "?", "&", "=", ",", ";", "*", "~", "$", "{", "}",
    "(", ")", "|", "^", "<", ">", "!", "٣", "Ａ",
];

/// Numbers near a border of some type or rule.
const BORDERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    8,
    63,
    64,
    253,
    254,
    255,
    256,
    65_535,
    65_536,
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    i32::MIN as i64,
    9_007_199_254_740_993,
    9_223_372_036_854_775_000,
    i64::MAX,
    i64::MIN,
];

/// The names of all forms.
#[cfg(test)]
pub(super) fn forms() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(name, _)| *name)
}

/// A text that is of a form, or nearly so. A form that is not known stands for any text.
pub(super) fn near(random: &mut Random, form: &str) -> String {
    let known = FORMS.iter().find(|(name, _)| *name == form);
    let seeds = known.map_or(&["a"][..], |(_, seeds)| *seeds);
    let mut text = random.pick(seeds).to_owned();
    for _ in 0..random.below(4) {
        let other = random.pick(seeds);
        text = edited(random, &text, other);
    }
    text
}

/// A text of any form, or nearly so.
pub(super) fn any(random: &mut Random) -> String {
    let (form, _) = random.pick(FORMS);
    near(random, form)
}

/// The text after one edit, which may take from another text.
pub(super) fn edited(random: &mut Random, text: &str, other: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = random.below(letters.len() + 1);
    let to = (at + random.between(1, 3)).min(letters.len());
    match random.below(7) {
        0 => {
            letters.splice(at..at, random.pick(PIECES).chars());
        }
        1 => {
            letters.splice(at..to, random.pick(PIECES).chars());
        }
        2 => {
            letters.drain(at..to);
        }
        3 => {
            let part: Vec<char> = letters[at..to].to_vec();
            letters.splice(at..at, part);
        }
        4 if to > at + 1 => letters.swap(at, at + 1),
        5 => {
            letters.truncate(at);
            let others: Vec<char> = other.chars().collect();
            letters.extend(others.iter().skip(random.below(others.len() + 1)));
        }
        _ => {
            for letter in &mut letters[at..to] {
                *letter = if letter.is_ascii_digit() {
                    random.pick(&['0', '1', '5', '6', '9'])
                } else if letter.is_ascii_lowercase() {
                    letter.to_ascii_uppercase()
                } else {
                    letter.to_ascii_lowercase()
                };
            }
        }
    }
    letters.into_iter().collect()
}

/// The text as a literal of the expression language.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Changes one text, number or truth value somewhere in a document, but for what says of
/// which kind the document is.
pub(super) fn edit_leaf(random: &mut Random, document: &mut Value) {
    let mut leaves = Vec::new();
    collect(document, String::new(), &mut leaves);
    leaves.retain(|it| it != "/apiVersion" && it != "/kind");
    if leaves.is_empty() {
        return;
    }
    let Some(leaf) = document.pointer_mut(&random.pick(&leaves)) else {
        return;
    };
    *leaf = match &*leaf {
        Value::String(text) => {
            let other = any(random);
            json!(edited(random, text, &other))
        }
        Value::Number(_) => json!(random.pick(BORDERS)),
        Value::Bool(is) => json!(!is),
        other => other.clone(),
    };
}

/// A number near a border of some type or rule.
pub(super) fn border(random: &mut Random) -> i64 {
    random.pick(BORDERS)
}

fn collect(value: &Value, pointer: String, leaves: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(field, format!("{pointer}/{name}"), leaves);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{pointer}/{at}"), leaves);
            }
        }
        Value::Null => {}
        _ => leaves.push(pointer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_the_same_texts_and_another_gives_others() {
        let texts = |seed| {
            let mut random = Random::of(seed, 0);
            (0..50).map(|_| any(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn most_texts_of_a_form_are_in_no_list() {
        let mut random = Random::of(1, 0);
        for (form, seeds) in FORMS {
            let made: Vec<_> = (0..200).map(|_| near(&mut random, form)).collect();
            let new = made.iter().filter(|it| !seeds.contains(&it.as_str()));
            assert!(new.count() > 100, "{form}");
        }
    }

    #[test]
    fn a_literal_means_its_text() {
        let text = "a\"b\\c\nd\u{1}é'";
        assert_eq!(quoted(text), r#""a\"b\\c\nd\u0001é'""#);
    }

    #[test]
    fn one_leaf_of_a_document_changes_and_never_its_kind() {
        let document =
            json!({"apiVersion": "v1", "kind": "A", "a": ["x", 7, true], "b": null});
        let mut random = Random::of(1, 0);
        for _ in 0..100 {
            let mut edited = document.clone();
            edit_leaf(&mut random, &mut edited);
            assert_eq!(
                (&edited["apiVersion"], &edited["kind"]),
                (&json!("v1"), &json!("A"))
            );
            let (old, new) = (document["a"].as_array(), edited["a"].as_array());
            let pairs = old.into_iter().flatten().zip(new.into_iter().flatten());
            assert!(pairs.filter(|(old, new)| old != new).count() <= 1);
        }
    }
}
