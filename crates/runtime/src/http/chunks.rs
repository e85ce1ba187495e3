//! Splits what a server sends while it arrives, so that at most one object of it is held at a
//! time.

use thiserror::Error;

/// How large one object may be, in bytes: an API server accepts 3 MiB at most, and its store
/// less.
pub const MAX_OBJECT_BYTES: usize = 4 << 20;

/// How much memory is kept for the next object, in bytes.
const MAX_REUSED_BUFFER: usize = 64 << 10;

/// Why what a server sends cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum SplitError {
    /// It is not a list.
    #[error("the server's response is not a list")]
    NotAList,
    /// It is incomplete.
    #[error("the server's response is truncated")]
    Truncated,
    /// An object in it is too large.
    #[error("an object in the server's response is larger than {MAX_OBJECT_BYTES} bytes")]
    ObjectTooLarge,
}

/// A list, object by object: the items one after another, and at the end its metadata.
#[derive(Debug, Default)]
pub(super) struct ListSplitter {
    /// How many objects and lists are open.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
    field: Field,
    /// Whether an item, or the metadata, is open.
    in_piece: bool,
    /// The name of a field, or the piece, as far as it has arrived.
    buffer: Vec<u8>,
    metadata: Vec<u8>,
}

/// The field of the list that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Field {
    /// Its name comes next.
    #[default]
    Name,
    Items,
    Metadata,
    Other,
}

impl Field {
    fn named(name: &[u8]) -> Self {
        match name {
            b"items" => Self::Items,
            b"metadata" => Self::Metadata,
            _ => Self::Other,
        }
    }

    /// How many objects and lists are open within a piece of it; `None` if it has no pieces.
    fn depth_of_pieces(self) -> Option<usize> {
        match self {
            Self::Items => Some(3),
            Self::Metadata => Some(2),
            Self::Name | Self::Other => None,
        }
    }
}

