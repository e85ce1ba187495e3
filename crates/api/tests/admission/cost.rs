//! What the rules of the shipped definition may cost.

use fivespot_admission::crd::RuleCost;
use fivespot_api::resource::RESOURCES;

use super::judge::Judge;

#[test]
fn no_rule_comes_near_the_limit_and_all_together_stay_below_a_fiftieth_of_theirs() {
    for resource in &RESOURCES {
        let costs = Judge::shipped_of(resource).rule_costs();
        let kind = resource.kind;
        assert!(costs.len() >= 6, "{kind} has {} rules", costs.len());
        // The dearest is run for each of 32 lists of days of 16 windows.
        let dear: Vec<_> = costs
            .iter()
            .filter(|cost| cost.total() > RuleCost::LIMIT / 20)
            .collect();
        assert!(dear.is_empty(), "{kind}: {dear:?}");
        let together: u64 = costs.iter().map(RuleCost::total).sum();
        assert!(together < RuleCost::LIMIT / 5, "{kind}: {together}");
    }
}
