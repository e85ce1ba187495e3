//! Which cluster stands behind a test.

/// The environment variable that chooses the backend.
const VARIABLE: &str = "E2E_BACKEND";

/// What a [`Cluster`](crate::Cluster) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The embedded API server and the simulated Cluster API, in this process, one per
    /// test.
    Embedded,
    /// The real ones that `cargo xtask cluster up` has left running, shared by all tests,
    /// with a namespace per test.
    Kubernetes,
}

impl Backend {
    /// The one that the environment variable `E2E_BACKEND` names: `embedded`, which is
    /// also meant where it is not set, or `kubernetes`.
    ///
    /// # Panics
    /// When it names another: nothing can be tested then.
    #[expect(clippy::panic, reason = "nothing can be tested then")]
    pub fn chosen() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("" | "embedded") => Self::Embedded,
            Ok("kubernetes") => Self::Kubernetes,
            Ok(other) => {
                panic!("{VARIABLE} is {other}; say `embedded` or `kubernetes`")
            }
        }
    }

    /// Its name, as the environment variable has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Kubernetes => "kubernetes",
        }
    }
}
