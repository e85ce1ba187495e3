//! The messages of the kernel's process connector: encodes subscriptions and decodes events.
//!
//! A datagram is a netlink header, a connector header and one `proc_event`, all in the machine's
//! native byte order. Anything else is no event.

use crate::proc::Pid;

/// The connector of process events, `CN_IDX_PROC` and `CN_VAL_PROC`.
const PROCESSES: [u32; 2] = [1, 1];

/// The netlink header: length, type, flags, sequence, sender.
const NETLINK_HEADER: usize = 16;
/// The connector header: index, value, sequence, acknowledgement, length, flags.
const CONNECTOR_HEADER: usize = 20;
/// The fields before the details of a `proc_event`: what, processor, timestamp.
const EVENT_HEADER: usize = 16;

/// `NLMSG_DONE`, the type of every message of a connector.
const DONE: u16 = 3;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;

const ANSWER: u32 = 0;
const FORK: u32 = 0x1;
const EXEC: u32 = 0x2;
const COMM: u32 = 0x200;

/// The events after which a process has a new name. A kernel with filters (6.6 and later) is
/// requested to send only these.
pub(crate) const NAMING: u32 = FORK | EXEC | COMM;

/// A message of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process has a new name: it was forked, has executed a program, or has changed its `comm`.
    Named(Pid),
    /// The kernel's response to the subscription with this acknowledgement: 0, or an error number.
    Answered {
        /// The mark of the subscription plus one.
        acknowledgement: u32,
        /// Zero if it was accepted.
        error: u32,
    },
}

/// The datagram that requests events, only those of `filter` if the kernel supports filters. The
/// response has `mark` plus one.
pub fn subscription(mark: u32, filter: Option<u32>) -> Vec<u8> {
    let mut wish = LISTEN.to_ne_bytes().to_vec();
    wish.extend(filter.into_iter().flat_map(u32::to_ne_bytes));
    let length = NETLINK_HEADER + CONNECTOR_HEADER + wish.len();
    let mut datagram = Vec::with_capacity(length);
    datagram.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    datagram.extend(DONE.to_ne_bytes());
    // No flags, no sequence, no sender: the kernel sets the fields that it needs.
    datagram.extend([0; 10]);
    for word in [PROCESSES[0], PROCESSES[1], mark, mark] {
        datagram.extend(word.to_ne_bytes());
    }
    datagram.extend(u16::try_from(wish.len()).unwrap_or(u16::MAX).to_ne_bytes());
    datagram.extend([0; 2]);
    datagram.extend(wish);
    datagram
}

/// The events of a datagram; other messages are skipped, such as those about threads.
pub fn events(mut datagram: &[u8]) -> Vec<Event> {
    let mut found = Vec::with_capacity(1);
    while let Some(length) =
        word(datagram, 0).and_then(|length| usize::try_from(length).ok())
    {
        if length < NETLINK_HEADER {
            break;
        }
        let Some(message) = datagram.get(NETLINK_HEADER..length) else {
            break;
        };
        found.extend(event(message));
        datagram = datagram
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    found
}

/// The event after a connector header.
fn event(message: &[u8]) -> Option<Event> {
    if [word(message, 0)?, word(message, 4)?] != PROCESSES {
        return None;
    }
    let body = message.get(CONNECTOR_HEADER..)?;
    let particular = |index: usize| word(body, EVENT_HEADER + 4 * index);
    // Where the numbers of the thread and of its process are.
    let thread = match word(body, 0)? {
        ANSWER => {
            return Some(Event::Answered {
                acknowledgement: word(message, 12)?,
                error: particular(0)?,
            });
        }
        FORK => 2,
        EXEC | COMM => 0,
        _ => return None,
    };
    let process = particular(thread + 1)?;
    // The main thread of a process has the number of the process.
    (particular(thread)? == process).then_some(Event::Named(process))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests;
