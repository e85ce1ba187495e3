//! The socket over which the kernel tells which processes start.

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

/// How long the kernel is given to answer. It answers within the call that asks; where it does
/// not mean to, it says nothing at all.
const ANSWER: Duration = Duration::from_millis(200);

/// How many bytes of events may wait to be read; beyond that the kernel drops some and says so.
const BACKLOG: usize = 4 * 1024 * 1024;

/// More than one datagram of the connector takes.
const DATAGRAM: usize = 4096;

/// Why the kernel does not tell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The kernel has no connector.
    #[error("the kernel has no process connector (CONFIG_PROC_EVENTS)")]
    NotBuilt,
    /// A privilege is missing.
    #[error(
        "the kernel requires CAP_NET_ADMIN to tell of processes (it does before Linux 6.6); \
         add the capability NET_ADMIN"
    )]
    Privilege,
    /// A security module forbids it.
    #[error(
        "a security module of this host (SELinux, AppArmor) forbids the socket of the process \
         connector; allow it netlink_connector_socket"
    )]
    Forbidden,
    /// The connector is not in this network namespace.
    #[error(
        "the process connector is in the host's network namespace only; set hostNetwork: true"
    )]
    NetworkNamespace,
    /// The subscription was not answered.
    #[error(
        "the kernel did not answer the subscription: it tells of processes in the host's pid \
         and user namespaces only; set hostPID: true"
    )]
    Silent,
    /// Something else.
    #[error("subscribing to process events")]
    Failed(#[from] io::Error),
}

/// What was heard.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// These events, in the kernel's order.
    pub events: Vec<Event>,
    /// There were more events than could wait: some are lost.
    pub overrun: bool,
}

/// A subscription to process events; it ends when it is dropped.
#[derive(Debug)]
pub struct Connector {
    /// The netlink socket. It is one of datagrams, and waiting for them is all that is asked of
    /// this type.
    socket: UnixDatagram,
}

impl Connector {
    /// Subscribes.
    ///
    /// # Errors
    /// Why the kernel does not tell, and what would change that.
    pub async fn subscribe() -> Result<Self, Refused> {
        let socket = open().map_err(refused)?;
        // Datagrams to the group reach every listener: the mark tells whose answer it is.
        let mark = std::process::id();
        ask(&socket, mark, None)?;
        let mut connector = Self {
            socket: UnixDatagram::from_std(socket.into())?,
        };
        let answered = timeout(ANSWER, connector.answer(mark.wrapping_add(1))).await;
        match answered.map_err(|_| Refused::Silent)?? {
            0 => {}
            error => {
                let error = i32::try_from(error).unwrap_or_default();
                return Err(refused(Errno::from_raw_os_error(error)));
            }
        }
        // Never answered: a kernel before 6.6 does not know of filters and passes over it, and
        // a later one's filter holds back its own answer too.
        ask(&connector.socket, mark, Some(event::NAMING))?;
        Ok(connector)
    }

    /// The error number with which the kernel answers the subscription.
    async fn answer(&mut self, mark: u32) -> io::Result<u32> {
        loop {
            for event in self.hear().await?.events {
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

    /// Waits for events, and takes all that have come.
    ///
    /// Nothing is lost when the future is dropped before it is done.
    ///
    /// # Errors
    /// The socket does not work any more.
    pub async fn hear(&mut self) -> io::Result<Heard> {
        loop {
            self.socket.readable().await?;
            let heard = self
                .socket
                .try_io(Interest::READABLE, || take(&self.socket));
            match heard {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                heard => return heard,
            }
        }
    }
}

/// Asks for events, or for fewer of them.
fn ask(socket: impl AsFd, mark: u32, filter: Option<u32>) -> Result<(), Refused> {
    let datagram = event::subscription(mark, filter);
    send(socket, &datagram, SendFlags::empty()).map_err(refused)?;
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
    // Without the privilege the kernel grants what its own limit allows, which does too.
    if set_socket_recv_buffer_size_force(&socket, BACKLOG).is_err() {
        let _ = set_socket_recv_buffer_size(&socket, BACKLOG);
    }
    Ok(socket)
}

/// At most this many events at a time, so that a storm of them holds up nothing else.
const AT_A_TIME: usize = 256;

/// The events that have come; an error of the kind `WouldBlock` if there is none.
fn take(socket: &UnixDatagram) -> io::Result<Heard> {
    let mut heard = Heard::default();
    let mut datagram = [0; DATAGRAM];
    while heard.events.len() < AT_A_TIME {
        let received = recvfrom(socket, &mut datagram[..], RecvFlags::empty());
        let (bytes, _, sender) = match received {
            Ok(received) => received,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) if heard != Heard::default() => break,
            Err(Errno::NOBUFS) => {
                heard.overrun = true;
                break;
            }
            Err(error) => return Err(error.into()),
        };
        // Whoever has the privilege may send to the group; only the kernel is port 0.
        let sender = sender.and_then(|sender| SocketAddrNetlink::try_from(sender).ok());
        if sender.is_some_and(|sender| sender.pid() == 0) {
            let datagram = datagram.get(..bytes).unwrap_or_default();
            heard.events.extend(event::events(datagram));
        }
    }
    Ok(heard)
}

fn refused(error: Errno) -> Refused {
    match error {
        Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => Refused::NotBuilt,
        Errno::PERM => Refused::Privilege,
        Errno::ACCESS => Refused::Forbidden,
        Errno::CONNREFUSED => Refused::NetworkNamespace,
        other => Refused::Failed(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::net::sockopt::set_socket_recv_buffer_size;

    use super::{Connector, Refused, refused};
    use crate::detect::told;
    use crate::event::Event;

    /// A connector, where the kernel tells of processes; says that nothing is tested elsewhere.
    async fn subscribed() -> Option<Connector> {
        let connector = Connector::subscribe().await;
        connector
            .inspect_err(|refused| {
                eprintln!("NOT TESTED, needs process events: {refused}");
            })
            .ok()
    }

    #[tokio::test]
    async fn events_that_found_no_room_are_told_as_an_overrun() {
        let Some(mut connector) = subscribed().await else {
            return;
        };
        // The kernel rounds this up to room for a few events.
        set_socket_recv_buffer_size(&connector.socket, 1).unwrap();
        for _ in 0..50 {
            Command::new("true").status().unwrap();
        }
        let mut heard = connector.hear().await.unwrap();
        assert!(!heard.events.is_empty() || heard.overrun);
        while !heard.overrun {
            heard = connector.hear().await.unwrap();
        }
        // And it goes on.
        Command::new("true").status().unwrap();
        while heard.events.is_empty() {
            heard = connector.hear().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_kernel_that_can_keeps_the_ends_of_processes_to_itself() {
        let Some(mut connector) = subscribed().await else {
            return;
        };
        let run = || {
            let mut process = Command::new("true").spawn().unwrap();
            process.wait().unwrap();
            process.id()
        };
        let (first, second) = (run(), run());
        let mut heard = Vec::new();
        while !heard.contains(&Event::Started(second)) {
            heard.extend(connector.hear().await.unwrap().events);
        }
        assert!(heard.contains(&Event::Started(first)));
        if knows_of_filters() {
            assert!(!heard.contains(&Event::Ended(first)));
        }
    }

    /// Whether this kernel is 6.6 or later.
    fn knows_of_filters() -> bool {
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
        let mut told: Vec<String> =
            errors.iter().map(|error| told(&refused(*error))).collect();
        told.push(Refused::Silent.to_string());
        insta::assert_snapshot!(told.join("\n"));
    }
}
