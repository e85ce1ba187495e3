//! The types of variables and expressions.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::escape::escaped;

/// A type, as declared for a variable or inferred for an expression.
///
/// A declared type also determines how JSON is read: an integral JSON number in a
/// [`Type::Double`] is a double, a JSON string in a [`Type::Timestamp`] is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// Any value; checked at run time.
    Dyn,
    /// As [`Type::Dyn`], except that it cannot be the range of a comprehension: `google.protobuf.Any`,
    /// with which Kubernetes declares the attributes of devices.
    Any,
    /// `x-kubernetes-int-or-string`: dynamic for the checker, but JSON of another kind is an
    /// error.
    IntOrString,
    /// `nullable`: the inner type for the checker, but JSON may be null. Without it, null in a
    /// list or map is an error; an object's field that is null is treated as absent.
    Nullable(Arc<Type>),
    /// Only `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// An unsigned 64-bit integer; never read from JSON.
    Uint,
    /// A 64-bit float. JSON integers are widened.
    Double,
    /// Text.
    String,
    /// Bytes; JSON holds them in base64 (`format: byte`).
    Bytes,
    /// A timestamp; JSON holds RFC 3339 (`format: date-time`).
    Timestamp,
    /// A timestamp for the checker; JSON holds a date (`format: date`).
    Date,
    /// A duration; JSON holds Go's form, `1h30m` (`format: duration`).
    Duration,
    /// A list.
    List(Arc<ListType>),
    /// A map; JSON's keys are strings.
    Map(Arc<MapType>),
    /// An object with declared fields; other fields are not visible.
    Object(Arc<ObjectType>),
    /// A value that may be absent, such as `oldSelf` under `optionalOldSelf`.
    Optional(Arc<Type>),
    /// A type named by its library, such as `net.IP` or `kubernetes.authorization.Authorizer`.
    Abstract(Arc<str>),
    /// The type of types: the type of `type(x)`.
    Type(Arc<Type>),
    /// A type that is not inferred yet: the element type of an empty list, a type parameter of
    /// a library's overload.
    Param(Arc<str>),
    /// The type of an expression with an error that was already reported.
    Error,
}

/// The element type of a list and how two such lists compare.
#[derive(Clone, Debug, Eq)]
pub struct ListType {
    /// The type of every item.
    pub item: Type,
    /// `x-kubernetes-list-type`.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`: it changes the meaning of `==` and `+`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Compared in order; `+` concatenates.
    #[default]
    Atomic,
    /// Order does not matter; `+` adds the missing items.
    Set,
    /// Items are identified by these keys; order does not matter; `+` replaces items of equal
    /// keys.
    Map(Vec<String>),
}

/// The key and value types of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapType {
    /// The type of every key; JSON's are strings.
    pub key: Type,
    /// The type of every value.
    pub value: Type,
}

/// An object's declared fields. Two object types are equal if their names are.
#[derive(Clone, Debug)]
pub struct ObjectType {
    name: Cow<'static, str>,
    /// The fields by escaped name, sorted.
    fields: Vec<(Arc<str>, Field)>,
    /// The fields that expressions cannot name or see, but `==` of two objects compares, sorted
    /// by name.
    hidden: Vec<Field>,
    /// Whether it also has fields of any other name, of dynamic type.
    open: bool,
}

/// How `==` reads a field of an object.
#[derive(Clone, Copy)]
pub(crate) enum Declared<'t> {
    /// As a value of this type; expressions may not be able to name it.
    Typed(&'t Type),
    /// As JSON: expressions cannot see it.
    Untyped,
}

/// One declared field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in JSON; expressions use the field's escaped name.
    pub json: Arc<str>,
    /// The type of its value.
    pub ty: Type,
}

impl Type {
    /// A list compared in order.
    pub fn list(item: Type) -> Self {
        Self::list_of(item, ListKind::Atomic)
    }

    /// Whether it has at most this number of parts, nested types counted.
    pub(crate) fn has_at_most(&self, parts: usize) -> bool {
        let mut left = vec![self];
        let mut seen = 0;
        while let Some(ty) = left.pop() {
            seen += 1;
            if seen > parts {
                return false;
            }
            match ty {
                Self::List(list) => left.push(&list.item),
                Self::Map(map) => left.extend([&map.key, &map.value]),
                Self::Optional(inner) | Self::Type(inner) => left.push(inner),
                _ => {}
            }
        }
        true
    }

    /// A list of the given `x-kubernetes-list-type`.
    pub fn list_of(item: Type, kind: ListKind) -> Self {
        Self::List(Arc::new(ListType { item, kind }))
    }

