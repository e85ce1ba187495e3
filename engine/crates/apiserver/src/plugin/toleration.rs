//! Tolerations: whether one covers another (pkg/util/tolerations in Kubernetes).

use serde_json::{Map, Value, json};

use super::pod;

/// Both lists without tolerations that another toleration covers.
pub(super) fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let later = all.iter().skip(index + 1);
        let mut later = later.filter(|it| **it != *one);
        if merged.iter().any(|it| covers(it, one)) || later.any(|it| covers(it, one)) {
            continue;
        }
        merged.push((*one).clone());
    }
    merged
}

/// Whether each toleration is covered by one of the allowed ones. An empty list allows all.
pub(super) fn are_allowed(tolerations: &[Value], allowed: &[Value]) -> bool {
    let is_allowed = |one: &Value| allowed.iter().any(|it| covers(it, one));
    allowed.is_empty() || tolerations.iter().all(is_allowed)
}

/// Whether `wide` tolerates all taints that `narrow` tolerates.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = pod::text;
    let every_key = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !every_key {
        return false;
    }
    let effect = text(wide, "effect");
    if !effect.is_empty() && effect != text(narrow, "effect") {
        return false;
    }
    let seconds = |it: &Value| it["tolerationSeconds"].as_i64();
    if effect == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|it| it > most)
    {
        return false;
    }
    match text(wide, "operator") {
        "Exists" => true,
        "Equal" | "" => {
            text(narrow, "operator") == "Equal"
                && text(wide, "value") == text(narrow, "value")
        }
        _ => false,
    }
}

/// Adds a toleration for every value of a taint, unless the pod has it
/// (`AddOrUpdateTolerationInPod`).
pub(super) fn tolerate(spec: &mut Map<String, Value>, key: &str, effect: &str) {
    let requested = json!({"key": key, "operator": "Exists", "effect": effect});
    let all = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(all) = all.as_array_mut() else {
        return;
    };
    // A toleration with the same key, effect, operator and value is replaced.
    let is_same = |it: &Value| {
        ["key", "operator", "effect", "value"]
            .iter()
            .all(|field| pod::text(it, field) == pod::text(&requested, field))
    };
    match all.iter_mut().find(|it| is_same(it)) {
        Some(found) => *found = requested,
        None => all.push(requested),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_tolerations_are_removed() {
        let narrow = json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"});
        let wide = json!({"key": "a", "operator": "Exists"});
        let other = json!({"key": "b", "operator": "Exists"});
        let every = json!({"operator": "Exists"});
        let found = merged(
            &[narrow.clone(), other.clone()],
            std::slice::from_ref(&wide),
        );
        assert_eq!(found, [other.clone(), wide.clone()]);
        assert_eq!(merged(&[narrow, other], &[wide, every.clone()]), [every]);
    }

    #[test]
    fn a_toleration_time_is_covered_by_an_equal_or_longer_one() {
        let of = |seconds: i64| {
            json!({"key": "a", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds})
        };
        let all = [of(60)];
        assert!(are_allowed(&[of(30)], &all));
        assert!(!are_allowed(&[of(90)], &all));
        assert!(are_allowed(&[of(90)], &[]));
    }
}
