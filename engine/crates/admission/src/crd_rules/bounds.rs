//! The maximum sizes of the values of a schema, as the API server computes them: from the
//! schema, or from what fits into one request.

use kubemu_cel::Bounds;

use super::declared;
use crate::schema::node::Node;

/// The maximum size of a request, in bytes.
const REQUEST: i64 = 3 * 1024 * 1024;
/// Bytes of `""`, and of `[]` and `{}`.
const EMPTY: i64 = 2;

/// The bounds of a value, and the bytes of its shortest JSON form.
pub(super) struct BoundedSize {
    pub(super) bounds: Bounds,
    shortest: i64,
}

impl BoundedSize {
    fn of_size(most: i64, shortest: i64) -> Self {
        let bounds = Bounds::of_size(unsigned(most));
        Self { bounds, shortest }
    }

    /// The number of such values that fit into a request, with a comma after each.
    pub(super) fn fits(&self) -> u64 {
        unsigned(REQUEST / (self.shortest + 1))
    }
}

/// A negative bound is treated as 0.
pub(super) fn unsigned(most: i64) -> u64 {
    u64::try_from(most).unwrap_or(0)
}

/// The bounds of a node's values as rules see them; `None` if rules cannot see them. Rules see
/// `apiVersion`, `kind` and two fields of `metadata` of a resource, whatever its schema is.
pub(super) fn of(node: &Node, resource: bool) -> Option<BoundedSize> {
    if node.int_or_string {
        return Some(BoundedSize::of_size(
            longest(node).unwrap_or(REQUEST - EMPTY),
            1,
        ));
    }
    match node.kind.as_str() {
        "array" => {
            let each = part(node.items.as_deref()?)?;
            let fits = (REQUEST - EMPTY) / (each.shortest + 1);
            let most = unsigned(node.checks.max_items.unwrap_or(fits));
            Some(BoundedSize {
                bounds: Bounds::list(most, each.bounds),
                shortest: EMPTY,
            })
        }
        "object" => match node.additional.schema() {
            Some(each) => {
                let each = part(each)?;
                // Each entry has a key, its quotes, a colon and a comma.
                let fits = (REQUEST - EMPTY) / (each.shortest + 6);
                let most = unsigned(node.checks.max_properties.unwrap_or(fits));
                Some(BoundedSize {
                    bounds: Bounds::map(most, each.bounds),
                    shortest: EMPTY,
                })
            }
            None => Some(object(node, resource)),
        },
        "string" => Some(text(node)),
        "boolean" => Some(BoundedSize::of_size(0, 4)),
        "number" | "integer" => Some(BoundedSize::of_size(0, 1)),
        _ => None,
    }
}

fn part(node: &Node) -> Option<BoundedSize> {
    of(node, node.embedded)
}

/// `maxLength` counts characters of up to four bytes.
fn longest(node: &Node) -> Option<i64> {
    let most = node.checks.max_length?.max(0);
    Some(most.saturating_mul(4))
}

fn text(node: &Node) -> BoundedSize {
    match node.checks.format.as_str() {
        "byte" => {
            let most = node.checks.max_length.unwrap_or(REQUEST - EMPTY);
            BoundedSize::of_size(most, EMPTY)
        }
        "duration" => BoundedSize::of_size(32, 3),
        "date" => BoundedSize::of_size(12, 12),
        "date-time" => BoundedSize::of_size(32, 21),
        _ => {
            let most = longest(node)
                .or_else(|| longest_allowed(node))
                .unwrap_or(REQUEST - EMPTY);
            BoundedSize::of_size(most, EMPTY)
        }
    }
}

/// The length in bytes of the longest value of an `enum`.
fn longest_allowed(node: &Node) -> Option<i64> {
    let allowed = &node.checks.allowed;
    let lengths = allowed.iter().map(|value| {
        let length = value.as_str().map_or(0, str::len);
        i64::try_from(length).unwrap_or(i64::MAX)
    });
    lengths.max()
}

fn object<'n>(node: &'n Node, resource: bool) -> BoundedSize {
    let resource = resource && !declared::declares_meta(node);
    let mut fields = Vec::with_capacity(node.properties.len());
    let mut shortest = EMPTY;
    let mut add = |name: &'n str, value: BoundedSize, has_default: bool| {
        let required = node.checks.required.iter().any(|it| it == name);
        // Defaults are filled in after the request has been read.
        if required && !has_default {
            let length = i64::try_from(name.len()).unwrap_or(i64::MAX);
            shortest = length
                .saturating_add(value.shortest + 4)
                .saturating_add(shortest);
        }
        fields.push((name, value.bounds));
    };
    for (name, property) in &node.properties {
        if let Some(value) = part(property)
            && !(resource && declared::is_meta(name))
        {
            add(name, value, property.default.is_some());
        }
    }
    if resource {
        let name = || BoundedSize::of_size(REQUEST - EMPTY, EMPTY);
        let names = ["name", "generateName"].map(|it| (it, name().bounds));
        let metadata = BoundedSize {
            bounds: Bounds::object(names),
            shortest: EMPTY,
        };
        add("apiVersion", name(), false);
        add("kind", name(), false);
        add("metadata", metadata, false);
    }
    BoundedSize {
        bounds: Bounds::object(fields),
        shortest,
    }
}
