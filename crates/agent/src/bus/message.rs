//! The messages on a bus: a header, and a body of values.

use std::io;

use super::value::{Reader, Value, Writer};

/// The maximum size of a message in bytes: that of some hundred sessions.
pub const MAX_BYTES: usize = 128 * 1024;
/// The part of the header that is always there.
const FIXED: usize = 16;
/// The signature of the fields of the header.
const FIELDS: &str = "a(yv)";
/// The byte order of the hosts that are supported, which is that of a bus on them.
const ORDER: u8 = b'l';

/// What a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// It calls a method.
    #[default]
    Call,
    /// It answers a call.
    Answer,
    /// It refuses a call.
    Error,
    /// It says that something has happened.
    Signal,
    /// One of a later version of the protocol, to be ignored.
    Other,
}

const KINDS: [(u8, Kind); 4] = [
    (1, Kind::Call),
    (2, Kind::Answer),
    (3, Kind::Error),
    (4, Kind::Signal),
];

/// A message. A text that it does not have is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// Its number among those of its sender, from 1 on.
    pub serial: u32,
    /// The serial of the call that it answers.
    pub answers: u32,
    /// The name of the service to which it goes; empty after it was read.
    pub destination: String,
    /// The object that is called, or says something.
    pub path: String,
    /// The interface of the member.
    pub interface: String,
    /// The method or signal.
    pub member: String,
    /// The name of an error.
    pub error: String,
    /// The types of the body.
    pub signature: String,
    /// The values.
    pub body: Vec<Value>,
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a message {why}"))
}

impl Message {
    /// The bytes of it.
    ///
    /// # Errors
    /// The body is not of the signature.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let kind = KINDS.iter().find(|row| row.1 == self.kind);
        let (kind, _) = kind.ok_or_else(|| invalid("has no kind"))?;
        let field = |code: u64, signature: &str, text: &str| {
            let value = Value::Variant(signature.to_owned(), Box::new(Value::text(text)));
            (!text.is_empty()).then(|| Value::List(vec![Value::Number(code), value]))
        };
        let mut fields: Vec<Value> = [
            field(1, "o", &self.path),
            field(2, "s", &self.interface),
            field(3, "s", &self.member),
            field(4, "s", &self.error),
            field(6, "s", &self.destination),
            field(8, "g", &self.signature),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.answers != 0 {
            let serial = Box::new(Value::Number(self.answers.into()));
            let serial = Value::Variant("u".to_owned(), serial);
            fields.push(Value::List(vec![Value::Number(5), serial]));
        }
        let body = Writer::bytes(&self.signature, &self.body);
        let body = body.ok_or_else(|| invalid("is not of its signature"))?;
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let head = [
            Value::Number(ORDER.into()),
            Value::Number((*kind).into()),
            Value::Number(0),
            Value::Number(1),
            Value::Number(length),
            Value::Number(self.serial.into()),
            Value::List(fields),
        ];
        let head = Writer::bytes(&format!("yyyyuu{FIELDS}"), &head);
        let mut bytes = head.ok_or_else(|| invalid("is too long"))?;
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(body);
        Ok(bytes)
    }

    /// How many bytes the message has that begins so. `None` while that is not known.
    ///
    /// # Errors
    /// It is no message of a bus on this host, or longer than any that is awaited.
    pub fn length(bytes: &[u8]) -> io::Result<Option<usize>> {
        let Some(fixed) = bytes.get(..FIXED) else {
            return Ok(None);
        };
        if fixed.first() != Some(&ORDER) || fixed.get(3) != Some(&1) {
            return Err(invalid("is of another byte order or version"));
        }
        let word = |at: usize| {
            let word = fixed.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(word)).ok()
        };
        let length = word(4).zip(word(12)).and_then(|(body, fields)| {
            let head = FIXED.checked_add(fields)?.checked_next_multiple_of(8)?;
            head.checked_add(body)
        });
        match length {
            Some(length) if length <= MAX_BYTES => Ok(Some(length)),
            _ => Err(invalid(&format!("has more than {MAX_BYTES} bytes"))),
        }
    }

    /// The message of these bytes, which are of [`length`](Self::length).
    ///
    /// # Errors
    /// They are none.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        Self::read(bytes).ok_or_else(|| invalid("cannot be read"))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let head = format!("yyyyuu{FIELDS}");
        let mut reader = Reader::new(bytes);
        let head = reader.values(head.as_bytes())?;
        let [
            _,
            Value::Number(kind),
            _,
            _,
            _,
            Value::Number(serial),
            fields,
        ] = &head[..]
        else {
            return None;
        };
        let known = KINDS.iter().find(|row| u64::from(row.0) == *kind);
        let mut message = Self {
            kind: known.map_or(Kind::Other, |row| row.1),
            serial: u32::try_from(*serial).ok()?,
            ..Self::default()
        };
        for field in fields.elements() {
            let [Value::Number(code), Value::Variant(_, value)] = field.elements() else {
                return None;
            };
            let text = || value.as_text().map(str::to_owned);
            match (code, &**value) {
                (1, _) => message.path = text()?,
                (2, _) => message.interface = text()?,
                (3, _) => message.member = text()?,
                (4, _) => message.error = text()?,
                (5, Value::Number(serial)) => {
                    message.answers = u32::try_from(*serial).ok()?;
                }
                (8, _) => message.signature = text()?,
                _ => {}
            }
        }
        let body = reader.rest_aligned()?;
        message.body = Reader::new(body).values(message.signature.as_bytes())?;
        Some(message)
    }
}
