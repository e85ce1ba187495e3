//! What an expression may cost at most, before it has ever run.
//!
//! The API server refuses to register rules whose estimate exceeds a limit, so the estimate
//! has to be the same to the unit: this follows cel-go's checker, with the sizes that the
//! server derives from a schema.

mod bounds;
mod path;
mod range;
mod walk;

pub use bounds::Bounds;
pub(crate) use range::Range;

use crate::Program;

/// What one run of an expression costs, in the units of a [`Budget`](crate::Budget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CostEstimate {
    /// The least it costs.
    pub min: u64,
    /// The most it costs; [`u64::MAX`] where nothing bounds it.
    pub max: u64,
}

impl Program {
    /// Estimates what one run costs if the value of every variable keeps to `bounds`.
    ///
    /// Like the API server, it knows a single value: `self` and `oldSelf` are of the same
    /// schema.
    ///
    /// ```
    /// use fivespot_cel::{Bounds, Dialect, Env, Program, Type};
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
