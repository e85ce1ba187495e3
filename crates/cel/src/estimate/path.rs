//! Where in a variable's value an expression's value comes from.

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

/// A path; empty if the value comes from no variable.
///
/// In the API server paths are Go slices: one that is extended twice may be written to
/// twice in the same place, so that a path ends in the step of its younger sibling. What a
/// rule is taken to cost can depend on it (the range `x.list` of a fold whose body reads
/// `x.limit` is then as large as the limit), so paths share their memory here as they do
/// there.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// None where there are no steps.
    memory: Option<Rc<Memory>>,
    length: usize,
}

#[derive(Debug)]
struct Memory {
    steps: RefCell<Vec<Step>>,
    capacity: usize,
}

impl Path {
    /// The path of a variable.
    pub(super) fn of(variable: &Arc<str>) -> Self {
        Self::default().then(Step::Name(Arc::clone(variable)))
    }

    /// The path extended by `step`: in place while there is room, else in memory twice as
    /// large.
    pub(super) fn then(&self, step: Step) -> Self {
        let length = self.length + 1;
        if let Some(memory) = &self.memory
            && length <= memory.capacity
        {
            let mut steps = memory.steps.borrow_mut();
            match steps.get_mut(self.length) {
                Some(place) => *place = step,
                None => steps.push(step),
            }
            let memory = Some(Rc::clone(memory));
            return Self { memory, length };
        }
        let mut steps = Vec::with_capacity(length.next_power_of_two());
        self.look(|before| steps.extend_from_slice(before));
        steps.push(step);
        let memory = Memory {
            steps: RefCell::new(steps),
            capacity: length.next_power_of_two(),
        };
        let memory = Some(Rc::new(memory));
        Self { memory, length }
    }

    /// Looks at the steps as they are at this moment.
    pub(super) fn look<T>(&self, look: impl FnOnce(&[Step]) -> T) -> T {
        let Some(memory) = &self.memory else {
            return look(&[]);
        };
        let steps = memory.steps.borrow();
        look(steps.get(..self.length).unwrap_or(&steps))
    }
}
