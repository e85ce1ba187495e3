//! What an API server answers to ScheduledMachines under the rendered CRD and policy.

// Each module is one aspect of the same judge.
mod admission {
    mod document;
    mod judge;
    mod layers;
    mod shadow;
    mod shape;
    mod updates;
}
