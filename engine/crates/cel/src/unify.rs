//! Unification: decides whether a type is assignable to another, and binds type parameters.

use std::mem::{self, discriminant};
use std::sync::{Arc, LazyLock};

use crate::Type;
use crate::fnv::FnvMap;
use crate::library::Overload;
use crate::ty::{ListType, MapType};

/// The types bound to the type parameters so far.
#[derive(Debug, Default)]
pub(crate) struct Substitutions {
    bound: Bound,
    /// The previous bindings, newest last, so that an attempt can be undone.
    undo: Vec<(Arc<str>, Option<Type>)>,
    fresh: usize,
}

/// The bindings, by the number in the parameter's name.
#[derive(Debug, Default)]
struct Bound {
    numbered: Vec<Option<Type>>,
    /// Parameters of declared types, whose names are not numbered.
    others: FnvMap<Arc<str>, Type>,
}

/// A number of parameters that nearly all expressions do not exceed.
const FEW_PARAMETERS: usize = 12;
/// Parameters with higher numbers are bound by name.
const MAX_NUMBERED: usize = 4_096;

impl Bound {
    /// The number in a name.
    fn number(name: &str) -> Option<usize> {
        let digits = name.strip_prefix(PREFIX)?;
        let is_number = digits == "0" || !digits.starts_with(['0', '+']);
        let number = digits.parse().ok().filter(|_| is_number)?;
        (number < MAX_NUMBERED).then_some(number)
    }

    fn get(&self, name: &str) -> Option<&Type> {
        match Self::number(name) {
            Some(number) => self.numbered.get(number)?.as_ref(),
            None => self.others.get(name),
        }
    }

    /// Binds a parameter to `ty`, or unbinds it; returns the previous binding.
    fn set(&mut self, name: &Arc<str>, ty: Option<Type>) -> Option<Type> {
        let Some(number) = Self::number(name) else {
            return match ty {
                Some(ty) => self.others.insert(Arc::clone(name), ty),
                None => self.others.remove(name),
            };
        };
        if self.numbered.len() <= number {
            self.numbered.reserve(FEW_PARAMETERS);
            self.numbered.resize(number + 1, None);
        }
        let place = self.numbered.get_mut(number)?;
        mem::replace(place, ty)
    }
}

/// The names of the first parameters, enough for nearly all expressions.
static NAMES: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| (0..32).map(name_of).collect());

/// The prefix of parameter names, before their numbers.
const PREFIX: &str = "_var";

fn name_of(number: usize) -> Arc<str> {
    Arc::from(format!("{PREFIX}{number}"))
}

fn numbered(number: usize) -> Arc<str> {
    let name = NAMES.get(number).cloned();
    name.unwrap_or_else(|| name_of(number))
}

/// The names of an overload's type parameters in one call of it.
struct Names<'o> {
    /// The names in the overload's declaration, in the order of their numbers.
    declared: &'o [Arc<str>],
    /// The number of the first parameter.
    first: usize,
}

impl Names<'_> {
    fn rename(&self, ty: &Type) -> Type {
        match ty {
            Type::Param(name) => {
                let at = self.declared.iter().position(|known| known == name);
                Type::Param(numbered(self.first + at.unwrap_or_default()))
            }
            other => other.map_inner(&mut |inner| self.rename(inner)),
        }
    }
}

impl Substitutions {
    /// A new, unbound type parameter.
    pub(crate) fn fresh(&mut self) -> Type {
        let name = numbered(self.fresh);
        self.fresh += 1;
        Type::Param(name)
    }

    /// The type of a call of `overload` with arguments of the types `given`; `None` if they are
    /// not assignable, in which case the bindings of the attempt are undone.
    pub(crate) fn called(&mut self, overload: &Overload, given: &[Type]) -> Option<Type> {
        let Overload {
            params,
            result,
            type_params,
            ..
        } = overload;
        // Parameters are numbered as in the API server, because errors contain their names.
        let names = Names {
            declared: type_params,
            first: self.fresh,
        };
        self.fresh += type_params.len();
        let mut pairs = given.iter().zip(params);
        if pairs.any(|(given, wanted)| differ(given, wanted)) {
            return None;
        }
        if type_params.is_empty() {
            return self.all_assignable(given, params).then(|| result.clone());
        }
        let mark = self.undo.len();
        let mut pairs = given.iter().zip(params);
        let fits = given.len() == params.len()
            && pairs.all(|(given, wanted)| self.unify_named(given, wanted, &names));
        self.settle(mark, fits)
            .then(|| self.apply_named(result, &names))
    }

