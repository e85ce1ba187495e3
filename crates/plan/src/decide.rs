//! What is to be done: which rule decides, and one decision each.

pub(crate) mod agent;
pub(crate) mod case;
pub(crate) mod drain;
pub(crate) mod ladder;
pub(crate) mod leave;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod reclaim;
pub(crate) mod record;
pub(crate) mod resolve;
pub(crate) mod serve;
pub(crate) mod taint;
