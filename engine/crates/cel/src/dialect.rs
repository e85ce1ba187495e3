//! The Kubernetes version of the language.

/// The Kubernetes minor version whose CEL environment applies.
///
/// It determines the available libraries, macros and compile-time checks. Versions outside 1.26
/// to 1.37 behave as the nearest supported version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialect {
    minor: u32,
}

impl Dialect {
    /// The oldest supported version, 1.26.
    pub const OLDEST: Self = Self { minor: 26 };
    /// The newest supported version, 1.37.
    pub const NEWEST: Self = Self { minor: 37 };

    /// The dialect of Kubernetes `1.<minor>`.
    pub fn of_minor(minor: u32) -> Self {
        Self {
            minor: minor.clamp(Self::OLDEST.minor, Self::NEWEST.minor),
        }
    }

    /// The minor version, 26 to 37.
    pub fn minor(self) -> u32 {
        self.minor
    }
}

impl Default for Dialect {
    /// Kubernetes 1.36.
    fn default() -> Self {
        Self::of_minor(36)
    }
}
