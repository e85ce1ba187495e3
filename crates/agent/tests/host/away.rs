//! Tests sessions that count only while somebody sits at them, with a played logind.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fivespot_agent::bus::{Bus, Message, Value};
use fivespot_agent::signal::{
    Away, Counted, Now, Reading, Sessions, Signals, Source as _,
};
use jiff::Timestamp;
use tokio::time::{Instant, timeout};

use crate::bus::{PlayedBus, daemon};
use crate::program::unique;

/// As logind writes it, without what identifies a person.
const SESSION: &str = "ACTIVE=1\nSTATE=active\nREMOTE=0\nCLASS=user\nSEAT=seat0\n";
const SESSION_INTERFACE: &str = "org.freedesktop.login1.Session";
/// Longer than a reading that nothing has caused.
const NEVER: Duration = Duration::from_mins(10);

/// The sessions of a host, each with whether it is locked, and idle.
type States = Arc<Mutex<Vec<(String, bool, bool)>>>;

/// A host whose logind is played.
pub(crate) struct Desk {
    pub(crate) root: PathBuf,
    states: States,
    bus: Option<PlayedBus>,
    path: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn property(name: &str, signature: &str, value: Value) -> Value {
    let value = Value::Variant(signature.to_owned(), Box::new(value));
    Value::List(vec![Value::text(name), value])
}

/// What logind answers.
fn answer(states: &States, call: &Message) -> (&'static str, Vec<Value>) {
    let states = states.lock().unwrap();
    let path = |name: &str| format!("/org/freedesktop/login1/session/_3{name}");
    match call.member.as_str() {
        "ListSessions" => {
            let sessions = states.iter().map(|(name, ..)| {
                Value::List(vec![
                    Value::text(name),
                    Value::Number(1000),
                    Value::text("jo"),
                    Value::text("seat0"),
                    Value::Text(path(name)),
                ])
            });
            ("a(susso)", vec![Value::List(sessions.collect())])
        }
        "GetAll" => {
            let state = states.iter().find(|(name, ..)| path(name) == call.path);
            let Some((name, is_locked, is_idle)) = state else {
                return ("error", vec![]);
            };
            let user = Value::List(vec![
                Value::Number(1000),
                Value::text("/org/freedesktop/login1/user/_1000"),
            ]);
            let properties = vec![
                property("Id", "s", Value::text(name)),
                property("User", "(uo)", user),
                property("Timestamp", "t", Value::Number(1_795_770_000_000_000)),
                property("IdleHint", "b", Value::Flag(*is_idle)),
                property("LockedHint", "b", Value::Flag(*is_locked)),
            ];
            ("a{sv}", vec![Value::List(properties)])
        }
        other => panic!("logind is not asked for {other}"),
    }
}

impl Desk {
    /// With one session, at which somebody sits, and no logind yet.
    pub(crate) fn new() -> Self {
        let root = std::env::temp_dir().join(unique("5spot-agent-desk-"));
        fs::create_dir_all(root.join("sessions")).unwrap();
        let desk = Self {
            path: root.join("bus"),
            root,
            states: States::default(),
            bus: None,
        };
        desk.begin("2");
        desk
    }

    pub(crate) fn with_logind() -> Self {
        let mut desk = Self::new();
        desk.start_logind();
        desk
    }

    fn start_logind(&mut self) {
        let states = self.states.clone();
        let service = move |call: &Message| Some(answer(&states, call));
        self.bus = Some(PlayedBus::at(self.path.clone(), service));
    }

    pub(crate) fn begin(&self, name: &str) {
        fs::write(self.root.join("sessions").join(name), SESSION).unwrap();
        let state = (name.to_owned(), false, false);
        self.states.lock().unwrap().push(state);
    }

    pub(crate) fn end(&self, name: &str) {
        fs::remove_file(self.root.join("sessions").join(name)).unwrap();
        self.states.lock().unwrap().retain(|state| state.0 != name);
    }