    /// [`Substitutions::unify`] with a type whose parameters are renamed by `names`.
    fn unify_named(&mut self, given: &Type, wanted: &Type, names: &Names<'_>) -> bool {
        match (given, wanted) {
            (given, whole) if !whole.has_params() => self.unify(given, whole),
            (Type::List(given), Type::List(wanted)) => {
                self.unify_named(&given.item, &wanted.item, names)
            }
            (Type::Map(given), Type::Map(wanted)) => {
                self.unify_named(&given.key, &wanted.key, names)
                    && self.unify_named(&given.value, &wanted.value, names)
            }
            (Type::Optional(given), Type::Optional(wanted)) => {
                self.unify_named(given, wanted, names)
            }
            (given, wanted) => self.unify(given, &names.rename(wanted)),
        }
    }

    /// [`Substitutions::apply`] to a type whose parameters are renamed by `names`.
    fn apply_named(&self, ty: &Type, names: &Names<'_>) -> Type {
        match ty {
            whole if !whole.has_params() => whole.clone(),
            Type::Param(_) => self.applied(names.rename(ty)),
            other => other.map_inner(&mut |inner| self.apply_named(inner, names)),
        }
    }

    /// The common type of values of both types, if there is one.
    pub(crate) fn common(&mut self, first: &Type, second: &Type) -> Option<Type> {
        if first.has_params() || second.has_params() {
            let of_any = self.fresh();
            let given = [first.clone(), second.clone()];
            let wanted = [of_any.clone(), of_any.clone()];
            return self
                .all_assignable(&given, &wanted)
                .then(|| self.apply(&of_any));
        }
        // A parameter without further uses need not be bound.
        self.fresh += 1;
        if first == second {
            return Some(first.clone());
        }
        self.unify(second, first)
            .then(|| more_general(second, first))
    }

    /// Whether each of `given` is assignable to each of `wanted`. If not, the bindings of the
    /// attempt are undone.
    pub(crate) fn all_assignable(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        let mark = self.undo.len();
        let fits = given.len() == wanted.len()
            && given
                .iter()
                .zip(wanted)
                .all(|(given, wanted)| self.unify(given, wanted));
        self.settle(mark, fits)
    }

    /// Keeps the bindings since `mark` if it `fits`, and otherwise undoes them.
    fn settle(&mut self, mark: usize, fits: bool) -> bool {
        if fits {
            self.undo.truncate(mark);
            return true;
        }
        while self.undo.len() > mark
            && let Some((name, before)) = self.undo.pop()
        {
            self.bound.set(&name, before);
        }
        false
    }

    /// [`Substitutions::all_assignable`] for one pair.
    pub(crate) fn assignable(&mut self, given: &Type, wanted: &Type) -> bool {
        self.all_assignable(std::slice::from_ref(given), std::slice::from_ref(wanted))
    }

    /// Replaces every bound parameter, and unbound ones with dynamic, in place.
    pub(crate) fn finish_all(&self, types: &mut [Type]) {
        for ty in types {
            if ty.has_params() {
                *ty = self.finish(ty);
            }
        }
    }

    /// [`Substitutions::apply`] to an owned type.
    pub(crate) fn applied(&self, ty: Type) -> Type {
        if ty.has_params() { self.apply(&ty) } else { ty }
    }

    /// The type with every bound parameter replaced.
    pub(crate) fn apply(&self, ty: &Type) -> Type {
        match ty {
            whole if !whole.has_params() => whole.clone(),
            Type::Param(name) => match self.bound.get(name) {
                Some(bound) => self.apply(bound),
                None => ty.clone(),
            },
            other => other.map_inner(&mut |inner| self.apply(inner)),
        }
    }

    /// [`Substitutions::apply`], with unbound parameters replaced with dynamic.
    pub(crate) fn finish(&self, ty: &Type) -> Type {
        match self.apply(ty) {
            whole if !whole.has_params() => whole,
            Type::Param(_) => Type::Dyn,
            other => other.map_inner(&mut |inner| self.finish(inner)),
        }
    }

    fn bind(&mut self, name: &Arc<str>, ty: Type) {
        let before = self.bound.set(name, Some(ty));
        self.undo.push((Arc::clone(name), before));
    }

