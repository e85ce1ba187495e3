//! What the rules of the shipped definition may cost.

use fivespot_admission::crd::RuleCost;

use super::judge::Judge;

#[test]
fn no_rule_comes_near_the_limit_and_all_together_stay_below_a_hundredth_of_theirs() {
    let costs = Judge::shipped().rule_costs();
    assert!(costs.len() > 30, "the definition has {} rules", costs.len());
    // The dearest is run for each of 64 taints, over keys of any legal length.
    let dear: Vec<_> = costs
        .iter()
        .filter(|cost| cost.total() > RuleCost::LIMIT / 40)
        .collect();
    assert!(dear.is_empty(), "{dear:?}");
    let together: u64 = costs.iter().map(RuleCost::total).sum();
    assert!(together < RuleCost::LIMIT / 10, "{together}");
}
