//! Who may write: coordination Leases, and the rules by which they are held.

mod election;
mod record;

pub use election::{Election, Move};
pub use record::{
    RING_ANNOTATION, RING_LABEL, Record, SKEW, Stored, Terms, TermsError, micro_time,
};
