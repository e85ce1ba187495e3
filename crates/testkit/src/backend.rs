//! The kind of cluster that tests run on.

/// The environment variable that chooses the backend.
const VARIABLE: &str = "E2E_BACKEND";

/// The kind of a [`Cluster`](crate::Cluster).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The embedded API server and the simulated Cluster API, in this process, one per test.
    Embedded,
    /// The real ones that `cargo xtask cluster up` has started, shared by all tests, with a
    /// namespace per test.
    Kubernetes,
}

impl Backend {
    /// The backend in the environment variable `E2E_BACKEND`: `embedded`, which is the default,
    /// or `kubernetes`.
    ///
    /// # Panics
    /// If it has another value, because no test can run then.
    #[expect(clippy::panic, reason = "no test can run then")]
    pub fn chosen() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("" | "embedded") => Self::Embedded,
            Ok("kubernetes") => Self::Kubernetes,
            Ok(other) => {
                panic!("{VARIABLE} is {other}; set `embedded` or `kubernetes`")
            }
        }
    }

    /// Its name, as in the environment variable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Kubernetes => "kubernetes",
        }
    }
}
