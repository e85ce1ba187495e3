//! Watches, gathers, applies: the operator's shell around the planner.
