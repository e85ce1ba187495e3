//! JSON in the canonical form of RFC 8785: equal values have the same bytes.

use serde_json::{Number, Value};

/// The canonical text of a value. Never fails.
///
/// Keys are sorted by their UTF-16 code units, numbers are written as ECMAScript writes the
/// nearest double, and strings have only the escapes that JSON requires.
///
/// # Example
/// ```
/// use serde_json::json;
/// let text = fivespot_api::canonical::json(&json!({"b": 1.0, "a": [true, 1e21, "\u{e9}\n"]}));
/// assert_eq!(text, r#"{"a":[true,1e+21,"é\n"],"b":1}"#);
/// ```
pub fn json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&ecmascript(number)),
        Value::String(string) => quote(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(one, _), (other, _)| {
                one.encode_utf16().cmp(other.encode_utf16())
            });
            text.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                quote(key, text);
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
    }
}

/// A string in quotes: serde_json escapes exactly what RFC 8785 requires, in the same spelling.
fn quote(string: &str, text: &mut String) {
    text.push_str(&Value::String(string.to_owned()).to_string());
}

/// A number as ECMAScript's `Number::toString` writes it (ECMA-262, 6.1.6.1.20).
fn ecmascript(number: &Number) -> String {
    let double = number.as_f64().unwrap_or_default();
    if double == 0.0 {
        return "0".to_owned();
    }
    // `{:e}` returns the shortest digits that read back as the same double, as ECMAScript
    // requires.
    let shortest = format!("{:e}", double.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let sign = if double < 0.0 { "-" } else { "" };
    format!("{sign}{}", place(&digits, point))
}

/// Places the decimal point after the first `point` of `digits`, or writes an exponent.
fn place(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |amount: i32| "0".repeat(usize::try_from(amount).unwrap_or_default());
    if (count..=21).contains(&point) {
        return format!("{digits}{}", zeros(point - count));
    }
    let inside = usize::try_from(point)
        .ok()
        .and_then(|at| digits.split_at_checked(at));
    match inside {
        Some((whole, fraction)) if point > 0 && point <= 21 => {
            format!("{whole}.{fraction}")
        }
        _ if point > -6 && point <= 0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let exponent = point - 1;
            let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
            let fraction = if rest.is_empty() {
                String::new()
            } else {
                format!(".{rest}")
            };
            format!("{first}{fraction}e{exponent:+}")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::json as canonical;

    #[test]
    fn numbers_are_written_as_in_the_appendix_of_the_rfc() {
        // RFC 8785, appendix B: the bits of a double and its text.
        let rows: [(u64, &str); 15] = [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
        ];
        for (bits, text) in rows {
            assert_eq!(canonical(&json!(f64::from_bits(bits))), text);
        }
    }

    #[test]
    fn keys_are_sorted_by_utf16_as_in_the_rfc() {
        let value = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5,
            "\u{80}": 6, "\u{f6}": 7});
        let members: serde_json::Map<String, Value> =
            serde_json::from_str(&canonical(&value)).unwrap();
        let order: Vec<_> = members.values().cloned().collect();
        assert_eq!(order, [2, 4, 6, 7, 1, 5, 3].map(|number| json!(number)));
    }

    proptest! {
        #[test]
        fn a_double_reads_back_as_itself(double in any::<f64>().prop_filter("finite", |d| d.is_finite())) {
            let read: f64 = canonical(&json!(double)).parse().unwrap();
            prop_assert_eq!(read.to_bits(), (if double == 0.0 { 0.0 } else { double }).to_bits());
        }
    }
}
