use super::{Event, NAMING, events, subscription};

/// A datagram as sent by a kernel 6.18 on a little-endian machine.
fn recorded(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pair =
        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

const HEADERS: &str = "4c000000 0300 0000 022f0000 00000000
    01000000 01000000 022f0000 00000000 2800 0000";

const ANSWERED: &str = "4c000000 0300 0000 012f0000 00000000
    01000000 01000000 07000000 08000000 2800 0000
    00000000 01000000 e8197d3991000000 00000000 00000000 00000000 00000000 00000000 00000000";

fn with(particulars: &str) -> Vec<u8> {
    recorded(&format!("{HEADERS} {particulars}"))
}

#[test]
fn recorded_datagrams_are_decoded() {
    let rows = [
        (
            "01000000 01000000 5ae97d3991000000 c2790000 c2790000 f3790000 f3790000 00000000 00000000",
            vec![Event::Named(0x79f3)],
        ),
        (
            "02000000 01000000 29fa823991000000 f3790000 f3790000 00000000 00000000 00000000 00000000",
            vec![Event::Named(0x79f3)],
        ),
        (
            "00020000 01000000 29fa823991000000 f3790000 f3790000 73746561 6d000000 00000000 00000000",
            vec![Event::Named(0x79f3)],
        ),
        (
            "00000080 01000000 a7cc8c3991000000 f3790000 f3790000 00000000 11000000 c2790000 c2790000",
            // The process ends.
            vec![],
        ),
    ];
    for (particulars, found) in rows {
        assert_eq!(events(&with(particulars)), found);
    }
    assert_eq!(
        events(&recorded(ANSWERED)),
        [Event::Answered {
            acknowledgement: 8,
            error: 0
        }]
    );
}

#[test]
fn events_of_threads_are_ignored() {
    for particulars in [
        // A thread is created, a thread is renamed, a thread ends.
        "01000000 01000000 390a5eee6a000000 3c000000 01000000 fb520000 40440000 00000000 00000000",
        "00020000 01000000 29fa823991000000 fb520000 40440000 73746561 6d000000 00000000 00000000",
        "00000080 00000000 21b8de3c91000000 a3790000 a1790000 00000000 ffffffff 00000000 00000000",
    ] {
        assert_eq!(events(&with(particulars)), [], "{particulars}");
    }
}

#[test]
fn one_datagram_may_contain_several_events() {
    let one = with(
        "02000000 01000000 29fa823991000000 f3790000 f3790000 00000000 00000000 00000000 00000000",
    );
    let both = [one.clone(), one].concat();
    assert_eq!(events(&both), [Event::Named(0x79f3); 2]);
}

#[test]
fn truncated_and_changed_datagrams_yield_at_most_one_event() {
    let whole = recorded(ANSWERED);
    for length in 0..whole.len() {
        let found = events(&whole[..length]);
        assert!(found.is_empty(), "{length} bytes: {found:?}");
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            assert!(events(&changed).len() <= 1, "byte {at} = {value}");
        }
    }
    let elsewhere =
        recorded(&ANSWERED.replacen("01000000 01000000", "01000000 02000000", 1));
    assert_eq!(events(&elsewhere), []);
}

#[test]
fn the_length_fields_of_a_subscription_are_correct() {
    for (filter, length) in [(None, 40), (Some(NAMING), 44)] {
        let datagram = subscription(7, filter);
        assert_eq!(datagram.len(), length);
        assert_eq!(datagram[0..4], u32::try_from(length).unwrap().to_ne_bytes());
        assert_eq!(
            datagram[32..34],
            u16::try_from(length - 36).unwrap().to_ne_bytes()
        );
    }
}
