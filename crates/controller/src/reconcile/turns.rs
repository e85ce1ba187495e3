//! What a machine asks of those of its class.

use jiff::Timestamp;

use crate::context::Context;
use crate::observe::Snapshot;
use crate::observe::projection::{class_term, limited_term};
use crate::{class_rates, class_turns};
use fivespot_plan::limits::Turn;
use fivespot_runtime::Key;

/// Says what the machine claims of the limits and of the rates of its class, and records whether it
/// is its turn and whether they hold it. Returns when to ask again at the latest.
pub(super) fn ask_class(
    context: &Context,
    key: &Key,
    snapshot: &Snapshot,
) -> Option<Timestamp> {
    if snapshot.object.spec.class_ref.is_some() {
        // Its class could not be read, and may have the same limits and rates as before.
        context.state(key, |state| {
            state.memory.give_turn(None);
            state.memory.give_pace(None);
        });
        return None;
    }
    let (turn, again) = ask_for_turn(context, key, snapshot).unzip();
    let pace = ask_for_pace(context, key, snapshot, turn.flatten());
    again.flatten().into_iter().chain(pace).min()
}

/// Its turn, if that is known, and when to ask again; `None` if the class limits nothing.
fn ask_for_turn(
    context: &Context,
    key: &Key,
    snapshot: &Snapshot,
) -> Option<(Option<Turn>, Option<Timestamp>)> {
    let Snapshot {
        object,
        observed,
        now,
        ..
    } = snapshot;
    let class = object.spec.class.as_ref();
    let limits = class.and_then(|class| Some((class, class.limits.as_ref()?)));
    let Some((class, limits)) = limits.filter(|(_, limits)| limits.limits_openings())
    else {
        context.leave_limits(key);
        return None;
    };
    let request = class_turns::Request {
        class: class.name.clone(),
        limits: limits.clone(),
        claim: fivespot_plan::claim(object, observed, *now)?,
    };
    let machines = &context.scheduled_machines.store;
    let all = || machines.found_by(&limited_term(&class.name, &key.namespace));
    let answer = context.class_turns.ask(key, request, *now, all);
    context.enqueue_keys(answer.others);
    context.state(key, |state| state.memory.give_turn(answer.turn));
    Some((answer.turn, answer.again))
}

fn ask_for_pace(
    context: &Context,
    key: &Key,
    snapshot: &Snapshot,
    turn: Option<Turn>,
) -> Option<Timestamp> {
    let Snapshot {
        object,
        observed,
        now,
        ..
    } = snapshot;
    let class = object.spec.class.as_ref();
    let claim = fivespot_plan::rates_claim(object, observed, *now, turn);
    let Some((class, claim)) = class.zip(claim) else {
        context.leave_rates(key, *now);
        return None;
    };
    let request = class_rates::Request {
        class: class.name.clone(),
        rates: class.rates,
        claim,
    };
    let machines = &context.scheduled_machines.store;
    let all = || machines.found_by(&class_term(&class.name));
    let answer = context.class_rates.ask(key, request, *now, all);
    context.enqueue_keys(answer.others);
    context.state(key, |state| state.memory.give_pace(answer.pace));
    answer.again
}
