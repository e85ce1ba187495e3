//! What the text of an expression mentions: literals and names of fields.
//!
//! The search needs values near those that an expression compares with. It does not need the
//! meaning of the expression, which the engine decides.

use std::collections::BTreeSet;

/// How many different values of each kind are kept.
const MAX_VALUES: usize = 200;

/// The literals and names of some expressions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentions {
    pub(crate) texts: BTreeSet<String>,
    pub(crate) whole: BTreeSet<i64>,
    /// Numbers with a fraction, as bits, because floats have no order.
    fractions: BTreeSet<u64>,
    /// The names after a dot, and all texts: a field may be accessed by index.
    pub(crate) names: BTreeSet<String>,
    /// Whether the old object is mentioned.
    pub(crate) old: bool,
}

impl Mentions {
    pub(crate) fn of<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for expression in expressions {
            all.read(expression);
        }
        all
    }

    pub(super) fn fractions(&self) -> impl Iterator<Item = f64> {
        self.fractions.iter().map(|bits| f64::from_bits(*bits))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.whole.is_empty() && self.names.is_empty()
    }

    /// Adds the other mentions.
    pub(super) fn extend(&mut self, other: &Self) {
        self.texts.extend(other.texts.iter().cloned());
        self.whole.extend(&other.whole);
        self.fractions.extend(&other.fractions);
        self.names.extend(other.names.iter().cloned());
        self.old |= other.old;
    }

    fn read(&mut self, expression: &str) {
        let mut rest = expression;
        let mut after_dot = false;
        let mut is_negative = false;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '\'' | '"' => self.text(rest, first),
                _ if first.is_ascii_digit() => self.number(rest, is_negative),
                _ if first.is_alphabetic() || first == '_' || first == '`' => {
                    self.name(rest, after_dot)
                }
                _ => first.len_utf8(),
            };
            after_dot = first == '.' || after_dot && (first == '?' || first == ' ');
            is_negative = first == '-';
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Reads a text without its escapes, which is enough for patterns and words.
    fn text(&mut self, rest: &str, quote: char) -> usize {
        let mut text = String::new();
        let mut escaped = false;
        for (at, character) in rest.char_indices().skip(1) {
            if escaped {
                // The only escape of texts that patterns need.
                if character != '\\' && character != quote {
                    text.push('\\');
                }
                text.push(character);
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if character == quote {
                if self.texts.len() < MAX_VALUES {
                    self.names.insert(text.clone());
                    self.texts.insert(text);
                }
                return at + 1;
            } else {
                text.push(character);
            }
        }
        rest.len()
    }

    fn number(&mut self, rest: &str, is_negative: bool) -> usize {
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '.';
        let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        let digits = rest[..end].trim_end_matches('u');
        let hexadecimal = digits.strip_prefix("0x");
        let whole = match hexadecimal {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        };
        if self.whole.len() + self.fractions.len() < MAX_VALUES {
            if let Some(whole) = whole {
                self.whole.insert(whole);
                if is_negative {
                    self.whole.insert(whole.saturating_neg());
                }
            } else if let Ok(fraction) = digits.parse::<f64>() {
                self.fractions.insert(fraction.to_bits());
            }
        }
        end
    }

    fn name(&mut self, rest: &str, after_dot: bool) -> usize {
        if let Some(quoted) = rest.strip_prefix('`') {
            let end = quoted.find('`').unwrap_or(quoted.len());
            self.names.insert(quoted[..end].to_owned());
            return end + 2;
        }
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        let name = &rest[..end];
        self.old |= name == "oldSelf" || name == "oldObject";
        if after_dot && self.names.len() < MAX_VALUES {
            self.names.insert(unescaped(name));
        }
        end
    }
}

/// The field of a name in which CEL's reserved words and characters are escaped.
fn unescaped(name: &str) -> String {
    let escapes = [
        ("__underscores__", "__"),
        ("__dot__", "."),
        ("__dash__", "-"),
        ("__slash__", "/"),
    ];
    let mut name = name.to_owned();
    for (escape, written) in escapes {
        name = name.replace(escape, written);
    }
    match name.strip_prefix("__").and_then(|it| it.strip_suffix("__")) {
        Some(reserved) => reserved.to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_fields_are_found_and_variables_are_not() {
        let text = r#"self.?spec.min <= 10 && self["max"] != "^\\d+$" && has(self.b__dash__c)
            || oldSelf.x > 0x10 * 1.5"#;
        let found = Mentions::of([text]);
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        assert_eq!(names, ["^\\d+$", "b-c", "max", "min", "spec", "x"]);
        assert!(found.texts.contains("^\\d+$") && found.old);
        assert!(found.whole.contains(&10) && found.whole.contains(&16));
        assert_eq!(found.fractions().collect::<Vec<_>>(), [1.5]);
    }

    #[test]
    fn a_text_without_an_end_does_not_panic() {
        for text in ["'a", "\"\\", "`a", "0x", "é.", "9999999999999999999"] {
            let _ = Mentions::of([text]);
        }
    }
}
