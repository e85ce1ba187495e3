//! What is fed, and which laws hold for what comes out.

mod expression;
mod manifest;

/// Something that reads strangers' bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Texts that were written on purpose.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// What such texts are made of.
    pub(crate) words: &'static [&'static str],
    /// Reads a text and says in words what came of it. Panics when a law is broken.
    pub feed: fn(&[u8]) -> String,
}

/// Every target.
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
    Target {
        name: "review",
        seeds: manifest::reviews,
        words: manifest::REVIEW_WORDS,
        feed: manifest::review,
    },
];
