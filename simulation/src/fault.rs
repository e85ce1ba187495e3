//! The faults of the network, the server and the operator's host.

use fivespot_testkit::{Delivery, RequestOutcome, WatchStart};
use jiff::SignedDuration;
use strum::{IntoStaticStr, VariantArray};

use crate::random::Random;

/// A kind of fault, as named in reports.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray,
)]
pub(crate) enum Kind {
    #[strum(to_string = "409")]
    Conflict,
    #[strum(to_string = "429 with Retry-After")]
    TooManyRequests,
    #[strum(to_string = "500")]
    InternalError,
    #[strum(to_string = "503")]
    Unavailable,
    #[strum(to_string = "504")]
    TimedOut,
    #[strum(to_string = "connection reset before")]
    Reset,
    #[strum(to_string = "response lost")]
    LostResponse,
    #[strum(to_string = "crash before")]
    CrashBefore,
    #[strum(to_string = "crash after")]
    CrashAfter,
    #[strum(to_string = "other requests first")]
    SlowResponse,
    #[strum(to_string = "response slow by seconds")]
    SlowAnswer,
    #[strum(to_string = "watch: 410")]
    WatchGone,
    #[strum(to_string = "watch: 500")]
    WatchRefused,
    #[strum(to_string = "watch: ended early")]
    WatchEnded,
    #[strum(to_string = "watch: reset")]
    WatchBroken,
    #[strum(to_string = "watch: delayed")]
    WatchDelayed,
    #[strum(to_string = "watch: event twice")]
    EventTwice,
    #[strum(to_string = "watch: old version")]
    WatchFromOldVersion,
}

impl Kind {
    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it affects requests other than watches.
    pub(crate) fn is_of_requests(self) -> bool {
        self < Self::WatchGone
    }

    /// The outcome of a request with this fault. `None` for faults of watches and for delays.
    pub(crate) fn outcome(self) -> Option<RequestOutcome> {
        Some(match self {
            Self::Conflict => RequestOutcome::Refuse(409, None),
            Self::TooManyRequests => RequestOutcome::Refuse(429, Some(1)),
            Self::InternalError => RequestOutcome::Refuse(500, None),
            Self::Unavailable => RequestOutcome::Refuse(503, None),
            Self::TimedOut => RequestOutcome::Refuse(504, None),
            Self::Reset => RequestOutcome::Reset,
            Self::LostResponse => RequestOutcome::Lose,
            Self::CrashBefore => RequestOutcome::CrashBefore,
            Self::CrashAfter => RequestOutcome::CrashAfter,
            _ => return None,
        })
    }

    /// The outcome of a watch event with this fault. `None` if the fault does not affect events.
    pub(crate) fn delivery(self, minutes: u8) -> Option<Delivery> {
        Some(match self {
            Self::WatchEnded | Self::WatchFromOldVersion | Self::WatchGone => {
                Delivery::End
            }
            Self::WatchBroken | Self::WatchRefused => Delivery::Break,
            Self::WatchDelayed => {
                Delivery::Late(SignedDuration::from_mins(i64::from(minutes)))
            }
            Self::EventTwice => Delivery::Twice,
            _ => return None,
        })
    }

    /// The response when a watch that this fault has ended is opened again. `None` for a normal
    /// one.
    pub(crate) fn watch_start(self, old: Option<&str>) -> Option<WatchStart> {
        match (self, old) {
            (Self::WatchGone, _) => Some(WatchStart::Refuse(410)),
            (Self::WatchRefused, _) => Some(WatchStart::Refuse(500)),
            (Self::WatchFromOldVersion, Some(version)) => {
                Some(WatchStart::From(version.to_owned()))
            }
            _ => None,
        }
    }
}

/// The request or event that a fault is injected into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The write with this number. The writes of all operators are counted together.
    Write(usize),
    /// The read with this number.
    Read(usize),
    /// The watch event with this number.
    Event(usize),
}

/// One fault, of one request or of a few in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) target: Target,
    /// The number of consecutive requests that get it.
    pub(crate) times: usize,
    /// How many minutes a delayed event is late, or a crashed operator stays down.
    pub(crate) minutes: u8,
}

/// The minimum duration of a slow response in seconds, and the range of what is added to it. The
/// sum is below the request timeout of 30 seconds.
const SLOW: (i64, i64) = (1, 28);

impl Fault {
    /// How long the response to a request with this fault is delayed.
    pub(crate) fn delay(&self) -> SignedDuration {
        match self.kind {
            Kind::SlowAnswer => {
                let (least, more) = SLOW;
                SignedDuration::from_secs(least + i64::from(self.minutes) % more)
            }
            _ => SignedDuration::ZERO,
        }
    }

    /// Draws a fault for a scenario with about this many writes.
    pub(crate) fn draw(random: &mut Random, writes: usize) -> Self {
        let kind = random.pick(Kind::VARIANTS).unwrap_or(Kind::Reset);
        let target = if !kind.is_of_requests() {
            Target::Event(random.below(6 * writes))
        } else if random.chance(80) {
            Target::Write(random.below(writes))
        } else {
            Target::Read(random.below(2 * writes))
        };
        let is_crash = matches!(kind, Kind::CrashBefore | Kind::CrashAfter);
        let times = if is_crash || random.chance(70) {
            1
        } else {
            2 + random.below(8)
        };
        let minutes = if random.chance(70) {
            random.below(3) + 1
        } else {
            random.below(120) + 1
        };
        Self {
            kind,
            target,
            times,
            minutes: u8::try_from(minutes).unwrap_or(1),
        }
    }
}
