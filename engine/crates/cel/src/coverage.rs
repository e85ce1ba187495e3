//! Which results the parts of expressions have had.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::ast::{Expr, Kind};
use crate::outline::Outline;
use crate::plan::Node;

thread_local! {
    static RECORDED: RefCell<Option<Coverage>> = const { RefCell::new(None) };
}

/// The results of the parts of expressions: of operands of `&&` and `||`, of conditions of `?:`, of
/// predicates of macros, and of whole expressions.
///
/// Verdicts and costs are those of programs that are not recorded. Programs with the same source are
/// recorded together.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    points: BTreeMap<String, BTreeMap<(usize, usize), Arc<Seen>>>,
}

/// The results of one part.
#[derive(Debug, Default)]
pub(crate) struct Seen(AtomicU8);

/// A part of an expression, and which results it has had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Its bytes in the source.
    pub bytes: Range<usize>,
    /// Whether it was true.
    pub was_true: bool,
    /// Whether it was false.
    pub was_false: bool,
    /// Whether it was an error.
    pub failed: bool,
    /// Whether it was a value of another type than bool.
    pub was_other: bool,
}

impl Part {
    /// Whether it was evaluated.
    pub fn is_reached(&self) -> bool {
        self.was_true || self.was_false || self.failed || self.was_other
    }
}

/// A result of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    True = 1,
    False = 2,
    Failed = 4,
    Other = 8,
}

impl Seen {
    pub(crate) fn add(&self, result: Kept) {
        self.0.fetch_or(result as u8, Ordering::Relaxed);
    }
}

impl Coverage {
    /// Records the runs of all programs that `work` compiles on this thread, wherever they run.
    ///
    /// Expressions are compiled deep inside what uses them, so that this is not an argument of all
    /// functions on the way.
    pub fn record<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let outer = RECORDED.replace(Some(Self::default()));
        let done = work();
        let recorded = RECORDED.replace(outer);
        (done, recorded.unwrap_or_default())
    }

    /// The parts of an expression in their order, the whole first. Empty if no program with this
    /// source was compiled.
    pub fn parts(&self, source: &str) -> Vec<Part> {
        let points = self.points.get(source).into_iter().flatten();
        let mut parts: Vec<Part> = points
            .map(|((start, end), seen)| {
                let seen = seen.0.load(Ordering::Relaxed);
                let has = |kept: Kept| seen & kept as u8 != 0;
                Part {
                    bytes: *start..*end,
                    was_true: has(Kept::True),
                    was_false: has(Kept::False),
                    failed: has(Kept::Failed),
                    was_other: has(Kept::Other),
                }
            })
            .collect();
        parts.sort_by_key(|it| (it.bytes.start, std::cmp::Reverse(it.bytes.end)));
        parts
    }
}

/// Makes the nodes of one program that record their results.
pub(crate) struct Recorder<'s> {
    source: &'s str,
    outline: Outline<'s>,
}

impl<'s> Recorder<'s> {
    /// `None` if nothing is recorded.
    pub(crate) fn of(source: &'s str) -> Option<Self> {
        RECORDED.with_borrow(Option::is_some).then(|| Self {
            source,
            outline: Outline::of(source),
        })
    }

    /// The node of a part, recording its results. The accumulators of macros are no parts.
    pub(crate) fn part(&self, expr: &Expr, node: Node) -> Node {
        let is_accumulator =
            matches!(&expr.kind, Kind::Ident(name) if name.starts_with('@'));
        match self.outline.part_at(expr.at) {
            Some(part) if !is_accumulator => {
                self.recorded(self.outline.bytes_of(part), node)
            }
            _ => node,
        }
    }

    /// The node of the whole expression.
    pub(crate) fn whole(&self, node: Node) -> Node {
        match self.outline.parts.first() {
            Some(part) => self.recorded(self.outline.bytes_of(part), node),
            None => node,
        }
    }

    fn recorded(&self, bytes: Range<usize>, node: Node) -> Node {
        let seen = RECORDED.with_borrow_mut(|recorded| {
            let points = &mut recorded.as_mut()?.points;
            let of_source = points.entry(self.source.to_owned()).or_default();
            let seen = of_source.entry((bytes.start, bytes.end)).or_default();
            Some(Arc::clone(seen))
        });
        match seen {
            Some(seen) => Node::Recorded(Box::new((node, seen))),
            None => node,
        }
    }
}
