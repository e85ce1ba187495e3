//! How much of a capacity of a device a request may ask for (`validateRequestPolicy`).

use kubemu_admission::{FieldError, Quantity};

use crate::kind::field::{Errors, Field};
use crate::kind::{device, resource_name};

/// The maximum number of amounts.
const MAX_AMOUNTS: u64 = 10;

/// Validates the policy of a capacity of a device that several claims may share.
pub(super) fn errors(capacity: &Field<'_>, errors: &mut Errors) {
    let policy = capacity.child("requestPolicy");
    if !policy.is_set() {
        return;
    }
    let default = policy.child("default");
    let (amounts, range) = (policy.child("validValues"), policy.child("validRange"));
    let kind = match (amounts.len() > 0, range.is_set()) {
        (true, true) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \
                       \"validRange\" at the same time";
            errors.push(policy.forbidden(why));
            return;
        }
        (false, false) => return,
        (true, false) => "validValues",
        (false, true) => "validRange",
    };
    let value = resource_name::quantity(capacity.child("value").value);
    let value = value.unwrap_or_else(|| Quantity::count(0));
    let Some(default) = resource_name::quantity(default.value) else {
        let why = format!("required when {kind} is defined");
        errors.push(default.required(&why));
        return;
    };
    if range.is_set() {
        self::range(&range, (&default, &value), errors);
    } else {
        self::amounts(&amounts, (&default, &value), errors);
    }
}

fn invalid(field: &Field<'_>, shown: &Quantity, why: impl Into<String>) -> FieldError {
    FieldError::invalid(&field.path, shown.to_string().into(), why)
}

fn amounts(
    list: &Field<'_>,
    (default, capacity): (&Quantity, &Quantity),
    errors: &mut Errors,
) {
    let read = |it: &Field<'_>| resource_name::quantity(it.value);
    let mut before: Option<Quantity> = None;
    for item in list.items() {
        let Some(amount) = read(&item) else { continue };
        if before.is_some_and(|it| it > amount) {
            let why = "values must be sorted in ascending order";
            errors.push(invalid(&item, &amount, why));
        }
        before = Some(amount);
    }
    let mut has_default = false;
    device::list(list, MAX_AMOUNTS, errors, |item, errors| {
        let Some(amount) = read(item) else { return };
        if amount > *capacity {
            let why = format!("option is larger than capacity value: {capacity}");
            errors.push(invalid(item, &amount, why));
        }
        has_default |= amount == *default;
    });
    if list.len() as u64 <= MAX_AMOUNTS {
        let mut seen = Vec::new();
        for item in list.items() {
            let whole = read(&item).map_or(0, |it| it.value());
            if seen.contains(&whole) {
                let shown = whole.to_string();
                errors.push(FieldError::duplicate(&item.path, shown.into()));
            }
            seen.push(whole);
        }
    }
    if !has_default {
        let why = "default value is not valid according to the requestPolicy";
        errors.push(invalid(list, default, why));
    }
}

fn range(
    range: &Field<'_>,
    (default, capacity): (&Quantity, &Quantity),
    errors: &mut Errors,
) {
    let bounds = ["min", "max", "step"].map(|it| range.child(it));
    let [min, max, step] = &bounds;
    let [least, most, by] = bounds
        .each_ref()
        .map(|it| resource_name::quantity(it.value));
    let Some(least) = least else {
        errors.push(min.required("required when validRange is defined"));
        return;
    };
    if least > *capacity {
        let why = format!("min is larger than capacity value: {capacity}");
        errors.push(invalid(min, &least, why));
    }
    if *default < least {
        let why = format!("default is less than min: {least}");
        errors.push(invalid(min, default, why));
    }
    if let Some(most) = &most {
        if least > *most {
            let why = format!("min is larger than max: {most}");
            errors.push(invalid(max, &least, why));
        }
        if most > capacity {
            let why = format!("max is larger than capacity value: {capacity}");
            errors.push(invalid(max, most, why));
        }
        if default > most {
            let why = format!("default is more than max: {most}");
            errors.push(invalid(max, default, why));
        }
    }
    let Some(by) = by else { return };
    let added = least.sum(&by).filter(|it| it > capacity);
    if let Some(added) = added {
        let why = format!("one step {added} is larger than capacity value: {capacity}");
        errors.push(invalid(step, &by, why));
    }
    for amount in [Some(default), most.as_ref()].into_iter().flatten() {
        let above = amount.value().wrapping_sub(least.value());
        // Kubernetes panics if the step is zero.
        if above.checked_rem(by.value()).is_some_and(|it| it != 0) {
            let why =
                format!("value is not a multiple of a given step ({by}) from ({least})");
            errors.push(invalid(step, amount, why));
        }
    }
}
