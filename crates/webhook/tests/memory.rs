//! How much memory a review can cost. A process of its own, so that nothing else is measured.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use fivespot_webhook::Validator;
use fivespot_webhook::serve::MAX_BYTES;

/// In KiB. The limit of the shipped Deployment is 256 MiB, for all reviews together.
const MAX_KIB: u64 = 96 * 1024;

/// The peak memory of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_ascii_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// A list that fills the rest of the review.
const DENSE: &str = "DENSE";

/// The creation of an object by a user, in which [`DENSE`] is filled with these items.
fn dense(object: &str, user: &str, item: &str) -> String {
    let kind = r#"{"group": "5spot.finos.org", "version": "v1alpha1", "kind": "ScheduledMachine"}"#;
    let resource = r#"{"group": "5spot.finos.org", "version": "v1alpha1", "resource": "scheduledmachines"}"#;
    let text = format!(
        r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
            "uid": "a", "kind": {kind}, "resource": {resource}, "name": "a", "namespace": "b",
            "operation": "CREATE", "userInfo": {user}, "object": {object}}}}}"#
    );
    let room = MAX_BYTES - text.len() + DENSE.len() - "[]".len() - item.len();
    let items = format!("{item},").repeat(room / (item.len() + 1));
    text.replace(DENSE, &format!("[{items}{item}]"))
}

#[test]
fn the_densest_question_stays_far_below_the_memory_of_the_shipped_webhook() {
    let validator = Validator::new(&["Deny"]).unwrap();
    let jane = r#"{"username": "jane"}"#;
    for (object, user, item) in [
        (
            r#"{"spec": {"infrastructureSpec": {"spec": DENSE}}}"#,
            jane,
            "0",
        ),
        (
            r#"{"spec": {"bootstrapSpec": {"spec": {"a": DENSE}}}}"#,
            jane,
            "0",
        ),
        (r#"{"metadata": {"managedFields": DENSE}}"#, jane, "0"),
        (r#"{"spec": {"schedule": DENSE}}"#, jane, "0"),
        (DENSE, jane, "0"),
        ("{}", r#"{"groups": DENSE}"#, r#""""#),
        ("{}", r#"{"extra": {"a": DENSE}}"#, r#""""#),
    ] {
        let review = dense(object, user, item);
        assert!(review.len() <= MAX_BYTES && review.len() > MAX_BYTES - 9);
        validator.review(review.as_bytes());
        drop(review);
        assert!(peak() < MAX_KIB, "{object} {user}: {} KiB", peak());
    }
}
