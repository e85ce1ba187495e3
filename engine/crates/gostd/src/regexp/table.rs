//! Patterns as transition tables (DFAs).

use regex_automata::dfa::Automaton;
use regex_automata::dfa::dense::{self, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::Hir;

use super::compiled::parts;

/// Maximum size of a table, and of the memory for building it, in bytes.
const MAX_SIZE: usize = 64 << 10;
const MAX_SIZE_WHILE_BUILDING: usize = 512 << 10;
/// Maximum number of parts of a pattern for which a table is attempted; a larger one would
/// most likely exceed the size limit.
const MAX_PARTS: usize = 4_000;

/// The NFA of a pattern; `None` if it would be too large.
pub(super) fn steps(pattern: &Hir) -> Option<NFA> {
    let config = thompson::Config::new()
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(MAX_SIZE_WHILE_BUILDING));
    let mut compiler = thompson::Compiler::new();
    compiler.configure(config).build_from_hir(pattern).ok()
}

/// A DFA that is matched byte by byte, without setup for each text.
pub(super) struct Table {
    states: DFA<Vec<u32>>,
    start: StateID,
}

impl Table {
    /// The table of a pattern in the syntax of the `regex` crate; `None` if it would be too
    /// large. A pattern with word boundaries has no table: the table would have to detect
    /// where a character of several bytes begins.
    pub(super) fn of(pattern: &str) -> Option<Self> {
        let pattern = regex_syntax::parse(pattern).ok()?;
        if parts(&pattern) > MAX_PARTS || pattern.properties().look_set().contains_word()
        {
            return None;
        }
        let steps = steps(&pattern)?;
        // Only the existence of a match is needed, so not all matches have to be
        // distinguished.
        let limits = dense::Config::new()
            .match_kind(MatchKind::All)
            .accelerate(false)
            .dfa_size_limit(Some(MAX_SIZE))
            .determinize_size_limit(Some(MAX_SIZE_WHILE_BUILDING));
        let states = dense::Builder::new()
            .configure(limits)
            .build_from_nfa(&steps)
            .ok()?;
        let anywhere = start::Config::new().anchored(Anchored::No);
        let start = states.start_state(&anywhere).ok()?;
        Some(Self { states, start })
    }

    /// Whether the pattern matches somewhere in `text`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let mut state = self.start;
        for byte in text.bytes() {
            state = self.states.next_state(state, byte);
            if self.states.is_special_state(state) {
                if self.states.is_match_state(state) {
                    return true;
                }
                if self.states.is_dead_state(state) {
                    return false;
                }
            }
        }
        self.states
            .is_match_state(self.states.next_eoi_state(state))
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;
    use regex_automata::nfa::thompson::pikevm::PikeVM;

    use super::*;

    #[test]
    fn tables_and_steps_match_as_the_regex_crate_does() {
        let patterns = [
            "a*",
            "^.?$",
            "",
            "^$",
            "^[0-9]+[smh]$",
            "^[^/]*/v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$",
            "(Template|Cluster|List|Identity)$",
            "(?i)^[^ ]+ +([*]|jan|feb)",
            "(?m)^b.$",
            "[^ ]",
            "é|ü+$",
            "a{2,3}b?",
        ];
        let texts = [
            "",
            "5m",
            "5",
            "٣m",
            "x/v1beta1",
            "x/v0",
            "MachineTemplate",
            "Templates",
            "1 FEB",
            "a\nbé\nc",
            "  ",
            "caé",
            "xüü",
            "aaab",
            "aé\u{10ffff}",
        ];
        for pattern in patterns {
            let table = Table::of(pattern).unwrap();
            let regex = Regex::new(pattern).unwrap();
            let steps = steps(&regex_syntax::parse(pattern).unwrap()).unwrap();
            let steps = PikeVM::new_from_nfa(steps).unwrap();
            for text in texts {
                let (found, wanted) = (table.is_match(text), regex.is_match(text));
                assert_eq!(found, wanted, "{pattern:?} in {text:?}");
                let found = steps.is_match(&mut steps.create_cache(), text);
                assert_eq!(found, wanted, "the steps of {pattern:?} in {text:?}");
            }
        }
    }

    #[test]
    fn large_patterns_and_word_boundaries_have_no_table() {
        for pattern in [
            r"\pL{100}",
            "^([^/]{1,253}/)?[^/]+$",
            r"(?-u:\b)a",
            r"(?-u:\B)",
        ] {
            assert!(Table::of(pattern).is_none(), "{pattern}");
        }
    }
}
