//! Kubernetes' dialect of the Common Expression Language.
//!
//! An expression is compiled once against the variables it may use, and run as often as
//! wanted over borrowed JSON:
//!
//! ```
//! use fivespot_cel::{Budget, Dialect, Env, ObjectType, Program, Type, Variables};
//!
//! let spec = ObjectType::new([("replicas", Type::Int), ("max", Type::Int)]);
//! let env = Env::new(Dialect::default()).variable("self", Type::object(spec));
//! let rule = Program::compile("self.replicas <= self.max", &env)?;
//!
//! let object = serde_json::json!({"replicas": 3, "max": 5});
//! let variables = Variables::new().json("self", &object);
//! let mut budget = Budget::default();
//! assert_eq!(rule.run(&variables, &mut budget)?.as_bool(), Some(true));
//! assert!(budget.spent() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What the language is, is decided by Kubernetes' API server (cel-go with the libraries
//! under `k8s.io/apiserver/pkg/cel`): where the CEL specification says something else, the
//! API server wins. The [`Dialect`] says which version of it answers.
//!
//! # Guarantees
//! No input makes the crate panic; source size, nesting and running cost are bounded.

mod activation;
mod ast;
mod budget;
mod check;
mod cost;
mod dialect;
mod env;
mod error;
mod escape;
mod estimate;
mod lexer;
mod library;
mod literal;
mod macros;
mod own_keys;
mod parser;
mod places;
mod plan;
mod program;
mod run;
mod time;
mod ty;
mod unify;
mod value;

pub use activation::{Activation, Binding, Variables};
pub use budget::Budget;
pub use dialect::Dialect;
pub use env::Env;
pub use error::{CompileError, CompileErrors, RunError};
pub use escape::{escape, is_reserved};
pub use estimate::{Bounds, CostEstimate};
pub use library::{LibraryValue, Quantity, quantity_error};
pub use places::{Paths, Places};
pub use program::Program;
pub use time::{Duration, Timestamp, read_duration};
pub use ty::{Field, ListKind, ListType, MapType, ObjectType, Type};
pub use value::{Abstract, Entries, List, Map, Text, Value, json_field};
