//! `5spot-reclaim-agent notify`: says on the desktop of a user, some minutes before, that this host is
//! about to be lent, and asks for the host where the user answers so.
//!
//! It runs in the session of the user, and has no rights in a cluster: when the host is lent it reads
//! from the agent's state, and an answer is what the command `reclaim` writes.

mod words;

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep, timeout_at};
use words::{Answer, Words};

use crate::bus::{Bus, CallError, Service, Value};
use crate::detect::with_causes;
use crate::opening::Opening;
use crate::proc::Proc;
use crate::run_directory::RunDirectory;
use crate::switch::{self, End};

/// How often the agent's state is looked at.
const LOOK: Duration = Duration::from_secs(10);
/// The pause between two connections: it doubles up to the longest. It begins anew after a connection
/// that lasted longer than that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After how many attempts in a row to reach the bus the session is over: within two minutes.
const ATTEMPTS: u32 = 8;

const NAME: &str = "org.freedesktop.Notifications";
const SERVER: Service<'_> = Service {
    name: NAME,
    path: "/org/freedesktop/Notifications",
    interface: NAME,
};
const RULE: &str = "type='signal',sender='org.freedesktop.Notifications',\
                    interface='org.freedesktop.Notifications'";

/// The desktop of a user.
#[derive(Debug)]
pub struct Desktop {
    /// The socket of the bus of its session.
    pub bus: PathBuf,
    /// What the agent says, and where the user asks for the host.
    pub directory: RunDirectory,
    /// The processes of the host, among them the agent.
    pub proc: Proc,
    /// How long before it the user is told that the host is lent.
    pub before: SignedDuration,
    /// The time zone of the user.
    pub zone: TimeZone,
    /// The current time.
    pub now: fn() -> Timestamp,
}

/// A notification that is on the screen.
#[derive(Clone, Copy, Debug)]
struct Shown {
    id: u64,
    opening: Opening,
}

/// What has happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Answered(Answer),
    /// The user has closed it, or chosen nothing.
    Closed,
}