    /// Locks or unlocks a session, or makes it idle, as a desktop does.
    pub(crate) fn set(&self, name: &str, is_locked: bool, is_idle: bool) {
        for state in self.states.lock().unwrap().iter_mut() {
            if state.0 == name {
                (state.1, state.2) = (is_locked, is_idle);
            }
        }
        let bus = self.bus.as_ref().unwrap();
        let path = format!("/org/freedesktop/login1/session/_3{name}");
        let changed = vec![
            Value::text(SESSION_INTERFACE),
            Value::List(vec![property("LockedHint", "b", Value::Flag(is_locked))]),
            Value::List(vec![]),
        ];
        let properties = "org.freedesktop.DBus.Properties";
        bus.emit(
            &path,
            properties,
            "PropertiesChanged",
            ("sa{sv}as", changed),
        );
    }

    pub(crate) fn sessions(&self, away: Away) -> Sessions {
        Sessions::new(&self.root, Counted::Local).without(away, &self.path)
    }

    fn signals(&self, away: Away) -> Signals {
        let mut signals = Signals::new(vec![Box::new(self.sessions(away))]);
        signals.watch();
        signals
    }
}

/// Reads until the number of sessions that count is this.
async fn until(signals: &mut Signals, number: u32) {
    let wanted = match number {
        0 => Reading::Absent,
        1 => reading("login-session: 1 active session"),
        _ => reading(&format!("login-session: {number} active sessions")),
    };
    let reached = async {
        loop {
            let now = Now {
                time: "2026-11-27T09:00:00Z".parse::<Timestamp>().unwrap(),
                instant: Instant::now(),
            };
            signals.read(now);
            if plain(signals) == wanted {
                break;
            }
            signals.due().await;
        }
    };
    let is_reached = timeout(NEVER, reached).await.is_ok();
    assert!(is_reached, "{:?} is not {wanted:?}", plain(signals));
}

fn reading(reason: &str) -> Reading {
    Reading::Stands(fivespot_agent::signal::Signal {
        reason: reason.to_owned(),
        since: None,
        until: None,
    })
}

/// The reading without its beginning.
fn plain(signals: &Signals) -> Reading {
    match signals.readings().next().unwrap().1.clone() {
        Reading::Stands(signal) => reading(&signal.reason),
        other => other,
    }
}

#[tokio::test]
async fn a_session_whose_screen_is_locked_does_not_count_until_it_is_unlocked() {
    let desk = Desk::with_logind();
    let mut signals = desk.signals(Away::Locked);
    until(&mut signals, 1).await;
    let began = Instant::now();
    for _ in 0..3 {
        desk.set("2", true, false);
        until(&mut signals, 0).await;
        desk.set("2", false, false);
        until(&mut signals, 1).await;
    }
    // It is told, and does not wait until it is time to read anyway.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    // Idle is not locked.
    desk.set("2", false, true);
    desk.begin("3");
    until(&mut signals, 2).await;
    desk.set("3", true, true);
    until(&mut signals, 1).await;
    desk.end("2");
    until(&mut signals, 0).await;
}

#[tokio::test]
async fn an_idle_session_does_not_count_where_that_is_wanted_and_neither_does_a_locked_one()
 {
    let desk = Desk::with_logind();
    let mut signals = desk.signals(Away::Idle);
    until(&mut signals, 1).await;
    for (is_locked, is_idle) in [(false, true), (true, false), (true, true)] {
        desk.set("2", is_locked, is_idle);
        until(&mut signals, 0).await;
        desk.set("2", false, false);
        until(&mut signals, 1).await;
    }
}

#[tokio::test]
async fn people_are_told_which_sessions_count_and_that_logind_answers() {
    let desk = Desk::with_logind();
    for (away, note) in [
        (
            Away::Locked,
            "local sessions count unless locked; logind answers",
        ),
        (
            Away::Idle,
            "local sessions count unless locked or idle; logind answers",
        ),
    ] {
        let mut sessions = desk.sessions(away);
        let unanswered = sessions.note().unwrap();
        assert!(unanswered.ends_with("; logind has not answered yet"));
        sessions.settled().await;
        assert_eq!(sessions.note().as_deref(), Some(note));
        assert!(!sessions.is_unanswered());
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_whose_idleness_logind_does_not_tell_is_asked_about_now_and_then() {
    let desk = Desk::with_logind();
    let mut signals = desk.signals(Away::Idle);
    until(&mut signals, 1).await;
    desk.states.lock().unwrap()[0].2 = true;
    until(&mut signals, 0).await;
    desk.states.lock().unwrap()[0].2 = false;
    let began = Instant::now();
    until(&mut signals, 1).await;
    assert!(began.elapsed() < Duration::from_secs(11));
}

#[tokio::test(start_paused = true)]
async fn a_locked_session_is_no_signal_before_logind_has_answered_the_first_time() {
    let desk = Desk::with_logind();
    desk.set("2", true, false);
    let mut signals = desk.signals(Away::Locked);
    let now = Now {
        time: "2026-11-27T09:00:00Z".parse().unwrap(),
        instant: Instant::now(),
    };
    signals.read(now);
    assert_eq!(plain(&signals), Reading::NotYet);
    assert!(!*signals.are_absent().borrow(), "nor is the host free");
    signals.settle().await;
    signals.read(now);
    assert_eq!(plain(&signals), Reading::Absent);
}

#[tokio::test(start_paused = true)]
async fn every_session_counts_while_logind_cannot_be_asked_and_it_is_asked_again() {
    let mut desk = Desk::new();
    let mut signals = desk.signals(Away::Locked);
    // There is no bus.
    until(&mut signals, 1).await;
    desk.start_logind();
    desk.set("2", true, false);
    until(&mut signals, 0).await;
    // It ends.
    desk.bus = None;
    until(&mut signals, 1).await;
    desk.start_logind();
    until(&mut signals, 0).await;
    // It accepts connections, and answers nothing.
    desk.bus = None;
    desk.bus = Some(PlayedBus::at(desk.path.clone(), |_| None));
    until(&mut signals, 1).await;
    // Neither all the time, nor seldom.
    tokio::time::sleep(NEVER).await;
    let asked = desk.bus.as_ref().unwrap().calls("ListSessions");
    assert!((15..60).contains(&asked), "{asked}");
    desk.bus = None;
    desk.start_logind();
    until(&mut signals, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_sends_too_much_or_nonsense_is_left_and_every_session_counts() {
    let long = || {
        let text = Value::Text("a".repeat(200_000));
        Some((
            "a(susso)",
            vec![Value::List(vec![Value::List(vec![
                text,
                Value::Number(0),
                Value::text(""),
                Value::text(""),
                Value::text("/"),
            ])])],
        ))
    };
    for nonsense in [true, false] {
        let mut desk = Desk::new();
        let answer = move |call: &Message| match call.member.as_str() {
            "ListSessions" if nonsense => Some(("s", vec![Value::text("none")])),
            "ListSessions" => long(),
            _ => Some(("a{sv}", vec![Value::List(vec![])])),
        };
        desk.bus = Some(PlayedBus::at(desk.path.clone(), answer));
        let mut signals = desk.signals(Away::Locked);
        until(&mut signals, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_signals_lead_to_few_questions() {
    let desk = Desk::with_logind();
    let mut signals = desk.signals(Away::Locked);
    until(&mut signals, 1).await;
    let before = desk.bus.as_ref().unwrap().calls("ListSessions");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        for _ in 0..100 {
            desk.set("2", false, false);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked = desk.bus.as_ref().unwrap().calls("ListSessions") - before;
    assert!((1..=110).contains(&asked), "{asked}");
    desk.set("2", true, false);
    until(&mut signals, 0).await;
}

#[tokio::test]
async fn a_real_bus_accepts_the_greeting_and_says_that_there_is_no_logind() {
    let path = std::env::temp_dir().join(unique("5spot-bus-"));
    let address = format!("unix:path={}", path.display());
    let daemon = tokio::process::Command::from(daemon(&address))
        .kill_on_drop(true)
        .spawn();
    let _daemon = match daemon {
        Ok(daemon) => daemon,
        Err(error) => {
            eprintln!("NOT TESTED, needs dbus-daemon: {error}");
            return;
        }
    };
    let connected = async {
        loop {
            match Bus::connect(&path).await {
                Ok(bus) => break bus,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let mut bus = timeout(NEVER, connected).await.unwrap();
    bus.subscribe("type='signal',sender='org.freedesktop.login1'")
        .await
        .unwrap();
    let service = fivespot_agent::bus::Service {
        name: "org.freedesktop.login1",
        path: "/org/freedesktop/login1",
        interface: "org.freedesktop.login1.Manager",
    };
    let refused = bus.call(service, "ListSessions", "", vec![]).await;
    let refused = refused.unwrap_err().to_string();
    let unknown = "ListSessions: org.freedesktop.DBus.Error.ServiceUnknown";
    assert_eq!(refused, unknown);
    let _ = fs::remove_file(path);
}
