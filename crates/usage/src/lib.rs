//! What machines were used for in a month, and what that saved: pure functions, for
//! `5spot report` and for the dashboard.
//!
//! [`Report::of`] adds up the accounts that the operator keeps in `status.usage` ([`Machine`]), with
//! the time since they were written, and compares them with machines that are always on. With
//! [`Rates`] it also says what that costs. [`text`], [`csv`] and [`html`] write it down;
//! [`schema::json`] describes it as JSON.
//!
//! There is no clock, no input and no output here. Months are those of UTC.

pub mod csv;
mod figures;
pub mod html;
mod machine;
mod month;
mod rates;
mod report;
pub mod schema;
#[cfg(test)]
mod tests;
pub mod text;

pub use figures::{Amounts, Costs, Figures};
pub use machine::Machine;
pub use month::{Month, NotAMonth};
pub use rates::{InvalidRates, Rate, Rates};
pub use report::{Item, LabelTotal, Query, Report, Total};
