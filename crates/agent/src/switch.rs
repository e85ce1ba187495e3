//! `5spot-reclaim-agent reclaim`, `return` and `status`: for the users of a host, without rights in
//! a cluster.

use std::io::{self, Write};

use fivespot_api::time::whole_seconds;
use fivespot_schedule::Duration;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::command::{Failure, Outcome, failed, refused};
use crate::opening::Opening;
use crate::proc::Proc;
use crate::run_directory::{RunDirectory, State, states};
use crate::service::Installed;
use crate::signal::{Now, Reading, Signal, Signals};

/// The end of a reclaim, as it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Never,
    After(Duration),
    At(Timestamp),
}

/// Asks for the host. [`Outcome::No`] if no agent runs that could request it.
pub(crate) fn reclaim(
    directory: &RunDirectory,
    proc: &Proc,
    end: End,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let until = match end {
        End::Never => None,
        End::After(length) => {
            let until = whole_seconds(now).checked_add(SignedDuration::from(length));
            Some(until.map_err(|error| failed("--for", &error, "give a shorter time"))?)
        }
        End::At(until) if until <= now => {
            let why = format!("{until} is not in the future");
            return Err(refused("--until", why, "give a later time"));
        }
        End::At(until) => Some(until),
    };
    let switch = directory.switch();
    switch.reclaim(until).map_err(|error| {
        let what = format!("writing to {}", directory.owner().display());
        let remedy = if error.kind() == io::ErrorKind::PermissionDenied {
            "your file there may belong to another user: ask the administrator of this host"
        } else {
            "the agent creates it: start the agent with --run-directory"
        };
        failed(what, &error, remedy)
    })?;
    match until {
        Some(until) => writeln!(
            out,
            "asked for this host until {until}; 5spot-reclaim-agent return ends it earlier"
        )?,
        None => writeln!(out, "asked for this host until 5spot-reclaim-agent return")?,
    }
    running(directory, proc, out)
}

/// Takes back what [`reclaim`] asked for. [`Outcome::No`] if there was nothing.
pub(crate) fn take_back(
    directory: &RunDirectory,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let number = directory.switch().take_back().map_err(|error| {
        let what = format!("removing from {}", directory.owner().display());
        failed(what, &error, "try again as the user who asked for the host")
    })?;
    if number == 0 {
        writeln!(
            out,
            "nothing to take back: you have not asked for this host"
        )?;
        return Ok(Outcome::No);
    }
    writeln!(
        out,
        "taken back; if the machine has left its cluster already, it returns as \
         spec.reclaim.return says, or when its schedule is enabled again"
    )?;
    Ok(Outcome::Yes)
}

/// Prints which signals stand. [`Outcome::Yes`] if an agent runs and none does.
pub(crate) fn status(
    directory: &RunDirectory,
    proc: &Proc,
    service: Installed,
    time: Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let state = read(directory, proc)?;
    let is_running = state.is_some();
    let state = state.unwrap_or_else(|| {
        // The switch is readable without an agent.
        let mut signals = Signals::new(vec![Box::new(directory.switch())]);
        let instant = Instant::now();
        signals.read(Now { time, instant });
        State {
            signals: states(&signals),
            ..State::default()
        }
    });
    let agent = if is_running {
        format!("runs for Node {}", state.node)
    } else {
        format!("does not run with {}", directory.path().display())
    };
    let mut rows = vec![("agent".to_owned(), agent)];
    let unit = match service {
        Installed::Absent => None,
        Installed::AsWritten => Some("installed"),
        Installed::Changed => Some("installed; its unit has been changed by hand"),
    };
    rows.extend(unit.map(|text| ("service".to_owned(), text.to_owned())));
    if let Some(requested) = &state.requested {
        let text = format!("requested at {} ({})", requested.at, requested.reason);
        rows.push(("reclaim".to_owned(), text));
    }
    rows.extend(state.pods.map(|account| ("pods".to_owned(), account)));
    rows.extend(state.opening.map(|Opening { at, until }| {
        let until = until.map(|until| format!(" until {until:.0}"));
        let text = format!("from {at:.0}{}", until.unwrap_or_default());
        ("lent next".to_owned(), text)
    }));
    let mut stands = state.requested.is_some();
    for signal in &state.signals {
        stands |= signal.reading.standing().is_some();
        let note = signal.note.as_ref().map(|note| format!(" ({note})"));
        let text = text(&signal.reading) + &note.unwrap_or_default();
        rows.push((signal.name.clone(), text));
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    for (name, text) in &rows {
        writeln!(
            out,
            "{name:<width$}  {text}",
            width = width.unwrap_or_default()
        )?;
    }
    Ok(if is_running && !stands {
        Outcome::Yes
    } else {
        Outcome::No
    })
}

fn text(reading: &Reading) -> String {
    match reading {
        Reading::NotYet | Reading::Absent => "no signal".to_owned(),
        Reading::Unreadable { why } => format!("cannot be read: {why}"),
        Reading::Stands(Signal { since, until, .. }) => {
            let time = |word: &str, time: &Option<Timestamp>| {
                time.map(|time| format!(" {word} {time:.0}"))
                    .unwrap_or_default()
            };
            format!("stands{}{}", time("since", since), time("until", until))
        }
    }
}

fn read(directory: &RunDirectory, proc: &Proc) -> Result<Option<State>, Failure> {
    directory.read(proc).map_err(|error| {
        let what = format!("reading {}", directory.path().display());
        failed(what, &error, "use the version of the agent that runs")
    })
}

fn running(
    directory: &RunDirectory,
    proc: &Proc,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    if read(directory, proc)?.is_some() {
        return Ok(Outcome::Yes);
    }
    writeln!(
        out,
        "no agent runs on this host: nothing happens until one starts"
    )?;
    Ok(Outcome::No)
}

#[cfg(test)]
mod tests;
