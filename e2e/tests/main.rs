//! What the product promises, one file each, driven through the Kubernetes API alone.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod admits_exactly_the_table;
mod cancels_when_it_reopens;
mod changes_wait_for_the_next_window;
mod clears_up_what_was_half_made;
mod disabled_stays;
mod drains_before_delete;
mod foreign_objects_survive;
mod idle_costs_nothing;
mod kill_switch_wins;
mod kubectl;
mod leaves_when_deleted;
mod opens_on_time;
mod pauses;
mod speaks_both_contracts;
mod spends_little;
mod survives_restart_at_every_write;
mod taints_the_node;
mod tells_what_is_wrong;
mod waits_for_its_cluster;
