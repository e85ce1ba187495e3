//! The targets: the functions that are fuzzed, and the properties of their results.

mod expression;
mod manifest;
mod sample;

/// A function that parses untrusted bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// The seeds.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Fragments that mutations insert.
    pub words: &'static [&'static str],
    /// Parses an input and returns a text for the result. Panics if a property is violated.
    pub feed: fn(&[u8]) -> String,
}

/// The targets of the engine.
pub const TARGETS: &[Target] = &[
    Target {
        name: "parser",
        seeds: expression::seeds,
        words: expression::WORDS,
        feed: expression::parse,
    },
    Target {
        name: "checker",
        seeds: expression::seeds,
        words: expression::WORDS,
        feed: expression::check,
    },
    Target {
        name: "evaluator",
        seeds: expression::seeds,
        words: expression::WORDS,
        feed: expression::evaluate,
    },
    Target {
        name: "pattern",
        seeds: expression::patterns,
        words: expression::PATTERN_WORDS,
        feed: expression::match_pattern,
    },
    Target {
        name: "schema",
        seeds: manifest::definitions,
        words: manifest::DEFINITION_WORDS,
        feed: manifest::define,
    },
    Target {
        name: "policy",
        seeds: manifest::policies,
        words: manifest::POLICY_WORDS,
        feed: manifest::decide,
    },
];
