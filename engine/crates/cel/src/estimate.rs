//! The static cost estimate of an expression.
//!
//! The API server rejects rules whose estimate exceeds a limit, so the estimate must equal the
//! API server's exactly. This follows cel-go's cost estimator, with the sizes that the API
//! server derives from a schema.

mod bounds;
mod path;
pub(crate) mod range;
mod walk;

pub use bounds::Bounds;
pub(crate) use range::Range;

use crate::Program;

/// The estimated cost of one run of an expression, in the units of a [`Budget`](crate::Budget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CostEstimate {
    /// The minimum cost.
    pub min: u64,
    /// The maximum cost; [`u64::MAX`] if it is unbounded.
    pub max: u64,
}

impl Program {
    /// Estimates the cost of one run if the value of every variable is within `bounds`.
    ///
    /// Like the API server, the estimator uses one schema for all variables: `self` and
    /// `oldSelf` have the same schema.
    ///
    /// ```
    /// use kubemu_cel::{Bounds, Dialect, Env, Program, Type};
    ///
    /// let env = Env::new(Dialect::default()).variable("self", Type::list(Type::String));
    /// let rule = Program::compile("self.all(name, name != 'root')", &env)?;
    ///
    /// let names = |most| Bounds::list(most, Bounds::of_size(63));
    /// assert_eq!(rule.estimate(&names(4)).max, 22);
    /// assert_eq!(rule.estimate(&names(4_000)).max, 20_002);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimate(&self, bounds: &Bounds) -> CostEstimate {
        let Range { min, max } = walk::cost(self.tree(), bounds);
        CostEstimate { min, max }
    }
}
