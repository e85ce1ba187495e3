//! The ScheduledMachineSets, in a table of their own.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use fivespot_api::ScheduledMachineSet;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::listed::Listed;
use crate::check::Judge;
use crate::columns::table;
use crate::preview::source::{self, Selection};
use crate::set::SetState;

/// What was found of them, by namespace and name.
pub(super) type Sets = Listed<SetState>;

impl Sets {
    /// Reads the sets of a namespace or of all; `machines` are those that were listed. None if the
    /// kind is not served. That they cannot be read is no error.
    pub(super) async fn list(
        client: &Client,
        selection: Selection<'_>,
        judge: &Judge,
        machines: &[Value],
    ) -> Self {
        let found = match source::listed::<ScheduledMachineSet>(client, selection).await {
            Ok(found) => found,
            Err(unreadable) => return unreadable.into(),
        };
        let sets = found.iter().map(|set| {
            let namespace = &set.object["metadata"]["namespace"];
            let own = machines.iter();
            let own = own.filter(|it| it["metadata"]["namespace"] == *namespace);
            SetState::of(&set.object, own, judge)
        });
        let mut rows: Vec<SetState> = sets.collect();
        rows.sort_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        rows.into()
    }

    /// Sets that were read by name, with the machines that have their label.
    pub(super) fn of(sets: &[DynamicObject], machines: &[Value], judge: &Judge) -> Self {
        let state =
            |set: &DynamicObject| SetState::of(&json!(set), machines.iter(), judge);
        sets.iter().map(state).collect::<Vec<_>>().into()
    }

    /// Prints rows under their heads, in columns; or that they may not be read.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let heads = ["NAMESPACE", "SET", "WANTED", "ACTIVE", "READY", "MESSAGE"];
        self.print_with(out, |out, rows| {
            let rows: Vec<_> = rows.iter().map(cells).collect();
            table(out, heads, &rows)
        })
    }
}

/// The machines of which one of these sets is an owner.
pub(super) fn owned(
    sets: &[DynamicObject],
    mut machines: Vec<DynamicObject>,
) -> Vec<DynamicObject> {
    let is_set =
        |uid: &String| sets.iter().any(|it| it.metadata.uid.as_ref() == Some(uid));
    machines.retain(|it| it.owner_references().iter().any(|owner| is_set(&owner.uid)));
    machines
}

fn cells(set: &SetState) -> [String; 6] {
    [
        set.namespace.clone(),
        set.name.clone(),
        set.wanted.to_string(),
        set.active.to_string(),
        set.ready.to_string(),
        set.message.clone(),
    ]
}
