//! The Kubernetes version.

use std::fmt;
use std::str::FromStr;

use kubemu_cel::Dialect;

/// The minor version of the API server to emulate; the major version is 1.
///
/// It selects the CEL library (the functions that a rule may call; for an expression that is
/// not stored yet, only those of the previous version) and, if they changed, the messages.
///
/// ```
/// use kubemu_admission::KubeVersion;
///
/// let old: KubeVersion = "1.30".parse()?;
/// assert!(old < KubeVersion::default());
/// assert_eq!(KubeVersion::default().to_string(), "1.36");
/// # Ok::<(), kubemu_admission::version::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeVersion {
    minor: u32,
}

impl KubeVersion {
    /// The oldest supported version.
    pub const OLDEST: Self = Self { minor: 26 };
    /// The newest supported version.
    pub const NEWEST: Self = Self { minor: 37 };

    /// The minor version, 26 to 37.
    pub const fn minor(self) -> u32 {
        self.minor
    }

    /// The dialect of expressions that are not stored yet: that of the previous version, to
    /// which a cluster may be rolled back.
    pub(crate) fn dialect_of_new(self) -> Dialect {
        Dialect::of_minor(self.minor - 1)
    }

    /// The dialect of expressions that are already stored.
    pub(crate) fn dialect_of_stored(self) -> Dialect {
        Dialect::of_minor(self.minor)
    }

    /// Whether this version is 1.`minor` or newer.
    pub const fn is_at_least(self, minor: u32) -> bool {
        self.minor >= minor
    }
}

/// 1.36.
impl Default for KubeVersion {
    fn default() -> Self {
        Self { minor: 36 }
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

/// Parses `1.<minor>`, with or without a leading `v`; a patch version is accepted and ignored.
impl FromStr for KubeVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Unknown {
            text: text.to_owned(),
        };
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let (major, minor) = (parts.next(), parts.next());
        let patch_is_number = parts
            .next()
            .is_none_or(|patch| patch.parse::<u32>().is_ok());
        if major != Some("1") || !patch_is_number || parts.next().is_some() {
            return Err(unknown());
        }
        let minor = minor
            .and_then(|minor| minor.parse().ok())
            .ok_or_else(unknown)?;
        let version = Self { minor };
        if (Self::OLDEST..=Self::NEWEST).contains(&version) {
            Ok(version)
        } else {
            Err(unknown())
        }
    }
}

/// Why a version could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a supported version.
    #[error(
        "'{text}' is not a known Kubernetes version, use {} to {}",
        KubeVersion::OLDEST,
        KubeVersion::NEWEST
    )]
    Unknown {
        /// The input.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_version_and_a_leading_v_are_ignored() {
        for text in ["1.30", "v1.30", "1.30.4"] {
            assert_eq!(text.parse::<KubeVersion>().map(KubeVersion::minor), Ok(30));
        }
    }

    #[test]
    fn an_unsupported_version_is_rejected_with_the_supported_range() {
        for text in ["1.25", "1.99", "2.30", "1", "", "1.30.x", "1.30.1.1"] {
            let error = text.parse::<KubeVersion>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("'{text}' is not a known Kubernetes version, use 1.26 to 1.37")
            );
        }
    }
}
