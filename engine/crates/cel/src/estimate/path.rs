//! The path in a variable's value that an expression's value comes from.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// One step of a path.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A variable, at the start, or a field.
    Name(Arc<str>),
    Items,
    Indices,
    Keys,
    Values,
}

/// A path; empty if the value does not come from a variable.
///
/// In the API server, paths are Go slices. If one is extended twice, both appends may write to
/// the same backing array, so that a path ends in the step of another path that was extended
/// later. The estimate of a rule can depend on it (the range `x.list` of a comprehension whose
/// body reads `x.limit` then has the size of the limit), so paths share memory here in the same
/// way.
#[derive(Clone, Debug, Default)]
pub(super) enum Path {
    #[default]
    Empty,
    /// A variable alone. It has no spare capacity, so that no memory is shared.
    One(Step),
    Several {
        memory: Rc<Memory>,
        length: usize,
    },
}

#[derive(Debug)]
pub(super) struct Memory {
    steps: RefCell<Vec<Step>>,
    capacity: usize,
}

impl Path {
    /// The path of a variable.
    pub(super) fn of(variable: &Arc<str>) -> Self {
        Self::One(Step::Name(Arc::clone(variable)))
    }

    /// The path extended by `step`: in place if the capacity suffices, otherwise in new memory
    /// of twice the capacity.
    pub(super) fn then(&self, step: Step) -> Self {
        let length = match self {
            Self::Empty => return Self::One(step),
            Self::One(_) => 2,
            Self::Several { length, .. } => length + 1,
        };
        if let Self::Several { memory, .. } = self
            && length <= memory.capacity
        {
            let mut steps = memory.steps.borrow_mut();
            match steps.get_mut(length - 1) {
                Some(place) => *place = step,
                None => steps.push(step),
            }
            let memory = Rc::clone(memory);
            return Self::Several { memory, length };
        }
        let capacity = length.next_power_of_two();
        let mut steps = Vec::with_capacity(capacity);
        self.with_steps(|before| steps.extend_from_slice(before));
        steps.push(step);
        let steps = RefCell::new(steps);
        let memory = Rc::new(Memory { steps, capacity });
        Self::Several { memory, length }
    }

    /// Reads the current steps.
    pub(super) fn with_steps<T>(&self, read: impl FnOnce(&[Step]) -> T) -> T {
        match self {
            Self::Empty => read(&[]),
            Self::One(step) => read(std::slice::from_ref(step)),
            Self::Several { memory, length } => {
                let steps = memory.steps.borrow();
                read(steps.get(..*length).unwrap_or(&steps))
            }
        }
    }
}
