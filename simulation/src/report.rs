//! The results of many scenarios.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use strum::VariantArray as _;

use crate::fault::Kind;
use crate::run::Outcome;

/// The totals of many scenarios.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) seeds: u64,
    seconds: u64,
    writes: usize,
    checks: u64,
    pub(crate) broken: usize,
    injected: BTreeMap<Kind, u64>,
    user_actions: BTreeMap<String, u64>,
    cells: BTreeMap<(String, String), BTreeSet<Option<Kind>>>,
}

impl Report {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.seconds += outcome.seconds;
        self.writes += outcome.writes;
        self.checks += outcome.checks;
        self.broken += outcome.broken.len();
        for (kind, count) in &outcome.injected {
            *self.injected.entry(*kind).or_default() += count;
        }
        for (user_action, count) in &outcome.user_actions {
            *self.user_actions.entry(user_action.clone()).or_default() += count;
        }
        for (phase, what, kind) in &outcome.cells {
            let cell = self.cells.entry((phase.clone(), what.clone())).or_default();
            cell.insert(*kind);
        }
    }

    /// The faults of requests. Each of them can be injected into each write.
    fn request_faults() -> impl Iterator<Item = Kind> {
        let all = Kind::VARIANTS.iter().copied();
        all.filter(|kind| kind.is_of_requests())
    }

    /// For each phase and write that occurred, the faults that were not injected into it.
    fn missed(&self) -> Vec<(String, Vec<&'static str>)> {
        let writes = self
            .cells
            .iter()
            .filter(|((_, what), _)| !what.starts_with("watch"));
        let missed = writes.map(|((phase, what), hit)| {
            let missed =
                Self::request_faults().filter(|kind| !hit.contains(&Some(*kind)));
            (format!("{phase}: {what}"), missed.map(Kind::name).collect())
        });
        missed
            .filter(|(_, missed): &(_, Vec<_>)| !missed.is_empty())
            .collect()
    }

    fn cells(&self) -> (usize, usize) {
        let writes = self
            .cells
            .iter()
            .filter(|((_, what), _)| !what.starts_with("watch"));
        let pairs: Vec<_> = writes.collect();
        let all = pairs.len() * Self::request_faults().count();
        let hit = pairs
            .iter()
            .map(|(_, hit)| hit.iter().flatten().count())
            .sum();
        (hit, all)
    }

    #[expect(clippy::cast_precision_loss, reason = "to be read by people")]
    fn years(&self) -> f64 {
        self.seconds as f64 / (365.25 * 86_400.0)
    }

    pub(crate) fn print(&self) {
        let (hit, all) = self.cells();
        println!("seeds               {}", self.seeds);
        println!("virtual years       {:.1}", self.years());
        println!("writes              {}", self.writes);
        println!("checks              {}", self.checks);
        println!("faults");
        for (kind, count) in &self.injected {
            println!("  {:<24} {count}", kind.name());
        }
        println!(
            "user actions        {}",
            self.user_actions.values().sum::<u64>()
        );
        for (user_action, count) in &self.user_actions {
            println!("  {user_action:<24} {count}");
        }
        println!("phase x write x fault: {hit} of {all} cells hit; not hit:");
        for (cell, missed) in self.missed() {
            println!("  {cell}: {}", missed.join(", "));
        }
        println!("violations          {}", self.broken);
    }

    /// The report as JSON.
    pub(crate) fn to_value(&self) -> Value {
        let (hit, all) = self.cells();
        let faults = self.injected.iter();
        let faults: BTreeMap<&str, u64> =
            faults.map(|(kind, count)| (kind.name(), *count)).collect();
        json!({
            "seeds": self.seeds,
            "virtualYears": (self.years() * 10.0).round() / 10.0,
            "writes": self.writes,
            "checks": self.checks,
            "faults": faults,
            "userActions": self.user_actions.values().sum::<u64>(),
            "cellsHit": hit,
            "cells": all,
            "violations": self.broken,
        })
    }
}