impl Desktop {
    /// Notifies the user for as long as there is a session. Each opening is shown once at most.
    ///
    /// # Errors
    /// The bus could not be reached for two minutes: the session is over.
    pub async fn watch(&self) -> io::Result<Infallible> {
        let mut told = None;
        let (mut pause, mut attempts) = (FIRST_PAUSE, 0);
        loop {
            let error = match Bus::connect(&self.bus).await {
                Ok(bus) => {
                    attempts = 0;
                    let began = Instant::now();
                    let Err(error) = self.follow(bus, &mut told).await;
                    if began.elapsed() > LONGEST_PAUSE {
                        pause = FIRST_PAUSE;
                    }
                    error
                }
                Err(error) => {
                    attempts += 1;
                    error
                }
            };
            if attempts == ATTEMPTS {
                return Err(error);
            }
            let error = with_causes(&error);
            tracing::warn!(error, "the session bus cannot be used");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Notifies over one connection, until it ends.
    async fn follow(
        &self,
        mut bus: Bus,
        told: &mut Option<Opening>,
    ) -> io::Result<Infallible> {
        bus.subscribe(RULE).await?;
        let mut shown: Option<Shown> = None;
        loop {
            let opening = self.opening();
            if let Some(Shown { id, .. }) =
                shown.take_if(|shown| Some(shown.opening) != opening)
            {
                close(&mut bus, id).await?;
            }
            if let Some(opening) =
                opening.filter(|it| told.is_none_or(|of| of.at != it.at))
            {
                shown = self.tell(&mut bus, opening, told).await?;
            }
            let next = Instant::now() + LOOK;
            match timeout_at(next, event(&mut bus, shown)).await {
                Err(_) => {}
                Ok(event) => {
                    let event = event?;
                    if let (Event::Answered(answer), Some(shown)) = (event, shown) {
                        self.ask_for_host(&mut bus, answer, shown.opening).await?;
                    }
                    shown = None;
                }
            }
        }
    }

    /// When the host is lent, if that is soon and nothing asks for it that stands longer.
    fn opening(&self) -> Option<Opening> {
        let state = match self.directory.read(&self.proc) {
            Ok(state) => state?,
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(error, "the agent's state cannot be read");
                return None;
            }
        };
        let now = (self.now)();
        let opening = state.opening?;
        let left = opening.at.duration_since(now);
        let is_soon = !left.is_negative() && !left.is_zero() && left <= self.before;
        let mut standing = state.signals.iter().filter_map(|it| it.reading.standing());
        let is_kept = standing.any(|it| it.until.is_none_or(|until| until > opening.at));
        (is_soon && !is_kept).then_some(opening)
    }

    /// Shows the notification. `None` if there is nothing that shows any.
    async fn tell(
        &self,
        bus: &mut Bus,
        opening: Opening,
        told: &mut Option<Opening>,
    ) -> io::Result<Option<Shown>> {
        // A question that may be repeated: it starts the server where none runs.
        let able = match bus.call(SERVER, "GetCapabilities", "", vec![]).await {
            Err(CallError::Refused { name, .. }) => {
                tracing::warn!(error = name, "nothing shows notifications");
                return Ok(None);
            }
            able => able?,
        };
        let able = able.first().map(Value::elements).unwrap_or_default();
        let has_buttons = able.contains(&Value::text("actions"));
        // Before it is sent: one without an answer may be on the screen.
        *told = Some(opening);
        let words = Words::of(opening, has_buttons, (self.now)(), &self.zone);
        let id = notify(bus, &words).await?;
        tracing::info!(at = %opening.at, "told the user");
        Ok(id.map(|id| Shown { id, opening }))
    }

    /// Does what the user has chosen. That it has failed, the user is told.
    async fn ask_for_host(
        &self,
        bus: &mut Bus,
        answer: Answer,
        opening: Opening,
    ) -> io::Result<()> {
        let now = (self.now)();
        let until = answer.until(opening, now, &self.zone);
        let mut out = Vec::new();
        let end = End::At(until);
        let asked = switch::reclaim(&self.directory, &self.proc, end, now, &mut out);
        match asked {
            Ok(_) => {
                let answer = String::from_utf8_lossy(&out);
                tracing::info!(answer = answer.trim_end(), "the user has chosen");
                Ok(())
            }
            Err(failure) => {
                let error = failure.to_string();
                tracing::error!(error, "the host cannot be asked for");
                notify(bus, &Words::failed(&error)).await.map(|_| ())
            }
        }
    }
}

/// Shows a notification that stays until it is closed. Returns its number.
async fn notify(bus: &mut Bus, words: &Words) -> io::Result<Option<u64>> {
    let hint = |key: &str, signature: &str, value: Value| {
        let value = Value::Variant(signature.to_owned(), Box::new(value));
        Value::List(vec![Value::text(key), value])
    };
    let buttons = words
        .buttons
        .iter()
        .flat_map(|(answer, label)| [Value::text(answer.key()), Value::text(label)]);
    let body = vec![
        Value::text("5-Spot"),
        Value::Number(0),
        Value::text(""),
        Value::text(&words.summary),
        Value::text(&words.body),
        Value::List(buttons.collect()),
        Value::List(vec![
            hint("urgency", "y", Value::Number(1)),
            hint("desktop-entry", "s", Value::text("5spot-reclaim-agent")),
        ]),
        Value::Number(0),
    ];
    match bus.call(SERVER, "Notify", "susssasa{sv}i", body).await {
        Ok(answer) => Ok(match answer.first() {
            Some(Value::Number(id)) => Some(*id),
            _ => None,
        }),
        Err(CallError::Refused { name, .. }) => {
            tracing::warn!(error = name, "the notification is not shown");
            Ok(None)
        }
        Err(CallError::Broken(error)) => Err(error),
    }
}

/// Takes a notification off the screen. It may be gone.
async fn close(bus: &mut Bus, id: u64) -> io::Result<()> {
    let body = vec![Value::Number(id)];
    match bus.call(SERVER, "CloseNotification", "u", body).await {
        Ok(_) | Err(CallError::Refused { .. }) => Ok(()),
        Err(CallError::Broken(error)) => Err(error),
    }
}

/// Waits until something happens to the notification; forever if there is none.
async fn event(bus: &mut Bus, shown: Option<Shown>) -> io::Result<Event> {
    loop {
        let signal = bus.signal().await?;
        let (Some(shown), [Value::Number(id), what]) = (shown, &signal.body[..]) else {
            continue;
        };
        if signal.interface != NAME || *id != shown.id {
            continue;
        }
        match signal.member.as_str() {
            "NotificationClosed" => return Ok(Event::Closed),
            "ActionInvoked" => {
                let answer = what.as_text().and_then(Answer::of);
                return Ok(answer.map_or(Event::Closed, Event::Answered));
            }
            _ => {}
        }
    }
}
