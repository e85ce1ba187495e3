//! `--until KIND/NAME=PHASE[,...]`: the goals that end a run.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use fivespot_api::{Phase, name};

/// An object and the phase that it must reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Goal {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) phase: String,
}

/// All goals of one `--until`. They are reached when all of them hold at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Goals(Vec<Goal>);

impl Goals {
    /// The kinds that the goals name, each once.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        let mut kinds: Vec<&str> = self.0.iter().map(|goal| goal.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.into_iter()
    }

    /// The goals that do not hold, given the phase of each (kind, name).
    pub(crate) fn missed(
        &self,
        phases: &BTreeMap<(String, String), String>,
    ) -> Vec<String> {
        let holds = |goal: &Goal| {
            phases.get(&(goal.kind.clone(), goal.name.clone())) == Some(&goal.phase)
        };
        let describe = |goal: &Goal| {
            let key = (goal.kind.clone(), goal.name.clone());
            match phases.get(&key) {
                Some(phase) if !phase.is_empty() => format!("{goal} (is {phase})"),
                _ => format!("{goal} (has no phase)"),
            }
        };
        self.0
            .iter()
            .filter(|goal| !holds(goal))
            .map(describe)
            .collect()
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}={}", self.kind, self.name, self.phase)
    }
}

impl FromStr for Goals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let goal = |part: &str| {
            let (object, phase) = part.split_once('=')?;
            let (kind, name) = object.split_once('/')?;
            let parts = [kind, name, phase].map(str::trim);
            let [kind, name, phase] = parts;
            parts.iter().all(|part| !part.is_empty()).then(|| Goal {
                kind: kind.to_owned(),
                name: name.to_owned(),
                phase: phase.to_owned(),
            })
        };
        text.split(',')
            .map(|part| {
                let goal = goal(part).ok_or_else(|| {
                    format!("`{part}` is not KIND/NAME=PHASE, e.g. ScheduledMachine/worker=Active")
                })?;
                let phases = Phase::ALL.map(Phase::as_str);
                if goal.kind == name::KIND && !phases.contains(&goal.phase.as_str()) {
                    let phases = phases.join(", ");
                    return Err(format!(
                        "{} is not a ScheduledMachine phase; the phases are {phases}",
                        goal.phase
                    ));
                }
                Ok(goal)
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(phase: &str) -> BTreeMap<(String, String), String> {
        BTreeMap::from([(
            ("ScheduledMachine".to_owned(), "a".to_owned()),
            phase.to_owned(),
        )])
    }

    #[test]
    fn goals_are_reached_when_all_hold_at_the_same_time() {
        let goals: Goals = "ScheduledMachine/a=Active".parse().unwrap();
        assert!(goals.missed(&phases("Active")).is_empty());
        assert_eq!(
            goals.missed(&phases("Pending")),
            ["ScheduledMachine/a=Active (is Pending)"]
        );
        let both: Goals = "ScheduledMachine/a=Active,Machine/a=Running"
            .parse()
            .unwrap();
        assert_eq!(
            both.missed(&phases("Active")),
            ["Machine/a=Running (has no phase)"]
        );
    }

    #[test]
    fn a_phase_that_no_machine_can_have_is_refused_at_once() {
        let refused = "ScheduledMachine/x=Bogus".parse::<Goals>().unwrap_err();
        assert!(refused.contains("Active, ShuttingDown"), "{refused}");
        assert!("Machine/x=Running".parse::<Goals>().is_ok());
    }

    #[test]
    fn invalid_goals_are_refused_with_an_example() {
        for wrong in ["", "a", "a/b", "a=b", "/b=c", "a/=c", "a/b=", "a/b=c,"] {
            let error = wrong.parse::<Goals>().unwrap_err();
            assert!(error.contains("KIND/NAME=PHASE"), "{wrong}: {error}");
        }
    }
}
