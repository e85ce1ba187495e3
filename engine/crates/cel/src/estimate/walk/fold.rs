//! The expansions of macros: comprehensions over lists and maps, and bindings.

use std::sync::Arc;

use super::{Local, Walk};
use crate::ast::{Expr, Fold, Kind};
use crate::estimate::Range;
use crate::estimate::path::Step;
use crate::{Type, Value};

/// The part of a list or map that an iteration variable takes.
enum Part {
    /// The items of a list, the keys of a map.
    Single,
    Key,
    Value,
}

impl<'t> Walk<'t> {
    pub(super) fn fold(&mut self, expr: &'t Expr, fold: &'t Fold) -> Range {
        let mut cost = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        let outer = self.locals.len();
        if let Some(var2) = &fold.var2 {
            self.push_part(&fold.var, &fold.range, &Part::Key);
            self.push_part(var2, &fold.range, &Part::Value);
        } else {
            self.push_part(&fold.var, &fold.range, &Part::Single);
        }
        let condition = self.cost(&fold.condition);
        let each = condition.plus(self.cost(&fold.step));
        self.locals.truncate(outer);
        cost = cost.plus(self.cost(&fold.result));
        self.locals.pop();
        let count = self.size_or_unknown(&fold.range);
        match fold.init.kind {
            Kind::Literal(_) => {
                let size = self.size(&fold.init);
                self.remember(expr, size);
            }
            Kind::List(_) | Kind::Map(_) => {
                self.remember(expr, Some(count));
                if let Some(entry) = self.entry(&fold.step) {
                    self.set_entry(expr, entry);
                }
            }
            _ => {}
        }
        cost.plus(count.times(each))
    }

    /// A binding. Its iteration range is an empty list, whose creation has a cost.
    pub(super) fn binding(&mut self, expr: &'t Expr, fold: &'t Fold) -> Range {
        let cost = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        let cost = cost.plus(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr, &fold.result);
        cost
    }

    fn push_accumulator(&mut self, fold: &Fold) {
        let path = self.path(&fold.init);
        let entry = self.entry(&fold.init);
        let size = self.size(&fold.init);
        let name = Arc::clone(&fold.accu);
        self.locals.push(Local {
            name,
            path,
            size,
            entry,
        });
    }

    fn push_part(&mut self, name: &Arc<str>, range: &Expr, part: &Part) {
        let entry = self.entry(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.ty(range), Type::List(_)),
        };
        let (step, of_value) = match (part, is_list) {
            (Part::Single | Part::Value, true) => (Step::Items, true),
            (Part::Value, false) => (Step::Values, true),
            (Part::Key, true) => (Step::Indices, false),
            (Part::Single | Part::Key, false) => (Step::Keys, false),
        };
        let size = entry.map(|entry| if of_value { entry.value } else { entry.key });
        let path = self.path(range).then(step);
        self.locals.push(Local {
            name: Arc::clone(name),
            path,
            size,
            entry: None,
        });
    }
}

/// Whether the comprehension only binds a name to a value.
pub(super) fn is_binding(fold: &Fold) -> bool {
    matches!(&fold.range.kind, Kind::List(items) if items.is_empty())
        && matches!(&fold.condition.kind, Kind::Literal(Value::Bool(false)))
}
