use super::value::{Reader, Writer};
use super::{Kind, MAX_BYTES, Message, Value};

fn variant(signature: &str, value: Value) -> Value {
    Value::Variant(signature.to_owned(), Box::new(value))
}

#[test]
fn values_are_read_as_they_were_written() {
    let entry = |key: &str, value| Value::List(vec![Value::text(key), value]);
    let rows = [
        ("b", Value::Flag(true)),
        ("y", Value::Number(255)),
        ("i", Value::Number(0xffff_fff9)),
        ("t", Value::Number(u64::MAX)),
        ("s", Value::text("héllo")),
        ("g", Value::text("a{sv}")),
        ("as", Value::List(vec![])),
        ("a(susso)", Value::List(vec![])),
        ("at", Value::List(vec![Value::Number(1), Value::Number(2)])),
        (
            "a{sv}",
            Value::List(vec![
                entry("one", variant("b", Value::Flag(false))),
                entry(
                    "two",
                    variant(
                        "(uo)",
                        Value::List(vec![Value::Number(1000), Value::text("/a")]),
                    ),
                ),
                entry("three", variant("v", variant("y", Value::Number(3)))),
            ]),
        ),
    ];
    for (signature, value) in rows {
        // Behind a byte, so that it has to be aligned.
        let signature = format!("y{signature}");
        let values = vec![Value::Number(1), value];
        let bytes = Writer::bytes(&signature, &values).unwrap();
        let read = Reader::new(&bytes).values(signature.as_bytes());
        assert_eq!(read.as_ref(), Some(&values), "{signature}");
        for length in 0..bytes.len() {
            let read = Reader::new(&bytes[..length]).values(signature.as_bytes());
            assert_eq!(read, None, "{signature} of {length} bytes");
        }
    }
}

#[test]
fn what_is_no_type_or_nests_too_deep_is_not_read() {
    let bytes = [0; 4096];
    for signature in ["a", "(", ")", "()", "a{", "(s", "z", "s)", "{sv}}", "a(}"] {
        let read = Reader::new(&bytes).values(signature.as_bytes());
        assert_eq!(read, None, "{signature}");
    }
    for signature in ["(".repeat(200) + "y" + &")".repeat(200), "v".to_owned()] {
        assert_eq!(Reader::new(&bytes).values(signature.as_bytes()), None);
    }
    // A variant of a variant, and so on without end.
    let nested = [1, b'v', 0].repeat(1000);
    assert_eq!(Reader::new(&nested).values(b"v"), None);
    // An array that says it is longer than the message.
    let long = u32::MAX.to_ne_bytes();
    assert_eq!(Reader::new(&long).values(b"ay"), None);
    assert_eq!(Reader::new(&long).values(b"s"), None);
}

#[test]
fn a_message_is_read_as_it_was_written_and_its_length_is_known_from_its_beginning() {
    let message = Message {
        kind: Kind::Signal,
        serial: 7,
        path: "/org/freedesktop/login1/session/_32".to_owned(),
        interface: "org.freedesktop.DBus.Properties".to_owned(),
        member: "PropertiesChanged".to_owned(),
        signature: "su".to_owned(),
        body: vec![Value::text("a"), Value::Number(2)],
        ..Message::default()
    };
    let bytes = message.bytes().unwrap();
    assert_eq!(Message::parse(&bytes).unwrap(), message);
    assert_eq!(Message::length(&bytes[..15]).unwrap(), None);
    assert_eq!(Message::length(&bytes[..16]).unwrap(), Some(bytes.len()));
    for length in 0..bytes.len() {
        assert!(Message::parse(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_message_that_is_too_long_or_foreign_is_refused_before_it_is_received() {
    let bytes = Message::default().bytes().unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Message::length(&bytes).map_err(|error| error.to_string())
    };
    let foreign = Err("a message is of another byte order or version".to_owned());
    assert_eq!(with(0, b'?'), foreign);
    assert_eq!(with(3, 2), foreign);
    let long = Err(format!("a message has more than {MAX_BYTES} bytes"));
    assert_eq!(with(6, 2), long);
    assert_eq!(with(14, 2), long);
    let mut largest = bytes.clone();
    largest[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    largest[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert!(Message::length(&largest).is_err());
}

#[test]
fn any_bytes_are_a_message_or_none() {
    let message = Message {
        kind: Kind::Answer,
        signature: "a{sv}".to_owned(),
        body: vec![Value::List(vec![Value::List(vec![
            Value::text("LockedHint"),
            variant("b", Value::Flag(true)),
        ])])],
        answers: 3,
        ..Message::default()
    };
    let bytes = message.bytes().unwrap();
    for at in 0..bytes.len() {
        for byte in 0..=255 {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            let _ = Message::length(&bytes);
            let _ = Message::parse(&bytes);
        }
    }
}
