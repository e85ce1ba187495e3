//! Where paths through JSON lead, found out once for all programs that follow them.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

/// The paths that programs of one environment follow: fields by name, from a variable on.
///
/// They are numbered when a program is compiled with [`Env::with_paths`](crate::Env), so that
/// programs that are run with the same variables, as the rules of a policy are, look for each
/// path once: see [`Activation::places`](crate::Activation::places). What a run costs stays
/// what it costs without.
#[derive(Clone, Debug)]
pub struct Paths(Arc<Numbered>);

#[derive(Debug)]
struct Numbered {
    variables: &'static [&'static str],
    steps: Mutex<Vec<Step>>,
}

/// The last step of a path, whose number is where it stands.
#[derive(Debug)]
struct Step {
    /// The path before it; nothing for a variable.
    before: Option<Number>,
    name: Box<str>,
    optional: bool,
    /// The paths that go one step further.
    next: Vec<Number>,
}

/// The number of a path.
pub(crate) type Number = u16;

/// Paths beyond these are followed by each program anew, so that what is kept stays small.
const MOST_PATHS: usize = 512;

impl Paths {
    /// No paths yet; those that begin at one of `variables` will be numbered.
    pub fn of(variables: &'static [&'static str]) -> Self {
        Self(Arc::new(Numbered {
            variables,
            steps: Mutex::default(),
        }))
    }

    /// Nothing known yet of where the paths of all programs lead that were compiled so far.
    pub fn places<'v>(&self) -> Places<'v> {
        let steps = self.0.steps.lock().unwrap_or_else(PoisonError::into_inner);
        Places {
            paths: self.clone(),
            known: vec![Cell::default(); steps.len()],
        }
    }

    /// The number of a variable; nothing if its paths are not numbered.
    pub(crate) fn variable(&self, name: &str) -> Option<Number> {
        let is_numbered = self.0.variables.contains(&name);
        is_numbered.then(|| self.number(None, name, false))?
    }

    /// The number of the path to a field.
    pub(crate) fn field(
        &self,
        before: Number,
        name: &str,
        optional: bool,
    ) -> Option<Number> {
        self.number(Some(before), name, optional)
    }

    fn number(
        &self,
        before: Option<Number>,
        name: &str,
        optional: bool,
    ) -> Option<Number> {
        let mut steps = self.0.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |step: &Step| step.optional == optional && *step.name == *name;
        let known = if let Some(before) = before {
            let next = steps.get(usize::from(before)).map(|step| &*step.next);
            let mut next = next.unwrap_or_default().iter().copied();
            next.find(|at| steps.get(usize::from(*at)).is_some_and(is_same))
        } else {
            let mut all = steps.iter();
            let at = all.position(|step| step.before.is_none() && is_same(step));
            at.and_then(|at| Number::try_from(at).ok())
        };
        if known.is_some() || steps.len() == MOST_PATHS {
            return known;
        }
        let new = Number::try_from(steps.len()).ok()?;
        steps.push(Step {
            before,
            name: name.into(),
            optional,
            next: Vec::new(),
        });
        if let Some(before) = before.and_then(|at| steps.get_mut(usize::from(at))) {
            before.next.push(new);
        }
        Some(new)
    }
}

/// What is known of where paths lead, for one set of variables.
#[derive(Debug)]
pub struct Places<'v> {
    paths: Paths,
    known: Vec<Cell<Place<'v>>>,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Place<'v> {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// To JSON.
    At(&'v Json),
    /// To nothing: behind so many fields there was none, which a `?` allows.
    Absent(u64),
    /// To an error, or to what is no JSON. It has to be followed each time.
    Elsewhere,
}

impl<'v> Places<'v> {
    /// Whether these are the places of `paths`, and not of some with other numbers.
    pub(crate) fn are_of(&self, paths: &Paths) -> bool {
        Arc::ptr_eq(&self.paths.0, &paths.0)
    }

    /// Where the path of this number leads; of one that was numbered later nothing is kept.
    #[inline]
    pub(crate) fn get(&self, path: Number) -> Place<'v> {
        match self.known.get(usize::from(path)) {
            Some(known) => known.get(),
            None => Place::Elsewhere,
        }
    }

    pub(crate) fn set(&self, path: Number, place: Place<'v>) {
        if let Some(known) = self.known.get(usize::from(path)) {
            known.set(place);
        }
    }
}
