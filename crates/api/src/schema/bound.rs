//! The bounds that many fields have.

/// The longest name of a Kubernetes object.
pub(crate) const MAX_NAME: u32 = 253;
/// The longest label value, label name or namespace.
pub(crate) const MAX_LABEL: u32 = 63;
/// Room for an RFC 3339 time, a duration, or a value of a few words.
pub(crate) const MAX_SHORT: u32 = 64;
/// Kubernetes' bound on the message of a condition.
pub(crate) const MAX_MESSAGE: u32 = 32_768;

/// The `observedGeneration` of a status that was never written, so that the object does not
/// appear up to date.
pub(crate) const NO_GENERATION: i64 = -1;
