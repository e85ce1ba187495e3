//! Which Kubernetes answers.

/// The Kubernetes minor version whose CEL environment is meant.
///
/// It decides which libraries, macros and compile-time checks exist. Versions outside
/// 1.26 to 1.37 behave as the nearest one inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialect {
    minor: u32,
}

impl Dialect {
    /// The oldest version known, 1.26.
    pub const OLDEST: Self = Self { minor: 26 };
    /// The newest version known, 1.37.
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
