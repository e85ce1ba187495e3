//! A played bus with one service, such as logind, on a socket of its own, and a real one.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use fivespot_agent::bus::{Kind, Message, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast;
use tokio::task::{JoinHandle, JoinSet};

/// What a service answers to a call: the body with its signature. `None`: nothing ever.
type Answer = Option<(&'static str, Vec<Value>)>;
type Service = dyn FnMut(&Message) -> Answer + Send;

/// The program of a real bus at an address.
pub(crate) fn daemon(address: &str) -> Command {
    let mut command = Command::new("dbus-daemon");
    command
        .args(["--session", "--nofork", "--nopidfile", "--address"])
        .arg(address);
    command
}

/// A bus that ends when this is dropped.
pub(crate) struct PlayedBus {
    pub(crate) path: PathBuf,
    calls: Arc<Mutex<VecDeque<Message>>>,
    signals: broadcast::Sender<Message>,
    task: JoinHandle<()>,
}

impl Drop for PlayedBus {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

impl PlayedBus {
    pub(crate) fn at(
        path: PathBuf,
        service: impl FnMut(&Message) -> Answer + Send + 'static,
    ) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let (signals, _) = broadcast::channel(256);
        let calls = Arc::new(Mutex::new(VecDeque::new()));
        let service: Arc<Mutex<Service>> = Arc::new(Mutex::new(service));
        let (emitted, called) = (signals.clone(), calls.clone());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let connection =
                    serve(stream, service.clone(), called.clone(), emitted.subscribe());
                connections.spawn(connection);
            }
        });
        Self {
            path,
            calls,
            signals,
            task,
        }
    }

    /// How many calls of a member there were.
    pub(crate) fn calls(&self, member: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.member == member).count()
    }

    /// The last call of a member.
    pub(crate) fn last(&self, member: &str) -> Option<Message> {
        let calls = self.calls.lock().unwrap();
        calls.iter().rfind(|call| call.member == member).cloned()
    }

    /// Sends a signal to everybody.
    pub(crate) fn emit(
        &self,
        path: &str,
        interface: &str,
        member: &str,
        (signature, body): (&str, Vec<Value>),
    ) {
        let _ = self.signals.send(Message {
            kind: Kind::Signal,
            serial: 1000,
            path: path.to_owned(),
            interface: interface.to_owned(),
            member: member.to_owned(),
            signature: signature.to_owned(),
            body,
            ..Message::default()
        });
    }
}

/// Greets a client and answers its calls until it goes.
async fn serve(
    mut stream: UnixStream,
    service: Arc<Mutex<Service>>,
    calls: Arc<Mutex<VecDeque<Message>>>,
    mut signals: broadcast::Receiver<Message>,
) {
    let begin = b"BEGIN\r\n";
    let mut received = Vec::new();
    while !received.windows(begin.len()).any(|end| end == begin) {
        if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
    }
    assert!(received.starts_with(b"\0AUTH EXTERNAL\r\n"));
    let at = received.windows(begin.len()).position(|end| end == begin);
    received.drain(..at.unwrap() + begin.len());
    let greeting = stream.write_all(b"DATA\r\nOK 0123456789abcdef\r\n").await;
    if greeting.is_err() {
        return;
    }
    loop {
        while let Some(call) = taken(&mut received) {
            let answer = match call.member.as_str() {
                "Hello" => Some(("s", vec![Value::text(":1.7")])),
                "AddMatch" => Some(("", vec![])),
                _ => (service.lock().unwrap())(&call),
            };
            let answer = answer.map(|(signature, body)| Message {
                kind: if signature == "error" {
                    Kind::Error
                } else {
                    Kind::Answer
                },
                serial: 1,
                answers: call.serial,
                error: if signature == "error" {
                    "org.freedesktop.login1.NoSuchSession".to_owned()
                } else {
                    String::new()
                },
                signature: signature.replace("error", ""),
                body,
                ..Message::default()
            });
            calls.lock().unwrap().push_back(call);
            if let Some(answer) = answer
                && stream.write_all(&answer.bytes().unwrap()).await.is_err()
            {
                return;
            }
        }
        tokio::select! {
            read = stream.read_buf(&mut received) => {
                if read.unwrap_or(0) == 0 {
                    return;
                }
            }
            Ok(signal) = signals.recv() => {
                if stream.write_all(&signal.bytes().unwrap()).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn taken(received: &mut Vec<u8>) -> Option<Message> {
    let length = Message::length(received).unwrap()?;
    let message = Message::parse(received.get(..length)?).unwrap();
    received.drain(..length);
    Some(message)
}
