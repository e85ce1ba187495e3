//! The values of messages on a bus, as the D-Bus Specification marshals them ("Type System" and "Wire
//! Format"), in the byte order of the hosts that are supported.

/// How deep values are nested at most. Those of the services that are asked are nested three deep.
const MAX_DEPTH: usize = 16;

/// A value. What it is on the wire, its signature says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The bits of a number, of whichever type.
    Number(u64),
    /// A boolean.
    Flag(bool),
    /// A string, the path of an object, or a signature.
    Text(String),
    /// A value with its signature.
    Variant(String, Box<Value>),
    /// An array, a structure or an entry of a dictionary.
    List(Vec<Value>),
}

impl Value {
    /// A string.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// The text of a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list; none of anything else.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    /// The value of a key in a dictionary, out of its variant.
    pub fn of(&self, key: &str) -> Option<&Self> {
        let entry =
            |entry: &&Self| entry.elements().first().and_then(Self::as_text) == Some(key);
        match self.elements().iter().find(entry)?.elements().get(1)? {
            Self::Variant(_, value) => Some(value),
            value => Some(value),
        }
    }
}

/// The first complete type of a signature, and what follows it. `None` if there is none.
fn split(signature: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut open = Vec::new();
    for (at, letter) in signature.iter().enumerate() {
        match letter {
            b'a' => continue,
            b'(' => open.push(b')'),
            b'{' => open.push(b'}'),
            b')' | b'}' if open.pop() == Some(*letter) => {}
            b')' | b'}' => return None,
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            return None;
        }
        if open.is_empty() {
            return signature.split_at_checked(at + 1);
        }
    }
    None
}

/// How many bytes a number of this type has. `None` for what is no number.
fn width(kind: u8) -> Option<usize> {
    match kind {
        b'y' => Some(1),
        b'n' | b'q' => Some(2),
        b'i' | b'u' | b'h' => Some(4),
        b'x' | b't' | b'd' => Some(8),
        _ => None,
    }
}

/// To how many bytes a type is aligned: a number to its width.
fn alignment(kind: &[u8]) -> usize {
    match kind.first() {
        Some(b'b' | b's' | b'o' | b'a') => 4,
        Some(b'(' | b'{') => 8,
        kind => kind.and_then(|kind| width(*kind)).unwrap_or(1),
    }
}

/// Reads values from bytes that begin at a multiple of eight in their message.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The values of a signature. `None` if the bytes are not of it.
    pub(super) fn values(&mut self, mut signature: &[u8]) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        while !signature.is_empty() {
            let (kind, rest) = split(signature)?;
            values.push(self.value(kind, 0)?);
            signature = rest;
        }
        Some(values)
    }

    /// What follows, from the next multiple of eight on.
    pub(super) fn rest_aligned(&mut self) -> Option<&'a [u8]> {
        self.align(8)?;
        self.bytes.get(self.at..)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn align(&mut self, to: usize) -> Option<()> {
        let padded = self.at.checked_next_multiple_of(to)?;
        self.take(padded - self.at).map(|_| ())
    }

    fn number(&mut self, width: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes.get_mut(..width)?.copy_from_slice(self.take(width)?);
        Some(u64::from_le_bytes(bytes))
    }

    /// A length that is written in so many bytes.
    fn length(&mut self, width: usize) -> Option<usize> {
        usize::try_from(self.number(width)?).ok()
    }

    /// A text whose length is written in so many bytes.
    fn text(&mut self, width: usize) -> Option<Value> {
        let length = self.length(width)?;
        let text = String::from_utf8(self.take(length)?.to_vec()).ok()?;
        let end = self.take(1)?;
        (end == [0]).then_some(Value::Text(text))
    }

    /// A value of one complete type. Each takes a byte at least, so that their number is bounded by the
    /// length of the message.
    fn value(&mut self, kind: &[u8], depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.align(alignment(kind))?;
        let (first, rest) = kind.split_first()?;
        if let Some(width) = width(*first) {
            return self.number(width).map(Value::Number);
        }
        Some(match first {
            b'b' => Value::Flag(self.number(4)? != 0),
            b's' | b'o' => self.text(4)?,
            b'g' => self.text(1)?,
            b'v' => {
                let signature = self.value(b"g", depth)?;
                let signature = signature.as_text()?.to_owned();
                let (kind, rest) = split(signature.as_bytes())?;
                if !rest.is_empty() {
                    return None;
                }
                let value = self.value(kind, depth + 1)?;
                Value::Variant(signature, Box::new(value))
            }
            b'a' => Value::List(self.array(rest, depth + 1)?),
            b'(' | b'{' => Value::List(self.structure(rest, depth + 1)?),
            _ => return None,
        })
    }

    /// The elements of an array.
    fn array(&mut self, kind: &[u8], depth: usize) -> Option<Vec<Value>> {
        let length = self.length(4)?;
        self.align(alignment(kind))?;
        let end = self.at.checked_add(length)?;
        let mut elements = Vec::new();
        while self.at < end {
            elements.push(self.value(kind, depth)?);
        }
        (self.at == end).then_some(elements)
    }

    /// The elements of a structure or an entry, whose types are followed by the closing bracket.
    fn structure(&mut self, kinds: &[u8], depth: usize) -> Option<Vec<Value>> {
        let (_, mut kinds) = kinds.split_last()?;
        let mut elements = Vec::new();
        while !kinds.is_empty() {
            let (kind, rest) = split(kinds)?;
            elements.push(self.value(kind, depth)?);
            kinds = rest;
        }
        (!elements.is_empty()).then_some(elements)
    }
}