    fn unify(&mut self, given: &Type, wanted: &Type) -> bool {
        if let Type::Param(name) = wanted {
            match self.substitute(given, name) {
                Substitution::Valid => return true,
                Substitution::Contradicted => return false,
                Substitution::Recursive => {}
            }
        }
        if let Type::Param(name) = given {
            return matches!(self.substitute(wanted, name), Substitution::Valid);
        }
        match (given, wanted) {
            (Type::Dyn | Type::Any | Type::Error, _)
            | (_, Type::Dyn | Type::Any | Type::Error)
            | (Type::Type(_), Type::Type(_)) => true,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Abstract(_)
                    | Type::Optional(_)
                    | Type::Object(_)
                    | Type::Duration
                    | Type::Timestamp
            ),
            (Type::List(given), Type::List(wanted)) => {
                self.unify(&given.item, &wanted.item)
            }
            (Type::Map(given), Type::Map(wanted)) => {
                self.unify(&given.key, &wanted.key)
                    && self.unify(&given.value, &wanted.value)
            }
            (Type::Optional(given), Type::Optional(wanted)) => self.unify(given, wanted),
            (given, wanted) => given == wanted,
        }
    }

    /// Whether the parameter `name` may be substituted by `ty`; binds it if it is free.
    fn substitute(&mut self, ty: &Type, name: &Arc<str>) -> Substitution {
        if matches!(ty, Type::Param(same) if same == name) {
            return Substitution::Valid;
        }
        let Some(bound) = self.bound.get(name).cloned() else {
            if self.occurs(name, ty) {
                return Substitution::Recursive;
            }
            self.bind(name, ty.clone());
            return Substitution::Valid;
        };
        if *ty == bound {
            return Substitution::Valid;
        }
        if !self.unify(ty, &bound) {
            return Substitution::Contradicted;
        }
        let general = more_general(ty, &bound);
        if !self.occurs(name, &general) {
            self.bind(name, general);
        }
        Substitution::Valid
    }

    fn occurs(&self, name: &Arc<str>, within: &Type) -> bool {
        match within {
            Type::Param(other) if other == name => true,
            Type::Param(other) => self
                .bound
                .get(other)
                .is_some_and(|bound| self.occurs(name, bound)),
            Type::List(list) => self.occurs(name, &list.item),
            Type::Map(map) => {
                self.occurs(name, &map.key) || self.occurs(name, &map.value)
            }
            Type::Optional(inner) | Type::Type(inner) => self.occurs(name, inner),
            _ => false,
        }
    }
}

enum Substitution {
    Valid,
    /// The parameter is already bound to another type.
    Contradicted,
    /// The type contains the parameter itself.
    Recursive,
}

/// Whether the types are so different that neither is assignable to the other.
fn differ(given: &Type, wanted: &Type) -> bool {
    let is_open = |ty: &Type| {
        ty.is_dynamic() || matches!(ty, Type::Error | Type::Param(_) | Type::Null)
    };
    discriminant(given) != discriminant(wanted) && !is_open(given) && !is_open(wanted)
}

/// The more general of two types that unify.
pub(crate) fn more_general(left: &Type, right: &Type) -> Type {
    if is_at_least_as_general(left, right) {
        left.clone()
    } else {
        right.clone()
    }
}

fn is_at_least_as_general(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Any | Type::Param(_), _) | (Type::Type(_), Type::Type(_)) => {
            true
        }
        (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
        (Type::List(left), Type::List(right)) => {
            is_at_least_as_general(&left.item, &right.item)
        }
        (Type::Map(left), Type::Map(right)) => {
            is_at_least_as_general(&left.key, &right.key)
                && is_at_least_as_general(&left.value, &right.value)
        }
        (Type::Optional(left), Type::Optional(right)) => {
            is_at_least_as_general(left, right)
        }
        (left, right) => left == right,
    }
}

impl Type {
    /// Adds the names of its type parameters to `known`, each once.
    pub(crate) fn name_params(&self, known: &mut Vec<Arc<str>>) {
        match self {
            Self::Param(name) if !known.contains(name) => known.push(Arc::clone(name)),
            Self::List(list) => list.item.name_params(known),
            Self::Map(map) => {
                map.key.name_params(known);
                map.value.name_params(known);
            }
            Self::Optional(inner) | Self::Type(inner) => inner.name_params(known),
            _ => {}
        }
    }

    /// Whether it contains type parameters.
    #[inline]
    fn has_params(&self) -> bool {
        match self {
            Self::Param(_) => true,
            Self::List(_) | Self::Map(_) | Self::Optional(_) | Self::Type(_) => {
                self.has_params_within()
            }
            _ => false,
        }
    }

    fn has_params_within(&self) -> bool {
        match self {
            Self::List(list) => list.item.has_params(),
            Self::Map(map) => map.key.has_params() || map.value.has_params(),
            Self::Optional(inner) | Self::Type(inner) => inner.has_params(),
            _ => false,
        }
    }

    /// The same type with other inner types.
    fn map_inner(&self, change: &mut impl FnMut(&Type) -> Type) -> Type {
        match self {
            Self::List(list) => {
                let item = change(&list.item);
                Self::List(Arc::new(ListType {
                    item,
                    kind: list.kind.clone(),
                }))
            }
            Self::Map(map) => {
                let (key, value) = (change(&map.key), change(&map.value));
                Self::Map(Arc::new(MapType { key, value }))
            }
            Self::Optional(inner) => Self::Optional(Arc::new(change(inner))),
            Self::Type(inner) => Self::Type(Arc::new(change(inner))),
            other => other.clone(),
        }
    }
}
