//! Which signals there are: from flags, and from the agent's configuration.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fivespot_schedule::Duration;
use serde::Deserialize;

use super::away::SYSTEM_BUS;
use super::{Away, Graphics, Load, Sessions, SignalFile, Source};

/// The range of processors of a [`LoadLimit`].
const ABOVE: RangeInclusive<f64> = 0.1..=4096.0;
/// The range of its time.
const TIME: [Duration; 2] = [Duration::seconds(10), Duration::hours(24)];

/// The signals to read beside processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Stand while the file exists.
    pub files: Vec<PathBuf>,
    /// Stand while such a session is active.
    pub sessions: Counted,
    /// Such sessions do not count.
    pub away: Option<Away>,
    /// Stands while the processor is used more than this outside pods.
    pub load: Option<LoadLimit>,
    /// Stands while an engine of a graphics card is used for more than this share of the time outside
    /// pods.
    pub graphics: Option<f64>,
}

/// How much the processor may be used outside pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadLimit {
    /// The number of processors.
    pub above: f64,
    /// The time over which the use is averaged.
    pub time: Duration,
}

/// Which login sessions count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// None
    #[default]
    Off,
    /// Those at a screen, keyboard or terminal of this host
    Local,
    /// Those through the network too, such as by SSH. Providers that install hosts by SSH then
    /// cause a reclaim
    All,
}

/// Why a value is not valid. The text begins after the name of the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSetting(String);

/// Parses a number, `what` it is for people, within a range.
pub(super) fn number(
    text: &str,
    range: &RangeInclusive<f64>,
    what: &str,
) -> Result<f64, InvalidSetting> {
    let number = text.parse::<f64>();
    let number = number.ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        InvalidSetting(format!("must be {what} from {least} to {most}, not {text}"))
    })
}

/// Parses a duration of digits and one of s, m, h within a range.
///
/// # Errors
/// It has another form, or is outside of the range.
pub(crate) fn duration(
    text: &str,
    [least, most]: [Duration; 2],
) -> Result<Duration, InvalidSetting> {
    let time = text.parse::<Duration>();
    let time = time.map_err(|error| InvalidSetting(error.to_string()))?;
    time.within(least, most)
        .map_err(|error| InvalidSetting(error.to_string()))
}

impl LoadLimit {
    /// The time if none is given.
    pub const TIME: Duration = Duration::minutes(5);

    /// Parses a number of processors.
    ///
    /// # Errors
    /// It is not a number from 0.1 to 4096.
    pub fn parse_above(text: &str) -> Result<f64, InvalidSetting> {
        number(text, &ABOVE, "a number of processors")
    }

    /// Parses a time.
    ///
    /// # Errors
    /// It is not a duration from 10 s to 24 h.
    pub fn parse_time(text: &str) -> Result<Duration, InvalidSetting> {
        duration(text, TIME)
    }
}

impl Settings {
    /// The login sessions of this host that count, if any do. With `away`, must be called in a runtime.
    pub fn login_sessions(&self) -> Option<Sessions> {
        if self.sessions == Counted::Off {
            return None;
        }
        let sessions = Sessions::new(Path::new("/run/systemd"), self.sessions);
        Some(match self.away {
            None => sessions,
            Some(away) => sessions.without(away, Path::new(SYSTEM_BUS)),
        })
    }

    /// The sources of these settings on this host, whose `/proc` is mounted at `proc`. With `away`, must
    /// be called in a runtime.
    pub fn sources(&self, proc: &Path) -> Vec<Box<dyn Source>> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for path in &self.files {
            sources.push(Box::new(SignalFile::new(path.clone())));
        }
        if let Some(sessions) = self.login_sessions() {
            sources.push(Box::new(sessions));
        }
        if let Some(limit) = self.load {
            sources.push(Box::new(Load::new(
                limit,
                proc,
                Path::new("/sys/fs/cgroup"),
            )));
        }
        if let Some(above) = self.graphics {
            sources.push(Box::new(Graphics::new(above, proc)));
        }
        sources
    }
}
