//! Shrinks a case as long as the difference remains the same.

use super::case::{Case, Step};

/// Every case with one part less: a request, a change or an operation.
pub(super) fn smaller<'a>(case: &Case<'a>) -> Vec<Case<'a>> {
    let mut all = Vec::new();
    for index in 0..case.steps.len() {
        if case.steps.len() > 1 {
            let mut less = case.clone();
            less.steps.remove(index);
            all.push(less);
        }
        let step = &case.steps[index];
        for at in 0..step.mutations.len() {
            let mut less = case.clone();
            less.steps[index].mutations.remove(at);
            all.push(less);
        }
        for at in 0..step.operations.len() {
            let mut less = case.clone();
            less.steps[index].operations.remove(at);
            all.push(less);
        }
        let mut without = |change: fn(&mut Step)| {
            let mut less = case.clone();
            change(&mut less.steps[index]);
            all.push(less);
        };
        if !step.query.is_empty() {
            without(|it| {
                it.query.pop();
            });
        }
        if !step.user.is_empty() {
            without(|it| it.user.clear());
        }
        if step.options.is_some() {
            without(|it| it.options = None);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::seed::Seed;

    #[test]
    fn a_smaller_case_lacks_one_part() {
        let seeds: [Seed; 1] = [serde_json::from_value(json!({
            "path": "/api/v1/nodes",
            "object": {"apiVersion": "v1", "kind": "Node", "spec": {"podCIDR": "10.0.0.0/24"}},
        }))
        .expect("a seed")];
        let weight = |case: &Case<'_>| {
            let parts = case.steps.iter().map(|it| {
                1 + it.mutations.len()
                    + it.operations.len()
                    + it.query.len()
                    + usize::from(!it.user.is_empty())
                    + usize::from(it.options.is_some())
            });
            parts.sum::<usize>()
        };
        let cases = (0..50).filter_map(|number| Case::of(&seeds, 1, number));
        for case in cases {
            for less in smaller(&case) {
                assert!(weight(&less) < weight(&case));
                assert!(!less.steps.is_empty());
            }
        }
    }
}
