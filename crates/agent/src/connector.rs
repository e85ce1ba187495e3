//! The netlink socket of the kernel's process connector, which sends process events.
//! What was measured and what else there is: `internals/decisions/0044-processes-by-the-connector.md`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, send,
    socket_with,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::event::{self, Event};

/// The multicast group of process events.
const GROUP: u32 = 1;

/// How long to wait for the kernel's response. The kernel responds within the send call; if it
/// rejects the subscription silently, it sends no response at all.
const ANSWER: Duration = Duration::from_millis(200);

/// The size of the receive buffer in bytes; beyond that the kernel drops events and reports an
/// overrun.
const BACKLOG: usize = 4 * 1024 * 1024;

/// Larger than a datagram of the connector.
const DATAGRAM: usize = 4096;

/// Why process events are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The kernel has no process connector.
    #[error("the kernel has no process connector (CONFIG_PROC_EVENTS)")]
    NotBuilt,
    /// A privilege is missing.
    #[error(
        "the kernel requires CAP_NET_ADMIN for process events (before Linux 6.6); add the \
         capability NET_ADMIN"
    )]
    Privilege,
    /// A security module forbids it.
    #[error(
        "a security module of this host (SELinux, AppArmor) denies the socket of the process \
         connector; allow netlink_connector_socket"
    )]
    Forbidden,
    /// The connector is not available in this network namespace.
    #[error(
        "the process connector is only available in the host's network namespace; set \
         hostNetwork: true"
    )]
    NetworkNamespace,
    /// The kernel did not respond to the subscription.
    #[error(
        "the kernel did not confirm the subscription: process events are only available in the \
         host's PID and user namespaces; set hostPID: true"
    )]
    Silent,
    /// Any other error.
    #[error("subscribing to process events")]
    Failed(#[from] io::Error),
}

/// The result of one receive.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// The events, in the kernel's order.
    pub events: Vec<Event>,
    /// The receive buffer was full: events were lost.
    pub overrun: bool,
}

/// A subscription to process events; it ends when this is dropped.
#[derive(Debug)]
pub struct Connector {
    /// The netlink socket. This type supports any datagram socket, and is only used to wait for
    /// datagrams.
    socket: UnixDatagram,
}

impl Connector {
    /// Subscribes.
    ///
    /// # Errors
    /// Process events are not available; the error includes the reason and the remedy.
    pub async fn subscribe() -> Result<Self, SubscribeError> {
        let socket = open().map_err(subscribe_error)?;
        // Datagrams to the group reach every listener: the mark identifies the response to this
        // one.
        let mark = std::process::id();
        subscribe(&socket, mark, None)?;
        let mut connector = Self {
            socket: UnixDatagram::from_std(socket.into())?,
        };
        let answered = timeout(ANSWER, connector.answer(mark.wrapping_add(1))).await;
        match answered.map_err(|_| SubscribeError::Silent)?? {
            0 => {}
            error => {
                let error = i32::try_from(error).unwrap_or_default();
                return Err(subscribe_error(Errno::from_raw_os_error(error)));
            }
        }
        // The kernel does not respond: before 6.6 it ignores filters, and a later kernel's filter
        // also suppresses the response to itself.
        subscribe(&connector.socket, mark, Some(event::NAMING))?;
        Ok(connector)
    }

    /// The error number in the kernel's response to the subscription.
    async fn answer(&mut self, mark: u32) -> io::Result<u32> {
        loop {
            for event in self.receive().await?.events {
                match event {
                    Event::Answered {
                        acknowledgement,
                        error,
                    } if acknowledgement == mark => return Ok(error),
                    _ => {}
                }
            }
        }
    }

    /// Waits for events, and returns all that have arrived.
    ///
    /// No event is lost if the future is dropped before it completes.
    ///
    /// # Errors
    /// The socket has failed.
    pub async fn receive(&mut self) -> io::Result<EventBatch> {
        loop {
            self.socket.readable().await?;
            let received = self
                .socket
                .try_io(Interest::READABLE, || take(&self.socket));
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
    }
}

/// Requests events, optionally with a filter.
fn subscribe(
    socket: impl AsFd,
    mark: u32,
    filter: Option<u32>,
) -> Result<(), SubscribeError> {
    let datagram = event::subscription(mark, filter);
    send(socket, &datagram, SendFlags::empty()).map_err(subscribe_error)?;
    Ok(())
}

fn open() -> Result<OwnedFd, Errno> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(netlink::CONNECTOR),
    )?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUP))?;
    // Without the privilege the kernel limits the size to its own maximum, which is sufficient.
    if set_socket_recv_buffer_size_force(&socket, BACKLOG).is_err() {
        let _ = set_socket_recv_buffer_size(&socket, BACKLOG);
    }
    Ok(socket)
}

