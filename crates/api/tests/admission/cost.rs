//! The cost of the rules of the shipped CRD.

use fivespot_api::resource::RESOURCES;
use kubemu_admission::crd::RuleCost;

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
