//! Paths whose targets are cached, for all programs that follow them.

use serde_json::Value as Json;

use super::Run;
use super::optional::MaybeOptional;
use crate::RunError;
use crate::paths::{PathNumber, ResolvedPath, ResolvedPaths};
use crate::plan::{Attribute, Key, Node, Qualifier, Root};
use crate::value::{named, untyped};

impl Attribute {
    /// The cost of its fields and indexes, without the name at the start.
    pub(super) fn steps(&self) -> u64 {
        self.qualifiers.len() as u64
    }
}

impl<'v> Run<'_, 'v> {
    /// The target of a path, if paths are cached.
    #[inline]
    pub(super) fn resolved_path(
        &self,
        node: &'v Node,
    ) -> Option<(ResolvedPath<'v>, &'v Attribute)> {
        match node {
            Node::Attribute(attribute) => {
                Some((self.resolve_path(attribute)?, attribute))
            }
            _ => None,
        }
    }

    #[inline]
    fn resolve_path(&self, attribute: &'v Attribute) -> Option<ResolvedPath<'v>> {
        let (resolved_paths, path) = (self.resolved_paths?, attribute.path?);
        if attribute.test {
            return None;
        }
        match resolved_paths.get(path) {
            ResolvedPath::Unresolved => Some(self.find(resolved_paths, attribute, path)),
            target => Some(target),
        }
    }

    /// The cached target of a path, with its cost without the name at the start.
    #[inline]
    pub(super) fn cached_value(
        &mut self,
        attribute: &'v Attribute,
        name: u64,
    ) -> Option<Result<MaybeOptional<'v>, RunError>> {
        let (found, steps) = self.cached_json(attribute)?;
        let found = match found {
            Some(json) if attribute.optional => MaybeOptional::Present(untyped(json)),
            Some(json) => MaybeOptional::Plain(untyped(json)),
            None => MaybeOptional::Absent,
        };
        Some(self.budget.charge_steps(steps + name).map(|()| found))
    }

    /// The cached target of a path, `None` if absent, and the cost of following it without the
    /// name at the start; `None` if the target is not cached.
    #[inline]
    pub(super) fn cached_json_of(
        &self,
        node: &'v Node,
    ) -> Option<(Option<&'v Json>, u64)> {
        match node {
            Node::Attribute(attribute) => self.cached_json(attribute),
            _ => None,
        }
    }

    #[inline]
    fn cached_json(&self, attribute: &'v Attribute) -> Option<(Option<&'v Json>, u64)> {
        match self.resolve_path(attribute)? {
            ResolvedPath::Json(json) => Some((Some(json), attribute.steps())),
            ResolvedPath::Absent(before) => Some((None, before)),
            ResolvedPath::Unresolved | ResolvedPath::Uncached => None,
        }
    }

    /// Resolves a path, starting after its longest prefix in the cache.
    #[inline(never)]
    fn find(
        &self,
        resolved_paths: &ResolvedPaths<'v>,
        attribute: &'v Attribute,
        path: PathNumber,
    ) -> ResolvedPath<'v> {
        let qualifiers = &*attribute.qualifiers;
        let mut target = ResolvedPath::Unresolved;
        let mut from = qualifiers.len();
        while let Some(before) = from.checked_sub(1)
            && let Some(qualifier) = qualifiers.get(before)
        {
            target = qualifier
                .path
                .map_or(target, |path| resolved_paths.get(path));
            if !matches!(target, ResolvedPath::Unresolved) {
                break;
            }
            from = before;
        }
        if from == 0 {
            target = self.path_start(&attribute.root);
        }
        let (known, rest) = qualifiers.split_at_checked(from).unwrap_or_default();
        let mut optional = known.iter().any(|it| it.optional);
        for (at, qualifier) in rest.iter().enumerate() {
            optional |= qualifier.optional;
            target = step(target, (from + at, qualifier), optional);
            if let Some(path) = qualifier.path {
                resolved_paths.set(path, target);
            }
        }
        resolved_paths.set(path, target);
        target
    }

    /// The start of a path: a variable that is JSON without a declared type.
    fn path_start(&self, root: &Root) -> ResolvedPath<'v> {
        let json = match root {
            Root::Variable(variable) => self.declared.get(*variable),
            _ => None,
        };
        let json = json.filter(|declared| declared.ty.is_dynamic());
        match json.and_then(|declared| self.activation.json(&declared.name)) {
            Some(json) => ResolvedPath::Json(json),
            None => ResolvedPath::Uncached,
        }
    }
}

/// Reads one field, after this number of fields.
fn step<'v>(
    target: ResolvedPath<'v>,
    (before, qualifier): (usize, &Qualifier),
    optional: bool,
) -> ResolvedPath<'v> {
    let (ResolvedPath::Json(Json::Object(fields)), Key::Name(name)) =
        (target, &qualifier.key)
    else {
        return match target {
            ResolvedPath::Absent(_) => target,
            _ => ResolvedPath::Uncached,
        };
    };
    match named(fields, name) {
        Some(json) => ResolvedPath::Json(json),
        None if optional => ResolvedPath::Absent(before as u64),
        None => ResolvedPath::Uncached,
    }
}
