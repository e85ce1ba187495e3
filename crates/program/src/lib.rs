//! What the programs of 5-Spot have in common: the cluster, the log, the ports and the time zones
//! that flags select.

pub mod cluster;
mod duration;
pub mod log;
pub mod port;
pub mod service;
pub mod zoneinfo;

pub use duration::duration;
pub use kubemu_terminal::{Failure, Outcome, clap_error, exit, plain, signals, warn};
pub use log::is_colored;

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_status_may_not_contain_is_what_a_terminal_is_not_shown() {
        for character in '\0'..=char::MAX {
            let kept = fivespot_capi::is_active_character(character);
            let shown = kubemu_terminal::is_active_character(character);
            assert_eq!(kept, shown, "{character:?}");
        }
    }
}