impl ListSplitter {
    /// Takes the next chunk, and calls `each` with each item that is complete.
    ///
    /// # Errors
    /// The first syntax error, or the first error of `each`.
    pub(super) fn push<E: From<SplitError>>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        let mut at = 0;
        while at < chunk.len() {
            if self.in_string {
                at += self.skip_string(&chunk[at..]);
                continue;
            }
            let byte = chunk[at];
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' if self.open(byte)? => start = at,
                b'}' | b']' => {
                    if self.closes_piece() {
                        self.append(&chunk[start..=at])?;
                        self.emit_piece(&mut each)?;
                    }
                    self.close()?;
                }
                b':' if self.depth == 1 => {
                    self.field = Field::named(&self.buffer);
                    self.buffer.clear();
                }
                b',' if self.depth == 1 => self.field = Field::Name,
                _ if self.depth == 0 && !byte.is_ascii_whitespace() => {
                    return Err(SplitError::NotAList.into());
                }
                _ => {}
            }
            at += 1;
        }
        if self.in_piece {
            self.append(&chunk[start..])?;
        }
        Ok(())
    }

    /// The list's metadata, once everything has arrived; empty if there was none.
    ///
    /// # Errors
    /// The list is not complete.
    pub(super) fn end(self) -> Result<Vec<u8>, SplitError> {
        self.is_complete
            .then_some(self.metadata)
            .ok_or(SplitError::Truncated)
    }

    /// Skips the content of a string. Returns how many bytes that were.
    fn skip_string(&mut self, chunk: &[u8]) -> usize {
        let is_name = self.depth == 1 && self.field == Field::Name;
        if self.is_escaped {
            self.is_escaped = false;
            return 1;
        }
        let special = chunk.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let within = &chunk[..special.unwrap_or(chunk.len())];
        // No name that matters is longer.
        if is_name && self.buffer.len() < 16 {
            self.buffer.extend(within.iter().take(16));
        }
        match special {
            None => chunk.len(),
            Some(special) => {
                self.is_escaped = chunk[special] == b'\\';
                self.in_string = self.is_escaped;
                special + 1
            }
        }
    }

    /// Returns whether a piece begins here.
    fn open(&mut self, byte: u8) -> Result<bool, SplitError> {
        if self.is_complete || (self.depth == 0 && byte == b'[') {
            return Err(SplitError::NotAList);
        }
        self.depth += 1;
        let is_deep = self.field.depth_of_pieces() == Some(self.depth);
        let begins = !self.in_piece && is_deep && byte == b'{';
        self.in_piece |= begins;
        Ok(begins)
    }

    fn closes_piece(&self) -> bool {
        self.in_piece && self.field.depth_of_pieces() == Some(self.depth)
    }

    fn close(&mut self) -> Result<(), SplitError> {
        self.depth = self.depth.checked_sub(1).ok_or(SplitError::NotAList)?;
        self.is_complete = self.depth == 0;
        Ok(())
    }

    fn append(&mut self, more: &[u8]) -> Result<(), SplitError> {
        if self.buffer.len() + more.len() > MAX_OBJECT_BYTES {
            return Err(SplitError::ObjectTooLarge);
        }
        self.buffer.extend_from_slice(more);
        Ok(())
    }

    fn emit_piece<E>(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.in_piece = false;
        let piece = std::mem::take(&mut self.buffer);
        if self.field == Field::Metadata {
            self.metadata = piece;
            return Ok(());
        }
        each(&piece)?;
        // Most pieces are small: the memory of a small one is kept for the next.
        if piece.capacity() <= MAX_REUSED_BUFFER {
            self.buffer = piece;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// The events of a watch: each is an object. Kubernetes writes each on one line. Other servers
/// with its API, such as those of Cluster API's in-memory provider, write it on several lines,
/// without a line break after it. What is not an object ends with its line.
#[derive(Debug, Default)]
pub(super) struct EventSplitter {
    buffer: Vec<u8>,
    /// How many objects are open in what is gathered.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl EventSplitter {
    /// Takes the next chunk, and returns the events that are complete.
    ///
    /// # Errors
    /// An event is too large.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Vec<Vec<u8>>, SplitError> {
        let mut complete = Vec::new();
        let mut start = 0;
        for (at, byte) in chunk.iter().enumerate() {
            let is_line_break = *byte == b'\n';
            if self.ends_event(*byte) {
                let end = if is_line_break { at } else { at + 1 };
                self.append(&chunk[start..end])?;
                start = at + 1;
                let event = std::mem::take(self).buffer;
                if !event.is_empty() {
                    complete.push(event);
                }
            }
        }
        self.append(&chunk[start..])?;
        Ok(complete)
    }

    /// Whether an event ends with this byte.
    fn ends_event(&mut self, byte: u8) -> bool {
        match byte {
            // A string of JSON contains no line break.
            b'\n' => return self.depth == 0 || self.in_string,
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'{' if !self.in_string => self.depth += 1,
            b'}' if !self.in_string && self.depth > 0 => {
                self.depth -= 1;
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }

    fn append(&mut self, more: &[u8]) -> Result<(), SplitError> {
        if self.buffer.len() + more.len() > MAX_OBJECT_BYTES {
            return Err(SplitError::ObjectTooLarge);
        }
        self.buffer.extend_from_slice(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The items and the metadata of a text that arrives in chunks of that size.
    fn split(text: &[u8], size: usize) -> Result<(Vec<Value>, Value), SplitError> {
        let mut items = ListSplitter::default();
        let mut found = Vec::new();
        for chunk in text.chunks(size) {
            items.push(chunk, |item| {
                found.push(serde_json::from_slice(item).unwrap());
                Ok::<_, SplitError>(())
            })?;
        }
        let metadata = items.end()?;
        let metadata = match metadata.as_slice() {
            [] => Value::Null,
            text => serde_json::from_slice(text).unwrap_or_default(),
        };
        Ok((found, metadata))
    }

    #[test]
    fn a_list_is_split_into_items_wherever_its_chunks_end() {
        let items = vec![
            json!({"metadata": {"name": "a"}, "items": [{"x": 1}]}),
            json!({"text": "}]\"\\{", "deep": [[{"a": []}]]}),
            json!({}),
        ];
        let metadata = json!({"resourceVersion": "7", "continue": "\"items\":["});
        for list in [
            json!({"kind": "L", "metadata": metadata, "items": items}),
            json!({"items": items, "a": {"items": [{}]}, "metadata": metadata, "b": [{}]}),
        ] {
            let (compact, spaced) = (
                list.to_string(),
                serde_json::to_string_pretty(&list).unwrap(),
            );
            for text in [compact, spaced] {
                for size in 1..text.len() {
                    let found = split(text.as_bytes(), size).unwrap();
                    assert_eq!(found, (items.clone(), metadata.clone()));
                }
            }
        }
    }

    #[test]
    fn a_list_without_items_has_none() {
        for text in [r#"{"items": null, "metadata": {}}"#, r#"{"metadata": {}}"#] {
            assert_eq!(split(text.as_bytes(), 3), Ok((vec![], json!({}))));
        }
    }

    #[test]
    fn anything_but_a_complete_list_is_rejected() {
        for (text, expected) in [
            ("<html>", SplitError::NotAList),
            ("[{}]", SplitError::NotAList),
            ("{}}", SplitError::NotAList),
            ("{} {}", SplitError::NotAList),
            ("", SplitError::Truncated),
            (r#"{"items": [{}"#, SplitError::Truncated),
        ] {
            assert_eq!(split(text.as_bytes(), 2), Err(expected), "{text}");
        }
    }

    #[test]
    fn an_object_that_is_too_large_is_not_read_to_its_end() {
        let begin = br#"{"items": [{"a": ""#;
        let mut items = ListSplitter::default();
        let mut lines = EventSplitter::default();
        let ignore = |_: &[u8]| Ok::<_, SplitError>(());
        items.push(begin, ignore).unwrap();
        let chunk = vec![b'x'; MAX_OBJECT_BYTES - 100];
        assert_eq!(items.push(&chunk, ignore), Ok(()));
        assert_eq!(items.push(&chunk, ignore), Err(SplitError::ObjectTooLarge));
        assert_eq!(lines.push(&chunk), Ok(vec![]));
        assert_eq!(lines.push(&chunk), Err(SplitError::ObjectTooLarge));
    }

    #[test]
    fn lines_are_split_wherever_their_chunks_end() {
        let text = b"one\ntwo\n\nthree";
        for size in 1..text.len() {
            let mut lines = EventSplitter::default();
            let chunks = text.chunks(size);
            let found: Vec<_> = chunks
                .flat_map(|chunk| lines.push(chunk).unwrap())
                .collect();
            assert_eq!(found, [b"one".to_vec(), b"two".to_vec()]);
        }
    }

    #[test]
    fn an_event_on_several_lines_is_one_event() {
        let events = [
            json!({"type": "ADDED", "object": {"note": "a \"{\" \\ b", "list": [{}]}}),
            json!({"type": "DELETED", "object": {}}),
        ];
        let [first, second] = events.each_ref().map(|it| {
            let text = serde_json::to_string_pretty(it).unwrap();
            assert!(text.contains('\n'));
            text
        });
        let text = format!("{first}{second}\n{}\n", events[0]);
        for size in 1..text.len() {
            let mut lines = EventSplitter::default();
            let found: Vec<Value> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| lines.push(chunk).unwrap())
                .map(|event| serde_json::from_slice(&event).unwrap())
                .collect();
            let expected = [&events[0], &events[1], &events[0]];
            assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn invalid_json_does_not_delay_later_events() {
        let mut lines = EventSplitter::default();
        let found = lines.push(b"\"{ not json\n{}\n").unwrap();
        assert_eq!(found, [b"\"{ not json".to_vec(), b"{}".to_vec()]);
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(text in "[\\[\\]{}\":,\\\\a items]{0,60}", size in 1_usize..9) {
            let mut items = ListSplitter::default();
            for chunk in text.as_bytes().chunks(size) {
                if items.push(chunk, |_| Ok::<_, SplitError>(())).is_err() {
                    return Ok(());
                }
            }
            let _ = items.end();
        }
    }
}
