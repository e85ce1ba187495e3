//! Patterns with valid syntax, and their automata.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use regex::Regex;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::table::{self, Table};
use super::{quick_check, too_large, translate};

/// A regular expression with valid syntax. Most patterns of a schema or policy are never
/// matched against a text, and many only against the defaults of a definition. So nothing is
/// built before a pattern is used. Its first matches are simulated; its table, which costs as
/// much as hundreds of matches, is built after some uses.
///
/// Patterns in use with the same source share one value.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    /// The pattern in the syntax of the `regex` crate.
    translated: String,
    /// The number of matches before there was a table; counted up to
    /// [`MATCHES_WITHOUT_TABLE`].
    match_count: AtomicU8,
    /// The NFA for simulating those matches. `None` inside if the pattern were invalid, which
    /// cannot happen.
    steps: OnceLock<Option<PikeVM>>,
    /// `None` inside if a table would be too large, or is unlikely to fit.
    table: OnceLock<Option<Table>>,
    /// `None` inside if the automaton cannot be built, in which case it matches nothing. This
    /// cannot happen, because a pattern that could be too large is built immediately.
    automaton: OnceLock<Option<Regex>>,
}

/// The number of matches before a table is built. Compiling a definition matches each pattern
/// with its defaults, once each.
const MATCHES_WITHOUT_TABLE: u8 = 16;
/// Maximum length of a text for simulated matches, in bytes: simulation is slow, but only
/// needs the NFA of the pattern.
const MAX_SIMULATED_LENGTH: usize = 256;
/// Automata with at most this number of parts, of some 40 bytes each, are below the `regex`
/// crate's limit of 10 MB, so that building them later cannot fail.
const SURELY_SMALL: usize = 100_000;
/// The number of parts of an automaton for one range of characters that is not only ASCII: at
/// most 20 sequences of up to four bytes.
pub(super) const PARTS_OF_RANGE: usize = 80;

impl Pattern {
    /// Compiles `pattern`, in the syntax of Go's `regexp` (RE2); returns the shared value if
    /// it is in use already.
    ///
    /// # Errors
    /// Go's message for a pattern that it would not compile.
    pub fn new(pattern: &str) -> Result<Self, String> {
        if let Some(known) = lookup(pattern) {
            return Ok(known);
        }
        let new = Self::alone(pattern)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == known.capacity() {
            known.retain(|_, pattern| pattern.strong_count() > 0);
        }
        known.insert(pattern.into(), Arc::downgrade(&new.0));
        Ok(new)
    }

    /// Compiles `pattern` without sharing it.
    pub fn alone(pattern: &str) -> Result<Self, String> {
        let refused = |error: String| too_large(pattern, &error);
        let translated = translate(pattern)?;
        let automaton = OnceLock::new();
        if quick_check::parts(&translated).is_none_or(|parts| parts > SURELY_SMALL) {
            let parsed = regex_syntax::parse(&translated)
                .map_err(|error| refused(error.to_string()))?;
            if parts(&parsed) > SURELY_SMALL {
                let built = Regex::new(&translated)
                    .map_err(|error| refused(error.to_string()))?;
                let _ = automaton.set(Some(built));
            }
        }
        Ok(Self(Arc::new(Compiled {
            translated,
            match_count: AtomicU8::new(0),
            steps: OnceLock::new(),
            table: OnceLock::new(),
            automaton,
        })))
    }

    /// Whether the pattern matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        if let Some(Some(table)) = self.0.table.get() {
            return table.is_match(text);
        }
        let is_new = self.is_new();
        if is_new
            && text.len() <= MAX_SIMULATED_LENGTH
            && let Some(steps) = self.steps()
        {
            return steps.is_match(&mut steps.create_cache(), text);
        }
        let table = if is_new { None } else { self.table() };
        match table {
            Some(table) => table.is_match(text),
            None => self
                .automaton()
                .is_some_and(|automaton| automaton.is_match(text)),
        }
    }

    /// Whether the pattern has been used only a few times; counts this use.
    fn is_new(&self) -> bool {
        // Two concurrent uses may be counted as one: the table is then built slightly later.
        let before = self.0.match_count.load(Ordering::Relaxed);
        let is_new = before < MATCHES_WITHOUT_TABLE;
        if is_new {
            self.0.match_count.store(before + 1, Ordering::Relaxed);
        }
        is_new
    }

    fn steps(&self) -> Option<&PikeVM> {
        let make = || table::steps(&regex_syntax::parse(&self.0.translated).ok()?);
        let steps = self
            .0
            .steps
            .get_or_init(|| PikeVM::new_from_nfa(make()?).ok());
        steps.as_ref()
    }

    fn table(&self) -> Option<&Table> {
        let make = || Table::of(&self.0.translated);
        self.0.table.get_or_init(make).as_ref()
    }

    /// The pattern in the syntax of the `regex` crate.
    pub fn as_str(&self) -> &str {
        &self.0.translated
    }

    /// The parts of `text` that match, from left to right.
    pub fn matches<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.automaton()
            .into_iter()
            .flat_map(move |automaton| automaton.find_iter(text))
            .map(|found| found.as_str())
    }

    fn automaton(&self) -> Option<&Regex> {
        let Compiled {
            translated,
            automaton,
            ..
        } = &*self.0;
        automaton
            .get_or_init(|| Regex::new(translated).ok())
            .as_ref()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.as_str()).finish()
    }
}

/// Patterns in use, by source.
static KNOWN: LazyLock<Mutex<HashMap<Box<str>, Weak<Compiled>>>> =
    LazyLock::new(Mutex::default);

fn lookup(pattern: &str) -> Option<Pattern> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(pattern)?.upgrade().map(Pattern)
}

/// The maximum number of parts of a pattern's automaton.
pub(super) fn parts(pattern: &Hir) -> usize {
    let all = |parts: &[Hir]| {
        let each = parts.iter().map(|part| self::parts(part).saturating_add(1));
        each.fold(1, usize::saturating_add)
    };
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len().saturating_add(1),
        HirKind::Class(Class::Unicode(class)) => {
            let each = if class.is_ascii() { 1 } else { PARTS_OF_RANGE };
            class.ranges().len().saturating_mul(each).saturating_add(1)
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            parts(&repetition.sub)
                .saturating_add(2)
                .saturating_mul(most)
        }
        HirKind::Capture(capture) => parts(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
    }
}
