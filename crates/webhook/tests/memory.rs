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

/// The creation of a ScheduledMachine in which `place` is filled with numbers.
fn dense(place: &str) -> String {
    let kind = r#"{"group": "5spot.finos.org", "version": "v1alpha1", "kind": "ScheduledMachine"}"#;
    let resource = r#"{"group": "5spot.finos.org", "version": "v1alpha1", "resource": "scheduledmachines"}"#;
    let text = format!(
        r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
            "uid": "a", "kind": {kind}, "resource": {resource}, "name": "a", "namespace": "b",
            "operation": "CREATE", "userInfo": {{"username": "jane"}}, "object": {place}}}}}"#
    );
    let room = MAX_BYTES - text.len() + "DENSE".len();
    text.replace("DENSE", &format!("[{}0]", "0,".repeat((room - 3) / 2)))
}

#[test]
fn the_densest_question_stays_far_below_the_memory_of_the_shipped_webhook() {
    let validator = Validator::new(&["Deny"]).unwrap();
    for place in [
        r#"{"spec": {"infrastructureSpec": {"spec": DENSE}}}"#,
        r#"{"spec": {"bootstrapSpec": {"spec": {"a": DENSE}}}}"#,
        r#"{"metadata": {"managedFields": DENSE}}"#,
        r#"{"spec": {"schedule": DENSE}}"#,
        "DENSE",
    ] {
        let review = dense(place);
        assert!(review.len() <= MAX_BYTES && review.len() > MAX_BYTES - 9);
        validator.review(review.as_bytes());
        drop(review);
        assert!(peak() < MAX_KIB, "{place}: {} KiB", peak());
    }
}
