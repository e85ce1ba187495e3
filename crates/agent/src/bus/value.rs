//! The values of messages on a bus, as the D-Bus Specification marshals them ("Type System" and "Wire
//! Format"), in the byte order of this host.

/// How deep values are nested at most. Those of the services that are asked are nested three deep.
const MAX_DEPTH: usize = 16;

/// A value. What it is on the wire, its signature says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any number. A negative one is extended with its sign, and a real one the bits of it.
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

/// To how many bytes a type is aligned.
fn alignment(kind: &[u8]) -> usize {
    match kind.first() {
        Some(b'n' | b'q') => 2,
        Some(b'b' | b'i' | b'u' | b'h' | b's' | b'o' | b'a') => 4,
        Some(b'x' | b't' | b'd' | b'(' | b'{') => 8,
        _ => 1,
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

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self, length: usize) -> Option<Value> {
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
        Some(match first {
            b'y' => Value::Number(self.take(1)?.first().copied()?.into()),
            b'b' => Value::Flag(self.word()? != 0),
            b'n' => {
                let number = i16::from_ne_bytes(self.take(2)?.try_into().ok()?);
                Value::Number(i64::from(number).cast_unsigned())
            }
            b'q' => {
                let number = u16::from_ne_bytes(self.take(2)?.try_into().ok()?);
                Value::Number(number.into())
            }
            b'i' => Value::Number(i64::from(self.word()?.cast_signed()).cast_unsigned()),
            b'u' | b'h' => Value::Number(self.word()?.into()),
            b'x' | b't' | b'd' => {
                Value::Number(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
            }
            b's' | b'o' => {
                let length = usize::try_from(self.word()?).ok()?;
                self.text(length)?
            }
            b'g' => {
                let length = self.take(1)?.first().copied()?;
                self.text(length.into())?
            }
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
        let length = usize::try_from(self.word()?).ok()?;
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

    fn value(&mut self, kind: &[u8], value: &Value) -> Option<()> {
        self.align(alignment(kind));
        let (first, rest) = kind.split_first()?;
        match (first, value) {
            (b'b', Value::Flag(flag)) => self.0.extend(u32::from(*flag).to_ne_bytes()),
            (b'y', Value::Number(number)) => self.0.push(u8::try_from(*number).ok()?),
            (b'u', Value::Number(number)) => {
                self.0.extend(u32::try_from(*number).ok()?.to_ne_bytes());
            }
            (b'i', Value::Number(number)) => {
                let number = i32::try_from(number.cast_signed()).ok()?;
                self.0.extend(number.to_ne_bytes());
            }
            (b't', Value::Number(number)) => self.0.extend(number.to_ne_bytes()),
            (b's' | b'o', Value::Text(text)) => {
                self.0.extend(u32::try_from(text.len()).ok()?.to_ne_bytes());
                self.0.extend(text.bytes().chain([0]));
            }
            (b'g', Value::Text(text)) => {
                self.0.push(u8::try_from(text.len()).ok()?);
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
                place.copy_from_slice(&length.to_ne_bytes());
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
