//! Reports what machines were used for in a month, and what that saved: pure functions, for
//! `5spot report` and for the dashboard.
//!
//! [`Report::of`] adds up the accounts that the operator keeps in `status.usage` ([`Machine`]),
//! plus the time since they were written, and compares them with machines that are always on. With
//! [`Rates`] it includes costs. [`Figures::planned`] forecasts the same from a schedule. [`text`], [`csv`] and [`html`] format the report; [`schema::json`]
//! describes its JSON.
//!
//! The crate has no clock and no I/O. Months are in UTC.

mod capacity;
pub mod csv;
mod figures;
pub mod html;
mod machine;
mod month;
mod planned;
mod rates;
mod report;
pub mod schema;
#[cfg(test)]
mod tests;
pub mod text;

pub use capacity::{Capacity, ValueTime};
pub use figures::{Amounts, Costs, Figures};
pub use machine::Machine;
pub use month::{Month, NotAMonth};
pub use rates::{InvalidRates, Rate, Rates};
pub use report::{Item, LabelTotal, Query, Report, Total};
