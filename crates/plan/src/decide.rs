//! What to do: which rule decides, and one module for each decision.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod case;
pub(crate) mod class;
pub(crate) mod drain;
pub(crate) mod host;
pub(crate) mod host_claims;
pub(crate) mod host_return;
pub(crate) mod jitter;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod pace;
pub(crate) mod pace_claim;
pub(crate) mod precedence;
pub(crate) mod reclaim;
pub(crate) mod record;
pub(crate) mod resolve;
pub(crate) mod serve;
pub(crate) mod shutdown;
pub(crate) mod taint;
pub(crate) mod turn;
