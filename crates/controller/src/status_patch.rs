//! The patch of a status.

use fivespot_plan::merge_patch::difference;
use serde::Serialize;
use serde_json::{Value, json};

/// The patch that turns the `stored` status into `status`, with `version` as its precondition.
/// `None` if the two are equal.
///
/// Both statuses are dropped before the patch is sent: at an edge, many reconciles wait for
/// responses.
pub(crate) fn status_patch(
    stored: &Value,
    status: &impl Serialize,
    version: &str,
) -> serde_json::Result<Option<Value>> {
    let change = difference(stored, serde_json::to_value(status)?);
    Ok(change.map(|change| {
        let mut patch = json!({"metadata": {"resourceVersion": version}});
        patch["status"] = change;
        patch
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_statuses_need_no_patch() {
        let status = json!({"phase": "Active", "shutdown": {"reason": "x"}});
        assert_eq!(difference(&status, status.clone()), None);
    }

    #[test]
    fn a_patch_turns_the_old_status_into_the_new_one() {
        let rows = [
            (json!({}), json!({"phase": "Active"})),
            (Value::Null, json!({"phase": "Active", "conditions": [1]})),
            (
                json!({"phase": "Active", "message": "m"}),
                json!({"phase": "Inactive"}),
            ),
            (
                json!({"shutdown": {"reason": "a", "deadline": "d"}}),
                json!({"shutdown": {"reason": "b"}}),
            ),
            (json!({"conditions": [1, 2]}), json!({"conditions": [2]})),
        ];
        for (mut stored, wanted) in rows {
            let patch = difference(&stored, wanted.clone()).unwrap();
            json_patch::merge(&mut stored, &patch);
            assert_eq!(stored, wanted, "{patch}");
        }
    }
}
