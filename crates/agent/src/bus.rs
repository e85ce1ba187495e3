//! A client of a D-Bus: for the few calls of this agent to systemd-logind on the bus of the system, and
//! to the notifications of a desktop on that of its session. `zbus` would bring 25 crates, and takes
//! messages of 128 MiB, twice the memory of the service.

mod address;
mod message;
#[cfg(test)]
mod tests;
mod value;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

pub use address::socket;
pub use message::{Kind, MAX_BYTES, Message};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;
pub use value::Value;

/// How long a connection, a call or a write may take.
pub const WAIT: Duration = Duration::from_secs(2);
/// How many signals are kept while an answer is awaited. Others are dropped.
const MAX_SIGNALS: usize = 64;
/// The maximum size in bytes of what is said before messages.
const MAX_GREETING: usize = 4096;
/// The user is that of the socket, whoever that is in which namespace.
const GREETING: &[u8] = b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";

/// The bus itself, as one of its services.
const BUS: Service<'_> = Service {
    name: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
};

/// Where a call goes.
#[derive(Clone, Copy, Debug)]
pub struct Service<'a> {
    /// Its name on the bus.
    pub name: &'a str,
    /// The object that is called.
    pub path: &'a str,
    /// The interface that has the method.
    pub interface: &'a str,
}

/// A connection to a bus.
#[derive(Debug)]
pub struct Bus {
    stream: UnixStream,
    /// What was received of the next messages.
    received: Vec<u8>,
    serial: u32,
    signals: VecDeque<Message>,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The service has refused it. The connection goes on.
    #[error("{member}: {name}")]
    Refused {
        /// The method.
        member: String,
        /// The name of the error.
        name: String,
    },
    /// The connection is of no use any more.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

impl From<CallError> for io::Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Broken(error) => error,
            refused @ CallError::Refused { .. } => Self::other(refused.to_string()),
        }
    }
}

/// At most [`WAIT`].
async fn soon<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let none = || io::Error::new(io::ErrorKind::TimedOut, "the bus does not answer");
    timeout(WAIT, work).await.unwrap_or_else(|_| Err(none()))
}

impl Bus {
    /// Connects to the bus whose socket is at a path.
    ///
    /// # Errors
    /// There is none, it refuses, or does not answer soon.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        let stream = soon(UnixStream::connect(path)).await.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Self::over(stream).await
    }

    /// Greets the bus at the other end.
    ///
    /// # Errors
    /// It refuses, or does not answer soon.
    pub async fn over(stream: UnixStream) -> io::Result<Self> {
        let mut bus = Self {
            stream,
            received: Vec::new(),
            serial: 0,
            signals: VecDeque::new(),
        };
        soon(bus.greet()).await?;
        bus.call(BUS, "Hello", "", vec![]).await?;
        Ok(bus)
    }

    async fn greet(&mut self) -> io::Result<()> {
        self.stream.write_all(GREETING).await?;
        loop {
            let line = self.line().await?;
            if line.starts_with("OK ") {
                return Ok(());
            }
            if !line.starts_with("DATA") {
                return Err(io::Error::other("the bus refuses this user"));
            }
        }
    }

    /// Waits for the next line of what is said before messages.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            let end = self.received.windows(2).position(|two| two == b"\r\n");
            if let Some(end) = end {
                let line: Vec<u8> = self.received.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.received.len() > MAX_GREETING {
                return Err(io::Error::other("the bus says too much"));
            }
            self.read().await?;
        }
    }

    /// Waits for more bytes. None are lost if the future is dropped.
    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Waits for the next message. None is lost if the future is dropped.
    async fn receive(&mut self) -> io::Result<Message> {
        loop {
            if let Some(length) = Message::length(&self.received)?
                && let Some(bytes) = self.received.get(..length)
            {
                let message = Message::parse(bytes)?;
                self.received.drain(..length);
                return Ok(message);
            }
            self.read().await?;
        }
    }

    /// Calls a method, and returns the body of the answer.
    ///
    /// # Errors
    /// The service refuses; or the connection has ended, or does not answer soon.
    pub async fn call(
        &mut self,
        service: Service<'_>,
        member: &str,
        signature: &str,
        body: Vec<Value>,
    ) -> Result<Vec<Value>, CallError> {
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        let message = Message {
            kind: Kind::Call,
            serial: self.serial,
            destination: service.name.to_owned(),
            path: service.path.to_owned(),
            interface: service.interface.to_owned(),
            member: member.to_owned(),
            signature: signature.to_owned(),
            body,
            ..Message::default()
        };
        let answer = soon(self.answer(&message)).await?;
        match answer.kind {
            Kind::Answer => Ok(answer.body),
            _ => Err(CallError::Refused {
                member: message.member,
                name: answer.error,
            }),
        }
    }

    async fn answer(&mut self, call: &Message) -> io::Result<Message> {
        self.stream.write_all(&call.bytes()?).await?;
        loop {
            let message = self.receive().await?;
            match message.kind {
                Kind::Answer | Kind::Error if message.answers == call.serial => {
                    return Ok(message);
                }
                Kind::Signal if self.signals.len() < MAX_SIGNALS => {
                    self.signals.push_back(message);
                }
                _ => {}
            }
        }
    }

    /// Subscribes to the signals of a rule.
    ///
    /// # Errors
    /// As of [`call`](Self::call).
    pub async fn subscribe(&mut self, rule: &str) -> Result<(), CallError> {
        let body = vec![Value::text(rule)];
        self.call(BUS, "AddMatch", "s", body).await.map(|_| ())
    }

    /// Waits for the next signal. None is lost if the future is dropped.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn signal(&mut self) -> io::Result<Message> {
        if let Some(signal) = self.signals.pop_front() {
            return Ok(signal);
        }
        loop {
            let message = self.receive().await?;
            if message.kind == Kind::Signal {
                return Ok(message);
            }
        }
    }

    /// Forgets the signals that have come so far.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn drop_signals(&mut self) -> io::Result<()> {
        use futures::FutureExt as _;
        // Another client may send signals without end.
        for _ in 0..MAX_SIGNALS {
            match self.signal().now_or_never() {
                None => break,
                Some(signal) => signal.map(|_| ())?,
            }
        }
        Ok(())
    }
}