/// The maximum number of datagrams per receive, so that a storm of events does not block other work.
const AT_A_TIME: usize = 256;

/// The events that have arrived; an error of the kind `WouldBlock` if there are none.
fn take(socket: &UnixDatagram) -> io::Result<EventBatch> {
    let mut received = EventBatch::default();
    let mut datagram = [0; DATAGRAM];
    for _ in 0..AT_A_TIME {
        let result = recvfrom(socket, &mut datagram[..], RecvFlags::empty());
        let (bytes, _, sender) = match result {
            Ok(received) => received,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) if received != EventBatch::default() => break,
            Err(Errno::NOBUFS) => {
                received.overrun = true;
                break;
            }
            Err(error) => return Err(error.into()),
        };
        // Any privileged process may send to the group; only the kernel has port 0.
        let sender = sender.and_then(|sender| SocketAddrNetlink::try_from(sender).ok());
        if sender.is_some_and(|sender| sender.pid() == 0) {
            let datagram = datagram.get(..bytes).unwrap_or_default();
            received.events.extend(event::events(datagram));
        }
    }
    Ok(received)
}

fn subscribe_error(error: Errno) -> SubscribeError {
    match error {
        Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => SubscribeError::NotBuilt,
        Errno::PERM => SubscribeError::Privilege,
        Errno::ACCESS => SubscribeError::Forbidden,
        Errno::CONNREFUSED => SubscribeError::NetworkNamespace,
        other => SubscribeError::Failed(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::net::sockopt::set_socket_recv_buffer_size;

    use super::{Connector, DATAGRAM, SubscribeError, event, subscribe_error};
    use crate::detect::with_causes;
    use crate::event::Event;

    /// A connector if process events are available; else prints a note that the test is skipped.
    async fn subscribed() -> Option<Connector> {
        let connector = Connector::subscribe().await;
        connector
            .inspect_err(|error| {
                eprintln!("NOT TESTED, needs process events: {error}");
            })
            .ok()
    }

    #[tokio::test]
    async fn lost_events_are_reported_as_an_overrun() {
        let Some(mut connector) = subscribed().await else {
            return;
        };
        // The kernel rounds this up to the size of a few events.
        set_socket_recv_buffer_size(&connector.socket, 1).unwrap();
        for _ in 0..50 {
            Command::new("true").status().unwrap();
        }
        let mut received = connector.receive().await.unwrap();
        assert!(!received.events.is_empty() || received.overrun);
        while !received.overrun {
            received = connector.receive().await.unwrap();
        }
        // Events are received again after the overrun.
        Command::new("true").status().unwrap();
        while received.events.is_empty() {
            received = connector.receive().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_kernel_with_filters_sends_no_events_of_ended_processes() {
        let Some(connector) = subscribed().await else {
            return;
        };
        let run = || {
            let mut process = Command::new("true").spawn().unwrap();
            process.wait().unwrap();
            process.id()
        };
        let (first, second) = (run(), run());
        let (mut received, mut kinds) = (Vec::new(), Vec::new());
        let mut datagram = [0; DATAGRAM];
        while !received.contains(&Event::Named(second)) {
            let length = connector.socket.recv(&mut datagram).await.unwrap();
            received.extend(event::events(&datagram[..length]));
            // After the headers of netlink and of the connector.
            kinds.push(datagram[36..40].to_vec());
        }
        assert!(received.contains(&Event::Named(first)));
        if supports_filters() {
            let ended = 0x8000_0000_u32.to_ne_bytes().to_vec();
            assert!(!kinds.contains(&ended), "{kinds:?}");
        }
    }

    /// Whether this kernel is 6.6 or later.
    fn supports_filters() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split('.').map(str::parse::<u32>);
        let mut next = || numbers.next().unwrap().unwrap();
        (next(), next()) >= (6, 6)
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        use rustix::io::Errno;
        let errors = [
            Errno::PROTONOSUPPORT,
            Errno::PERM,
            Errno::ACCESS,
            Errno::CONNREFUSED,
            Errno::NOMEM,
        ];
        let mut messages: Vec<String> = errors
            .iter()
            .map(|error| with_causes(&subscribe_error(*error)))
            .collect();
        messages.push(SubscribeError::Silent.to_string());
        insta::assert_snapshot!(messages.join("\n"));
    }
}
