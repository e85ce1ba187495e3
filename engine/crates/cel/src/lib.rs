#![doc = include_str!("../README.md")]

mod activation;
mod ast;
mod budget;
mod check;
mod cost;
mod coverage;
mod dialect;
mod env;
mod error;
mod escape;
mod estimate;
mod fnv;
mod lexer;
mod library;
mod literal;
mod macros;
mod mutation;
mod name;
mod outline;
mod parser;
mod paths;
mod plan;
mod program;
mod run;
mod time;
mod ty;
mod unify;
mod value;

pub use activation::{Activation, Binding, Variables};
pub use budget::Budget;
pub use coverage::{Coverage, Part};
pub use dialect::Dialect;
pub use env::Env;
pub use error::{CompileError, CompileErrors, RunError};
pub use escape::{escape, is_reserved};
pub use estimate::{Bounds, CostEstimate};
pub use library::mask_trailing_dash;
pub use mutation::{Mutation, mutations};
pub use paths::{Paths, ResolvedPaths};
pub use program::Program;
pub use time::{Duration, Timestamp, read_duration};
pub use ty::{Field, ListKind, ListType, MapType, ObjectType, Type};
pub use value::{
    Abstract, Entries, LibraryValue, List, Map, Quantity, Struct, Text, Value,
    json_field, quantity_error,
};