    /// A map from strings.
    pub fn map(value: Type) -> Self {
        Self::map_of(Type::String, value)
    }

    /// A map from keys of the given type.
    pub fn map_of(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(MapType { key, value }))
    }

    /// An object.
    pub fn object(object: ObjectType) -> Self {
        Self::Object(Arc::new(object))
    }

    /// The same type, with JSON null allowed.
    pub fn nullable(inner: Type) -> Self {
        Self::Nullable(Arc::new(inner))
    }

    /// An optional value.
    pub fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// A type that only has a name.
    pub fn named_abstract(name: &str) -> Self {
        Self::Abstract(Arc::from(name))
    }

    /// Whether values of any type may be passed for it, and read from JSON.
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Whether it contains other types.
    fn has_parts(&self) -> bool {
        matches!(
            self,
            Self::Object(_)
                | Self::List(_)
                | Self::Map(_)
                | Self::Optional(_)
                | Self::Nullable(_)
        )
    }

    /// Gives every nested object type its own name, by its path below `name`.
    ///
    /// Kubernetes does this for the type of a rule's `self`: two fields of equal shape are
    /// still of different types. Objects that already have a name keep it.
    #[must_use]
    pub fn with_names(mut self, name: &str) -> Self {
        self.set_names(name);
        self
    }

    fn set_names(&mut self, name: &str) {
        match self {
            Self::Object(object) if object.name == ObjectType::UNNAMED => {
                let object = Arc::make_mut(object);
                object.name = Cow::Owned(name.to_owned());
                for (key, field) in &mut object.fields {
                    if field.ty.has_parts() {
                        field.ty.set_names(&format!("{name}.{key}"));
                    }
                }
            }
            Self::List(list) if list.item.has_parts() => {
                let item = &mut Arc::make_mut(list).item;
                item.set_names(&format!("{name}.@idx"));
            }
            Self::Map(map) if map.value.has_parts() => {
                let value = &mut Arc::make_mut(map).value;
                value.set_names(&format!("{name}.@elem"));
            }
            Self::Optional(inner) | Self::Nullable(inner) if inner.has_parts() => {
                Arc::make_mut(inner).set_names(name);
            }
            _ => {}
        }
    }
}

impl ObjectType {
    /// The name of an object type without a given name.
    const UNNAMED: &'static str = "object";

    /// An object with these fields, by their JSON names.
    ///
    /// Each field has its [escaped](crate::escape) name in expressions; a field whose name
    /// cannot be escaped is only visible to `==`.
    pub fn new<N: Into<Arc<str>>>(fields: impl IntoIterator<Item = (N, Type)>) -> Self {
        let mut hidden = Vec::new();
        let fields = fields.into_iter().filter_map(|(name, ty)| {
            let json = name.into();
            let name = match escaped(&json) {
                Some(Cow::Borrowed(_)) => Arc::clone(&json),
                Some(Cow::Owned(escaped)) => Arc::from(escaped),
                None => {
                    hidden.push(Field { json, ty });
                    return None;
                }
            };
            Some((name, Field { json, ty }))
        });
        let mut fields: Vec<_> = fields.collect();
        hidden.sort_by(|left, right| left.json.cmp(&right.json));
        fields.sort_by(|(left, _), (right, _)| left.cmp(right));
        // Of two fields with one name the later one is kept.
        fields.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        Self {
            name: Cow::Borrowed(Self::UNNAMED),
            fields,
            hidden,
            open: false,
        }
    }