/// Writes values.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// The bytes of values with this signature. `None` if they have another one.
    pub(super) fn bytes(signature: &str, values: &[Value]) -> Option<Vec<u8>> {
        let mut writer = Self::default();
        let mut left = signature.as_bytes();
        for value in values {
            let (kind, rest) = split(left)?;
            writer.value(kind, value)?;
            left = rest;
        }
        left.is_empty().then_some(writer.0)
    }

    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    /// A number of so many bytes; `None` if it has more.
    fn number(&mut self, width: usize, number: u64) -> Option<()> {
        let bytes = number.to_le_bytes();
        let (written, rest) = bytes.split_at_checked(width)?;
        self.0.extend(written);
        rest.iter().all(|byte| *byte == 0).then_some(())
    }

    fn value(&mut self, kind: &[u8], value: &Value) -> Option<()> {
        self.align(alignment(kind));
        let (first, rest) = kind.split_first()?;
        match (first, value) {
            (b'b', Value::Flag(flag)) => self.number(4, u64::from(*flag))?,
            (kind, Value::Number(number)) => self.number(width(*kind)?, *number)?,
            (b's' | b'o' | b'g', Value::Text(text)) => {
                let width = if *first == b'g' { 1 } else { 4 };
                self.number(width, u64::try_from(text.len()).ok()?)?;
                self.0.extend(text.bytes().chain([0]));
            }
            (b'v', Value::Variant(signature, value)) => {
                self.value(b"g", &Value::Text(signature.clone()))?;
                self.value(signature.as_bytes(), value)?;
            }
            (b'a', Value::List(elements)) => {
                let length_at = self.0.len();
                self.0.extend([0; 4]);
                self.align(alignment(rest));
                let start = self.0.len();
                for element in elements {
                    self.value(rest, element)?;
                }
                let length = u32::try_from(self.0.len() - start).ok()?;
                let place = self.0.get_mut(length_at..length_at + 4)?;
                place.copy_from_slice(&length.to_le_bytes());
            }
            (b'(' | b'{', Value::List(elements)) => {
                let (_, mut kinds) = rest.split_last()?;
                for element in elements {
                    let (kind, rest) = split(kinds)?;
                    self.value(kind, element)?;
                    kinds = rest;
                }
                return kinds.is_empty().then_some(());
            }
            _ => return None,
        }
        Some(())
    }
}
