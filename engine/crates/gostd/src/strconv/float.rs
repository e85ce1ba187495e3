//! Numbers, after `strconv.ParseFloat`, `ParseUint` and `FormatFloat` (src/strconv/atof.go,
//! atoi.go, ftoa.go).

/// Same as `strconv.ParseFloat(text, 64)`: decimal and hexadecimal numbers with underscores
/// between digits, infinities and NaN. `None` if the text is not a number or out of range.
///
/// ```
/// use kubemu_gostd::strconv::parse_float;
/// assert_eq!(parse_float("0x1p-1"), Some(0.5));
/// assert_eq!((parse_float("1e400"), parse_float("+Inf")), (None, Some(f64::INFINITY)));
/// ```
pub fn parse_float(text: &str) -> Option<f64> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is = |name: &str| unsigned.eq_ignore_ascii_case(name);
    let size = if is("inf") || is("infinity") {
        f64::INFINITY
    } else if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    } else {
        let plain = without_underscores(unsigned)?;
        let hexadecimal = plain
            .strip_prefix("0x")
            .or_else(|| plain.strip_prefix("0X"));
        let size = match hexadecimal {
            Some(digits) => parse_hexadecimal(digits)?,
            None if is_decimal(&plain) => plain.parse().ok()?,
            None => return None,
        };
        Some(size).filter(|size: &f64| size.is_finite())?
    };
    Some(if negative { -size } else { size })
}

/// Same as `strconv.ParseUint(text, 10, 64)`: only digits, without a sign. `None` if the text
/// is not a number or out of range.
pub fn parse_uint(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A float as printed by `strconv.FormatFloat(value, 'g', -1, 64)` and `%v` of `fmt`: the
/// shortest digits that parse to the same value, with an exponent below 1e-4 and from 1e6 on.
///
/// ```
/// use kubemu_gostd::strconv::format_float;
/// assert_eq!(format_float(1_234_567.0), "1.234567e+06");
/// assert_eq!(format_float(-0.5), "-0.5");
/// ```
pub fn format_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&power) {
        return format!("{value}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", power.abs())
}

/// The text without underscores, which are only allowed between digits, or between the prefix
/// of a hexadecimal number and its first digit.
fn without_underscores(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_digit = |c: Option<char>| match digits {
        Some(_) => c.is_some_and(|c| c.is_ascii_hexdigit()),
        None => c.is_some_and(|c| c.is_ascii_digit()),
    };
    // The prefix counts as a digit.
    let mut before = digits.map(|_| '0');
    let mut rest = digits.unwrap_or(text).chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied();
        if c == '_' && !(is_digit(before) && is_digit(after)) {
            return None;
        }
        before = Some(c);
    }
    Some(text.replace('_', ""))
}

/// Whether the text is a decimal such as `12`, `1.5` or `.5e-3`; Rust also parses names of
/// infinities.
fn is_decimal(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Parses a hexadecimal float such as `1.8p3`, with a power of two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Go stops at the same limit.
    let size = digits
        .parse::<i64>()
        .map_or(10_000, |size| size.min(10_000));
    let mut power = if exponent.starts_with('-') {
        -size
    } else {
        size
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut value, mut is_inexact) = (0_u64, false);
    let is_whole = std::iter::repeat_n(true, whole.len());
    let is_whole = is_whole.chain(std::iter::repeat(false));
    for (c, is_whole) in whole.chars().chain(fraction.chars()).zip(is_whole) {
        let digit = u64::from(c.to_digit(16)?);
        if value >> 60 == 0 {
            value = value << 4 | digit;
            power -= if is_whole { 0 } else { 4 };
        } else {
            is_inexact |= digit != 0;
            power += if is_whole { 4 } else { 0 };
        }
    }
    Some(scaled(value, power, is_inexact))
}

#[expect(clippy::cast_precision_loss, reason = "rounds to the nearest float")]
const fn nearest_unsigned(value: u64) -> f64 {
    value as f64
}

/// `value * 2^power`, rounded to the nearest float, ties to even; `is_inexact` is whether the
/// exact value is slightly greater.
fn scaled(value: u64, power: i64, is_inexact: bool) -> f64 {
    const PRECISION: i64 = 53;
    const LOWEST: i64 = -1074;
    let bits = 64 - i64::from(value.leading_zeros());
    let shift = (bits - PRECISION).max(LOWEST - power);
    if shift <= 0 {
        return power_of_two(nearest_unsigned(value), power);
    }
    if shift > 64 {
        return 0.0;
    }
    let kept = value
        .checked_shr(u32::try_from(shift).unwrap_or(64))
        .unwrap_or(0);
    let half = 1_u128 << (shift - 1);
    let rest = u128::from(value) & ((half << 1) - 1);
    let is_up = rest > half || rest == half && (is_inexact || kept % 2 == 1);
    power_of_two(nearest_unsigned(kept + u64::from(is_up)), power + shift)
}

/// `value * 2^power`, in steps that are exact if the last one is exact.
fn power_of_two(mut value: f64, mut power: i64) -> f64 {
    const STEP: i64 = 1000;
    while power != 0 && value != 0.0 && value.is_finite() {
        let step = power.clamp(-STEP, STEP);
        let exponent = u64::try_from(step + 1023).unwrap_or(0);
        value *= f64::from_bits(exponent << 52);
        power -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_floats_are_rounded_to_the_nearest_even_one() {
        let rows = [
            ("0x1p3", 8.0),
            ("0x.8p1", 1.0),
            ("0x1.8p-1", 0.75),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", f64::from_bits(1)),
            ("0x3p-1075", f64::from_bits(2)),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x20000000000001p0", 9_007_199_254_740_992.0),
            ("0x20000000000003p0", 9_007_199_254_740_996.0),
            (
                "0x200000000000010000000000000001p0",
                2_f64.powi(117) + 2_f64.powi(65),
            ),
        ];
        for (text, wanted) in rows {
            assert_eq!(
                parse_float(text).map(f64::to_bits),
                Some(wanted.to_bits()),
                "{text}"
            );
        }
        assert_eq!(parse_float("0x1.fffffffffffff8p1023"), None);
    }
}