    /// Adds fields of any type by their JSON names. Expressions cannot read them, and `==` of two
    /// objects compares their JSON.
    #[must_use]
    pub fn with_untyped<'n>(mut self, names: impl Iterator<Item = &'n str>) -> Self {
        self.hidden.extend(names.map(|name| Field {
            json: name.into(),
            ty: Type::Dyn,
        }));
        self.hidden
            .sort_by(|left, right| left.json.cmp(&right.json));
        self
    }

    /// An object of this type name with fields of any name, each [`Type::Dyn`].
    pub(crate) fn open(name: &str) -> Self {
        Self {
            name: Cow::Owned(name.to_owned()),
            fields: Vec::new(),
            hidden: Vec::new(),
            open: true,
        }
    }

    /// The type of the field of this escaped name, as [`ObjectType::field`] finds it.
    pub(crate) fn field_type(&self, name: &str) -> Option<&Type> {
        let declared = self.field(name).map(|field| &field.ty);
        declared.or(self.open.then_some(&Type::Dyn))
    }

    /// The same fields with this type name, such as `kubernetes.AdmissionRequest`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Cow::Owned(name.into());
        self
    }

    /// The type's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field of this escaped name. A field whose name is a keyword can also be read by its
    /// unescaped name, where the syntax allows it: `self.metadata.namespace`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let escaped = || format!("__{name}__");
        let is_plain = |field: &&Field| *field.json == *name;
        self.escaped(name)
            .or_else(|| self.escaped(&escaped()).filter(is_plain))
    }

    fn escaped(&self, name: &str) -> Option<&Field> {
        let found = self
            .fields
            .binary_search_by(|(known, _)| (**known).cmp(name));
        self.fields.get(found.ok()?).map(|(_, field)| field)
    }

    /// The field of this JSON name.
    pub(crate) fn by_json(&self, name: &str) -> Option<Declared<'_>> {
        let visible = escaped(name).and_then(|escaped| self.escaped(&escaped));
        if let Some(field) = visible.filter(|it| *it.json == *name) {
            return Some(Declared::Typed(&field.ty));
        }
        let found = self
            .hidden
            .binary_search_by(|field| (*field.json).cmp(name));
        Some(match &self.hidden.get(found.ok()?)?.ty {
            Type::Dyn => Declared::Untyped,
            ty => Declared::Typed(ty),
        })
    }

    /// All fields by escaped name, sorted.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.fields.iter().map(|(name, field)| (&**name, field))
    }
}

/// The list type does not affect type equality.
impl PartialEq for ListType {
    fn eq(&self, other: &Self) -> bool {
        self.item == other.item
    }
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

/// As Kubernetes prints it: `list(string)`, `map(string, dyn)`, `optional_type(int)`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::IntOrString => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Nullable(inner) => inner.fmt(f),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp | Self::Date => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(list) => write!(f, "list({})", list.item),
            Self::Map(map) => write!(f, "map({}, {})", map.key, map.value),
            Self::Object(object) => f.write_str(&object.name),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Abstract(name) | Self::Param(name) => f.write_str(name),
            Self::Type(inner) => write!(f, "type({inner})"),
            Self::Error => f.write_str("!error!"),
        }
    }
}

impl Type {
    /// Whether the checker uses the type unchanged.
    fn is_plain(&self) -> bool {
        match self {
            Self::IntOrString | Self::Date | Self::Nullable(_) => false,
            Self::List(list) => list.item.is_plain(),
            Self::Map(map) => map.value.is_plain(),
            Self::Optional(inner) => inner.is_plain(),
            Self::Object(object) => {
                object.fields.iter().all(|(_, field)| field.ty.is_plain())
            }
            _ => true,
        }
    }

    /// The type that the checker uses, without the parts that only determine how JSON is read.
    pub(crate) fn plain(&self) -> Self {
        if self.is_plain() {
            return self.clone();
        }
        self.changed_to_plain()
    }

    fn changed_to_plain(&self) -> Self {
        match self {
            Self::IntOrString => Self::Dyn,
            Self::Date => Self::Timestamp,
            Self::Nullable(inner) => inner.plain(),
            Self::List(list) => Self::list_of(list.item.plain(), list.kind.clone()),
            Self::Map(map) => Self::map_of(map.key.clone(), map.value.plain()),
            Self::Optional(inner) => Self::optional(inner.plain()),
            Self::Object(object) => {
                let mut object = ObjectType::clone(object);
                for (_, field) in &mut object.fields {
                    field.ty = field.ty.plain();
                }
                Self::object(object)
            }
            other => other.clone(),
        }
    }
}

/// Parses a signature of a library's table: `list(T), T -> bool`.
///
/// Names that are not a built-in type are abstract types; single capitals are type parameters.
pub(crate) fn signature(text: &str) -> (Vec<Type>, Type) {
    let (params, result) = text.split_once("->").unwrap_or(("", text));
    (split(params).map(named).collect(), named(result.trim()))
}

/// The parts between commas outside parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |char| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn named(name: &str) -> Type {
    if let Some((outer, inner)) = name.split_once('(') {
        let inner = inner.strip_suffix(')').unwrap_or(inner);
        let mut inner = split(inner).map(named);
        let first = inner.next().unwrap_or(Type::Dyn);
        return match outer {
            "list" => Type::list(first),
            "map" => Type::map_of(first, inner.next().unwrap_or(Type::Dyn)),
            "optional" => Type::optional(first),
            _ => Type::Type(Arc::new(first)),
        };
    }
    match name {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        name if name.len() == 1 => Type::Param(Arc::from(name)),
        name => Type::named_abstract(name),
    }
}
