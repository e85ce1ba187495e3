//! A ScheduledMachineSet with its machines: how many it has, and why not more are in service.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use fivespot_api::verdict::{State, Verdict};
use fivespot_api::{ScheduledMachineSet, name};
use fivespot_plan::SetMachine;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::check::Judge;

/// A set, as far as it can be read.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetState {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The class of its machines; empty if the set cannot be decoded.
    pub(crate) class: String,
    /// How many machines there should be.
    pub(crate) wanted: u32,
    /// How many there are, without those that are being deleted.
    pub(crate) exist: usize,
    /// How many of them are Active.
    pub(crate) active: usize,
    /// How many of them are Ready: in service, or rightly not.
    pub(crate) ready: usize,
    /// Why fewer are active than wanted; else what the operator says.
    pub(crate) message: String,
    /// Its machines, what to look at first at the beginning.
    #[serde(skip)]
    pub(crate) machines: Vec<Member>,
}

/// A machine of a set.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    #[serde(skip)]
    index: u32,
    #[serde(skip)]
    is_active: bool,
    pub(crate) verdict: Verdict,
}

impl SetState {
    /// Reads a set. `machines` are those of its namespace, or more. A set that cannot be decoded
    /// says so.
    pub(crate) fn of<'m>(
        object: &Value,
        machines: impl Iterator<Item = &'m Value>,
        judge: &Judge,
    ) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let mut state = Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            class: String::new(),
            wanted: 0,
            exist: 0,
            active: 0,
            ready: 0,
            message: String::new(),
            machines: Vec::new(),
        };
        let set = match ScheduledMachineSet::deserialize(object) {
            Ok(set) => set,
            Err(error) => {
                state.message = format!("cannot be decoded: {error}");
                return state;
            }
        };
        state
            .class
            .clone_from(&set.spec.template.spec.class_ref.name);
        state.wanted = set.spec.replicas;
        for machine in machines {
            if machine["metadata"]["labels"][name::SET_LABEL] == state.name.as_str()
                && let Some(of) = SetMachine::of(machine, &set)
            {
                state.add(machine, &of, judge);
            }
        }
        state
            .machines
            .sort_by_key(|it| (it.is_active, it.verdict.state.rank(), it.index));
        state.message = state.why(&set);
        state
    }

    fn add(&mut self, machine: &Value, of: &SetMachine, judge: &Judge) {
        let name = machine["metadata"]["name"].as_str().unwrap_or_default();
        if !of.is_leaving {
            self.exist += 1;
            self.active += usize::from(of.is_active);
            self.ready += usize::from(of.is_ready);
        }
        self.machines.push(Member {
            name: name.to_owned(),
            index: of.index,
            is_active: of.is_active,
            verdict: judge.machine(machine),
        });
    }

    /// Why fewer machines are active than wanted: what the operator says of the set if it is not
    /// Ready, then the machines that are not active by their state, with the cause of the first.
    fn why(&self, set: &ScheduledMachineSet) -> String {
        let conditions = set.status.as_ref().map_or(&[][..], |it| &it.conditions);
        let ready = conditions.iter().find(|it| it.type_ == "Ready");
        let Some(ready) = ready else {
            return "the operator has not reported on it yet".to_owned();
        };
        let problem = (ready.status != "True").then(|| ready.message.clone());
        let mut inactive: BTreeMap<u8, (State, usize, &str)> = BTreeMap::new();
        for Member { verdict, .. } in self.machines.iter().filter(|it| !it.is_active) {
            let first = (verdict.state, 0, verdict.cause.as_str());
            inactive.entry(verdict.state.rank()).or_insert(first).1 += 1;
        }
        let counted = inactive
            .into_values()
            .map(|(state, count, cause)| match cause {
                "" => format!("{count} {state}"),
                cause => format!("{count} {state}: {cause}"),
            });
        let parts: Vec<String> = problem.into_iter().chain(counted).collect();
        if parts.is_empty() {
            return ready.message.clone();
        }
        parts.join("; ")
    }

    /// The same where its machines may not be read: what the operator has counted.
    pub(crate) fn of_status(object: &Value, judge: &Judge) -> Self {
        let count = |field: &str| {
            let found = object["status"][field].as_u64();
            found.and_then(|it| usize::try_from(it).ok()).unwrap_or(0)
        };
        Self {
            exist: count("replicas"),
            active: count("activeReplicas"),
            ready: count("readyReplicas"),
            ..Self::of(object, std::iter::empty(), judge)
        }
    }

    /// The verdict about the machine to look at first. `None` if all are active.
    pub(crate) fn worst(&self) -> Option<&Verdict> {
        let first = self.machines.first().filter(|it| !it.is_active);
        first.map(|it| &it.verdict)
    }
}
