//! Base64, after Go's `encoding/base64`.

/// Same as `base64.URLEncoding.DecodeString`: decodes bytes encoded with `A`-`Z`, `a`-`z`,
/// `0`-`9`, `-` and `_`, padded with `=` to a multiple of four. Newlines are ignored.
///
/// # Errors
/// Go's message, with the index of the first invalid byte.
///
/// ```
/// use kubemu_gostd::base64::decode_url;
///
/// assert_eq!(decode_url("_-8="), Ok(vec![0xff, 0xef]));
/// let error = "illegal base64 data at input byte 0";
/// assert_eq!(decode_url("/+8="), Err(error.to_owned()));
/// ```
pub fn decode_url(text: &str) -> Result<Vec<u8>, String> {
    decode(text.as_bytes(), [b'-', b'_'])
}

/// Same as `base64.StdEncoding.Decode`: the last two digits are `+` and `/`.
///
/// # Errors
/// Go's message, with the index of the first invalid byte.
pub fn decode_std(text: &[u8]) -> Result<Vec<u8>, String> {
    decode(text, [b'+', b'/'])
}

/// Decodes base64 with the given last two digits.
fn decode(text: &[u8], last: [u8; 2]) -> Result<Vec<u8>, String> {
    let bytes = text.iter().copied().enumerate();
    let mut rest = bytes.filter(|(_, byte)| !is_line_end(*byte));
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    loop {
        let mut digits = Vec::with_capacity(4);
        while digits.len() < 4 {
            match rest.next() {
                None if digits.is_empty() => return Ok(decoded),
                // Go subtracts the number of digits from the length, even with newlines
                // between the digits.
                None => return Err(illegal(text.len() - digits.len())),
                Some((at, byte)) => match digit(byte, last) {
                    Some(digit) => digits.push(digit),
                    None if byte == b'=' => {
                        check_padding(text.len(), digits.len(), at, &mut rest)?;
                        write(&digits, &mut decoded);
                        return Ok(decoded);
                    }
                    None => return Err(illegal(at)),
                },
            }
        }
        write(&digits, &mut decoded);
    }
}

/// Checks the text after the first `=`, which is at `at` after `digits` digits of a group.
fn check_padding(
    end: usize,
    digits: usize,
    at: usize,
    rest: &mut impl Iterator<Item = (usize, u8)>,
) -> Result<(), String> {
    if digits < 2 {
        return Err(illegal(at));
    }
    if digits == 2 {
        match rest.next() {
            None => return Err(illegal(end)),
            Some((_, b'=')) => {}
            // Go reports the byte before it.
            Some((second, _)) => return Err(illegal(second - 1)),
        }
    }
    rest.next().map_or(Ok(()), |(at, _)| Err(illegal(at)))
}

/// Appends the bytes of a group of two to four digits.
fn write(digits: &[u8], decoded: &mut Vec<u8>) {
    let missing = 4 - digits.len();
    let bits = digits
        .iter()
        .fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
    let [_, bytes @ ..] = (bits << (6 * missing)).to_be_bytes();
    decoded.extend(bytes.iter().take(3 - missing));
}

const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

const fn digit(byte: u8, last: [u8; 2]) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        _ if byte == last[0] => Some(62),
        _ if byte == last[1] => Some(63),
        _ => None,
    }
}

fn illegal(at: usize) -> String {
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_group_of_two_or_three_digits_is_padded() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("YQ==", b"a"),
            ("YWI=", b"ab"),
            ("YWJj", b"abc"),
            ("YWJjZA==", b"abcd"),
            ("/+8=", &[0xff, 0xef]),
            ("Y\nQ=\r\n=\n", b"a"),
        ] {
            assert_eq!(decode_std(text.as_bytes()), Ok(bytes.to_vec()), "{text:?}");
        }
    }

    #[test]
    fn wrong_padding_is_an_error_at_its_byte() {
        for (text, at) in [
            ("=", 0),
            ("Y===", 1),
            ("YQ=", 3),
            ("YQ=a", 2),
            ("YQ===", 4),
            ("YQ==a", 4),
            ("YWI==", 4),
            ("YWI=a", 4),
            ("YQ", 0),
            ("YWJjY", 4),
            ("Y!==", 1),
        ] {
            let wanted = format!("illegal base64 data at input byte {at}");
            assert_eq!(decode_std(text.as_bytes()), Err(wanted), "{text}");
        }
    }
}
