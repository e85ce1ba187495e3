//! Compares the embedded server with a real one: [`record`] by recorded answers, [`server`] by
//! generated requests.

pub mod random;
pub mod record;
pub mod server;
