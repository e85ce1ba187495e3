//! The cost of the rules of the shipped CRD.

use fivespot_api::resource::RESOURCES;
use kubemu_admission::crd::RuleCost;
use serde_json::json;

use super::bounds::with;
use super::evaluator::Evaluator;

#[test]
fn the_cost_of_each_rule_and_of_all_rules_is_far_below_the_limits() {
    for resource in &RESOURCES {
        let costs = Evaluator::shipped_of(resource).rule_costs();
        let kind = resource.kind;
        assert!(costs.len() >= 6, "{kind} has {} rules", costs.len());
        // The most expensive rule runs for each of 32 lists of days of 16 windows.
        let dear: Vec<_> = costs
            .iter()
            .filter(|cost| cost.total() > RuleCost::LIMIT / 20)
            .collect();
        assert!(dear.is_empty(), "{kind}: {dear:?}");
        let together: u64 = costs.iter().map(RuleCost::total).sum();
        assert!(together < RuleCost::LIMIT / 5, "{kind}: {together}");
    }
}

/// Every write of a status runs the rules of the spec again, with the old object beside.
#[test]
fn the_rules_cost_a_write_of_the_status_little_more_than_the_creation() {
    let status = json!({"phase": "Active", "machineRef": {
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "namespace": "default", "name": "one", "uid": "1",
    }});
    let machine = with("clusterName", json!("prod"));
    let (created, written) = Evaluator::shipped().costs(machine, status);
    assert!(created > 100, "{created}");
    assert!(written <= created + created / 4, "{created} {written}");
}
