//! PEM, after Go's `encoding/pem`.

use crate::base64;

const START: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

/// A PEM block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The label, such as `CERTIFICATE`.
    pub label: Vec<u8>,
    /// Whether there are headers (lines with a colon) before the contents.
    pub has_headers: bool,
    /// The contents.
    pub bytes: Vec<u8>,
}

/// Same as `pem.Decode`: the next valid block, and the rest of the data; `None` if there is
/// none.
///
/// ```
/// use kubemu_gostd::pem::decode;
///
/// let (block, rest) = decode(b"-----BEGIN A-----\nAQI=\n-----END A-----\nmore").unwrap();
/// assert_eq!((&block.label[..], &block.bytes[..]), (&b"A"[..], &[1, 2][..]));
/// assert_eq!(rest, b"more");
/// ```
pub fn decode(data: &[u8]) -> Option<(Block, &[u8])> {
    let mut rest = data;
    loop {
        // The first END line, and before it the last BEGIN line.
        let end = find(rest, END)?;
        let after = &rest[end + END.len()..];
        if let Some(begin) = find_last(&rest[..end], START)
            && (begin == 0 || rest[begin - 1] == b'\n')
            && let Some(found) = block(&rest[begin + START.len()..], after)?
        {
            return Some(found);
        }
        rest = after;
    }
}

/// Parses a block. `text` follows the `BEGIN ` of the block and ends with `after`, which
/// follows its `END `. The outer `None` is for a text that ends before its contents: Go stops
/// there.
#[expect(
    clippy::option_option,
    reason = "the two failures differ: Go stops or continues"
)]
fn block<'a>(text: &'a [u8], after: &'a [u8]) -> Option<Option<(Block, &'a [u8])>> {
    let (line, mut rest) = first_line(text);
    let Some(label) = line.strip_suffix(DASHES) else {
        return Some(None);
    };
    let mut has_headers = false;
    loop {
        if rest.is_empty() {
            return None;
        }
        let (line, next) = first_line(rest);
        if !line.contains(&b':') {
            break;
        }
        has_headers = true;
        rest = next;
    }
    // Headers, or the label's line of an empty block, may have consumed the END line.
    let contents = rest.len().checked_sub(after.len() + END.len());
    if contents.is_none() && has_headers {
        return (rest.len() >= after.len()).then_some(None);
    }
    Some(finish(label, rest, after, contents).map(|(bytes, rest)| {
        let label = label.to_vec();
        let block = Block {
            label,
            has_headers,
            bytes,
        };
        (block, rest)
    }))
}

/// The contents of a block, and the data after its END line.
fn finish<'a>(
    label: &[u8],
    rest: &[u8],
    after: &'a [u8],
    contents: Option<usize>,
) -> Option<(Vec<u8>, &'a [u8])> {
    let trailer = after.get(..label.len() + DASHES.len())?;
    if !trailer.starts_with(label) || !trailer.ends_with(DASHES) {
        return None;
    }
    let (line, next) = first_line(&after[trailer.len()..]);
    if !line.is_empty() {
        return None;
    }
    let text = &rest[..contents.unwrap_or_default()];
    let digits = text.iter().filter(|it| !matches!(it, b' ' | b'\t'));
    let digits: Vec<u8> = digits.copied().collect();
    Some((base64::decode_std(&digits).ok()?, next))
}

/// A line without trailing whitespace, and the data after it.
fn first_line(data: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match data.iter().position(|it| *it == b'\n') {
        Some(at) => {
            let line = &data[..at];
            (line.strip_suffix(b"\r").unwrap_or(line), &data[at + 1..])
        }
        None => (data, &data[data.len()..]),
    };
    let blanks = line.iter().rev();
    let blanks = blanks.take_while(|it| matches!(it, b' ' | b'\t')).count();
    (&line[..line.len() - blanks], rest)
}

fn find(data: &[u8], part: &[u8]) -> Option<usize> {
    data.windows(part.len()).position(|it| it == part)
}

fn find_last(data: &[u8], part: &[u8]) -> Option<usize> {
    data.windows(part.len()).rposition(|it| it == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<Vec<u8>> {
        decode(text.as_bytes()).map(|(block, _)| block.bytes)
    }

    #[test]
    fn invalid_blocks_are_skipped() {
        let good = "-----BEGIN A-----\nAQI=\n-----END A-----\n";
        for before in [
            "words\n",
            "-----BEGIN A-----\n",
            "-----BEGIN A-----\nAQI=\n-----END B-----\n",
            "-----BEGIN A-----\n!\n-----END A-----\n",
        ] {
            assert_eq!(
                bytes(&format!("{before}{good}")),
                Some(vec![1, 2]),
                "{before}"
            );
        }
        assert_eq!(
            bytes("words -----BEGIN A-----\nAQI=\n-----END A-----"),
            None
        );
        assert_eq!(bytes("-----BEGIN A-----\nAQI="), None);
    }

    #[test]
    fn headers_precede_the_contents() {
        let text = "-----BEGIN A-----\nK: v\n\nAQI=\n-----END A-----";
        let (block, rest) = decode(text.as_bytes()).unwrap();
        assert!(block.has_headers && rest.is_empty());
        assert_eq!(block.bytes, [1, 2]);
    }

    #[test]
    fn a_block_may_be_empty() {
        assert_eq!(bytes("-----BEGIN A-----\n-----END A-----"), Some(vec![]));
    }
}
