//! Items as lines of text.

use quote::ToTokens;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Fields, ImplItem, Item, ItemImpl, Signature, TraitItem, Type, Visibility,
};

use crate::tree::Tree;

/// The name of an item; `None` if the item has none.
pub(crate) fn ident(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Whether an item is `pub`, and not only within its crate.
pub(crate) fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(it) => &it.vis,
        Item::Enum(it) => &it.vis,
        Item::Fn(it) => &it.vis,
        Item::Static(it) => &it.vis,
        Item::Struct(it) => &it.vis,
        Item::Trait(it) => &it.vis,
        Item::Type(it) => &it.vis,
        _ => return false,
    };
    is_visible(visibility)
}

fn is_visible(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The declaration of an item, under the path by which other crates name it.
pub(crate) fn line(item: &Item, path: &str) -> String {
    match item {
        Item::Const(it) => format!("const {path}: {}", text(&it.ty)),
        Item::Static(it) => format!("static {path}: {}", text(&it.ty)),
        Item::Type(it) => format!("type {path}{} = {}", text(&it.generics), text(&it.ty)),
        Item::Fn(it) => signature(&it.sig, path),
        Item::Enum(it) => {
            let closed = non_exhaustive(&it.attrs);
            format!("{closed}enum {path}{}", text(&it.generics))
        }
        Item::Struct(it) => {
            let closed = non_exhaustive(&it.attrs);
            format!("{closed}struct {path}{}", text(&it.generics))
        }
        Item::Trait(it) => {
            let bounds = text(&it.supertraits);
            let bounds = if bounds.is_empty() {
                bounds
            } else {
                format!(": {bounds}")
            };
            format!("trait {path}{}{bounds}", text(&it.generics))
        }
        _ => String::new(),
    }
}

fn non_exhaustive(attributes: &[Attribute]) -> &'static str {
    let is_closed = |it: &Attribute| it.path().is_ident("non_exhaustive");
    if attributes.iter().any(is_closed) {
        "non_exhaustive "
    } else {
        ""
    }
}

/// The public fields, the variants, and the items of a trait.
pub(crate) fn members(item: &Item) -> Vec<String> {
    match item {
        Item::Struct(it) => fields(&it.fields),
        Item::Enum(it) => {
            let variants = it.variants.iter();
            variants
                .map(|variant| format!("  {}{}", variant.ident, parts(&variant.fields)))
                .collect()
        }
        Item::Trait(it) => it.items.iter().filter_map(member).collect(),
        _ => Vec::new(),
    }
}

fn fields(fields: &Fields) -> Vec<String> {
    let fields = fields.iter().enumerate();
    let public = fields.filter(|(_, field)| is_visible(&field.vis));
    public
        .map(|(place, field)| {
            let name = field.ident.as_ref().map(ToString::to_string);
            let name = name.unwrap_or_else(|| place.to_string());
            format!("  {name}: {}", text(&field.ty))
        })
        .collect()
}

/// The fields of a variant.
fn parts(fields: &Fields) -> String {
    let parts = fields.iter().map(|field| match &field.ident {
        Some(name) => format!("{name}: {}", text(&field.ty)),
        None => text(&field.ty),
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    match fields {
        Fields::Named(_) => format!(" {{ {parts} }}"),
        Fields::Unnamed(_) => format!("({parts})"),
        Fields::Unit => parts,
    }
}

fn member(item: &TraitItem) -> Option<String> {
    match item {
        TraitItem::Const(it) => Some(format!("  const {}: {}", it.ident, text(&it.ty))),
        TraitItem::Fn(it) => {
            let own = if it.default.is_some() {
                "provided "
            } else {
                ""
            };
            Some(format!(
                "  {own}{}",
                signature(&it.sig, &it.sig.ident.to_string())
            ))
        }
        TraitItem::Type(it) => Some(format!("  type {}", it.ident)),
        _ => None,
    }
}

/// The public functions and constants of the type with a name.
pub(crate) fn associated(tree: &Tree, name: &str) -> Vec<String> {
    let own = |item: &Item| match item {
        Item::Impl(it) if it.trait_.is_none() && is_of(it, name) => Some(it.clone()),
        _ => None,
    };
    let implementations = tree.all().filter_map(own);
    let mut lines: Vec<_> = implementations
        .flat_map(|it| it.items.into_iter().filter_map(|item| function(&item)))
        .collect();
    lines.sort_unstable();
    lines
}

fn is_of(implementation: &ItemImpl, name: &str) -> bool {
    let Type::Path(path) = &*implementation.self_ty else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|segment| segment.ident == name)
}

fn function(item: &ImplItem) -> Option<String> {
    match item {
        ImplItem::Fn(it) if is_visible(&it.vis) => Some(format!(
            "  {}",
            signature(&it.sig, &it.sig.ident.to_string())
        )),
        ImplItem::Const(it) if is_visible(&it.vis) => {
            Some(format!("  const {}: {}", it.ident, text(&it.ty)))
        }
        _ => None,
    }
}

/// A signature under another name.
fn signature(signature: &Signature, name: &str) -> String {
    let written = text(signature);
    let own = format!("fn {}", signature.ident);
    written.replacen(&own, &format!("fn {name}"), 1)
}

/// The source of a node, on one line.
fn text(node: &impl ToTokens) -> String {
    let tokens = node.to_token_stream();
    let written = tokens.span().source_text();
    tidy(&written.unwrap_or_else(|| tokens.to_string()))
}

fn tidy(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    line.replace("( ", "(")
        .replace(", )", ")")
        .replace(" )", ")")
}
