//! The targets of paths through JSON, cached for all programs that follow them.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

/// The paths that programs of one environment follow: a variable and a sequence of field names.
///
/// Paths are numbered when a program is compiled with [`Env::with_paths`](crate::Env), so that
/// programs that are run with the same variables, such as the rules of a policy, resolve each
/// path once: see [`Activation::resolved_paths`](crate::Activation::resolved_paths). The cost of
/// a run is the same as without the cache.
#[derive(Clone, Debug)]
pub struct Paths(Arc<PathTable>);

#[derive(Debug)]
struct PathTable {
    variables: &'static [&'static str],
    steps: Mutex<Vec<Step>>,
}

/// The last step of a path. Its index is the path's number.
#[derive(Debug)]
struct Step {
    /// The path before the step; `None` for a variable.
    before: Option<PathNumber>,
    name: Box<str>,
    optional: bool,
    /// The paths that are one step longer.
    next: Vec<PathNumber>,
}

/// The number of a path.
pub(crate) type PathNumber = u16;

/// Further paths are resolved by each program separately, so that the cache stays small.
const MAX_PATHS: usize = 512;

impl Paths {
    /// An empty set of paths; paths that start at one of `variables` are numbered.
    pub fn of(variables: &'static [&'static str]) -> Self {
        Self(Arc::new(PathTable {
            variables,
            steps: Mutex::default(),
        }))
    }

    /// An empty cache for the paths of all programs that were compiled so far.
    pub fn new_cache<'v>(&self) -> ResolvedPaths<'v> {
        let steps = self.0.steps.lock().unwrap_or_else(PoisonError::into_inner);
        ResolvedPaths {
            paths: self.clone(),
            targets: vec![Cell::default(); steps.len()],
        }
    }

    /// The number of a variable; `None` if its paths are not numbered.
    pub(crate) fn variable(&self, name: &str) -> Option<PathNumber> {
        let is_numbered = self.0.variables.contains(&name);
        is_numbered.then(|| self.number(None, name, false))?
    }

    /// The number of the path to a field.
    pub(crate) fn field(
        &self,
        before: PathNumber,
        name: &str,
        optional: bool,
    ) -> Option<PathNumber> {
        self.number(Some(before), name, optional)
    }

    fn number(
        &self,
        before: Option<PathNumber>,
        name: &str,
        optional: bool,
    ) -> Option<PathNumber> {
        let mut steps = self.0.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |step: &Step| step.optional == optional && *step.name == *name;
        let known = if let Some(before) = before {
            let next = steps.get(usize::from(before)).map(|step| &*step.next);
            let mut next = next.unwrap_or_default().iter().copied();
            next.find(|at| steps.get(usize::from(*at)).is_some_and(is_same))
        } else {
            let mut all = steps.iter();
            let at = all.position(|step| step.before.is_none() && is_same(step));
            at.and_then(|at| PathNumber::try_from(at).ok())
        };
        if known.is_some() || steps.len() == MAX_PATHS {
            return known;
        }
        let new = PathNumber::try_from(steps.len()).ok()?;
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

/// The cached targets of paths, for one set of variables.
#[derive(Debug)]
pub struct ResolvedPaths<'v> {
    paths: Paths,
    targets: Vec<Cell<ResolvedPath<'v>>>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ResolvedPath<'v> {
    /// The path has not been resolved.
    #[default]
    Unresolved,
    /// JSON.
    Json(&'v Json),
    /// Absent: the field after this number of fields does not exist, which a `?` allows.
    Absent(u64),
    /// An error, or a value that is not JSON. The path must be resolved each time.
    Uncached,
}

impl<'v> ResolvedPaths<'v> {
    /// Whether this is the cache of `paths`, and not of paths with other numbers.
    pub(crate) fn are_of(&self, paths: &Paths) -> bool {
        Arc::ptr_eq(&self.paths.0, &paths.0)
    }

    /// The target of the path of this number; paths that were numbered later are not cached.
    #[inline]
    pub(crate) fn get(&self, path: PathNumber) -> ResolvedPath<'v> {
        match self.targets.get(usize::from(path)) {
            Some(cached) => cached.get(),
            None => ResolvedPath::Uncached,
        }
    }

    pub(crate) fn set(&self, path: PathNumber, target: ResolvedPath<'v>) {
        if let Some(cached) = self.targets.get(usize::from(path)) {
            cached.set(target);
        }
    }
}
