//! Pictures of schedules and shutdowns: pure functions from data to SVG, HTML and terminal text.
//!
//! [`Fleet`] holds the data of a picture: a row for each machine with its planned and observed
//! [`Span`]s. [`svg::document`] and [`html::document`] return a self-contained file,
//! [`terminal::text`] returns the same picture for a terminal. [`timeline`] draws the course of one
//! shutdown, [`shares`] draws usage as bars, [`diagram`] draws boxes and arrows for the
//! documentation.
//!
//! SVG is written by hand: a picture is about ten shapes, and what keeps it small (one path for
//! each kind in a row, one digit after the point) is not provided by a library. The style rules are
//! repeated for light, dark and paper, because programs other than browsers support no custom
//! properties.
//!
//! This crate reads no clock and does no input or output, and no function fails. Each kind of span
//! has a colour that remains distinct for colour-blind readers and a pattern that remains distinct
//! in black and white.
//!
//! ```
//! use fivespot_drawing::{Fleet, Kind, Row, Span, svg};
//! use jiff::{Timestamp, tz::TimeZone};
//!
//! let at = |text: &str| text.parse::<Timestamp>();
//! let fleet = Fleet {
//!     title: "Machines of team-a".to_owned(),
//!     from: at("2026-03-09T00:00:00Z")?,
//!     to: at("2026-03-10T00:00:00Z")?,
//!     zone: TimeZone::UTC,
//!     now: None,
//!     rows: vec![Row {
//!         name: "team-a/desk-1".to_owned(),
//!         note: "mon-fri 9-17 in UTC".to_owned(),
//!         zone: TimeZone::UTC,
//!         link: None,
//!         planned: vec![Span {
//!             since: at("2026-03-09T09:00:00Z")?,
//!             until: at("2026-03-09T18:00:00Z")?,
//!             kind: Kind::Window,
//!             name: String::new(),
//!         }],
//!         observed: Vec::new(),
//!         is_heading: false,
//!     }],
//!     wanted: None,
//!     width: None,
//! };
//! assert!(svg::document(&fleet).starts_with("<svg "));
//! assert_eq!(fleet.wanted_per_column(24).iter().max(), Some(&1));
//! # Ok::<_, jiff::Error>(())
//! ```

mod axis;
mod clock_change;
pub mod diagram;
mod fleet;
pub mod html;
mod kind;
mod length;
mod markup;
pub mod planned;
pub mod shares;
pub mod style;
pub mod svg;
pub mod terminal;
pub mod timeline;
mod zone;

pub use clock_change::ClockChange;
pub use fleet::{Fleet, Row, Span};
pub use kind::Kind;
pub use length::{distance, length};
pub use timeline::Timeline;
pub use zone::most_frequent_zone;
