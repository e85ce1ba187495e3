//! How the objects of a kind name it, and how they are read and written.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

/// An object as the API server returns it: list items may lack `apiVersion` and `kind`.
#[derive(Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound = "P: Deserialize<'de>, S: Deserialize<'de>"
)]
pub(crate) struct Stored<P, S> {
    api_version: Option<String>,
    kind: Option<String>,
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: P,
    #[serde(default = "Option::default")]
    pub(crate) status: Option<S>,
}

impl<P, S> Stored<P, S> {
    /// Returns the object, or an error if it is not of the kind of `K` in one of these versions.
    pub(crate) fn of<K, E>(self, versions: &[&str]) -> Result<Self, E>
    where
        K: k8s_openapi::Resource,
        E: serde::de::Error,
    {
        let version = self.api_version.as_deref();
        let other = version.filter(|found| !is_served(K::GROUP, versions, found));
        let api_version = ("apiVersion", other, K::API_VERSION);
        let other = self.kind.as_deref().filter(|found| *found != K::KIND);
        for (field, other, expected) in [api_version, ("kind", other, K::KIND)] {
            if let Some(other) = other {
                return Err(E::custom(format!(
                    "{field} is `{other}`, expected `{expected}`"
                )));
            }
        }
        Ok(self)
    }
}

/// Whether an `apiVersion` is that group in one of these versions.
pub(crate) fn is_served(group: &str, versions: &[&str], api_version: &str) -> bool {
    let (found, version) = api_version.split_once('/').unwrap_or_default();
    found == group && versions.contains(&version)
}

/// An object as it is serialized.
pub(crate) struct Written<'o, P, S> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) metadata: &'o ObjectMeta,
    pub(crate) spec: &'o P,
    pub(crate) status: Option<&'o S>,
}

impl<P: Serialize, S: Serialize> Serialize for Written<'_, P, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let fields = 4 + usize::from(self.status.is_some());
        let mut object = serializer.serialize_struct("Object", fields)?;
        object.serialize_field("apiVersion", self.api_version)?;
        object.serialize_field("kind", self.kind)?;
        object.serialize_field("metadata", self.metadata)?;
        object.serialize_field("spec", self.spec)?;
        if let Some(status) = self.status {
            object.serialize_field("status", status)?;
        }
        object.end()
    }
}

/// The names of a kind that is stored in version [`name::VERSION`](crate::name::VERSION), for
/// clients; `scope` is one of `k8s_openapi`.
macro_rules! named {
    ($type:ident, scope: $scope:ident, api_version: $api_version:expr, group: $group:expr,
     plural: $plural:expr) => {
        impl k8s_openapi::Resource for $type {
            const API_VERSION: &'static str = $api_version;
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($type);
            const VERSION: &'static str = $crate::name::VERSION;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
        }

        impl k8s_openapi::ListableResource for $type {
            const LIST_KIND: &'static str = concat!(stringify!($type), "List");
        }

        impl k8s_openapi::Metadata for $type {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use named;

/// How an object with a spec, and a status if that is named, is read and written.
macro_rules! with_spec {
    ($type:ident $(, $status:ident)?) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                $crate::object::Written {
                    api_version: <Self as k8s_openapi::Resource>::API_VERSION,
                    kind: <Self as k8s_openapi::Resource>::KIND,
                    metadata: &self.metadata,
                    spec: &self.spec,
                    status: $crate::object::with_spec!(@written self $($status)?),
                }
                .serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                let stored: $crate::object::Stored<
                    _,
                    $crate::object::with_spec!(@read $($status)?),
                > = serde::Deserialize::deserialize(deserializer)?;
                let stored = stored.of::<Self, _>(&[$crate::name::VERSION])?;
                Ok(Self {
                    metadata: stored.metadata,
                    spec: stored.spec,
                    $($status: stored.status,)?
                })
            }
        }
    };
    (@read) => { serde::de::IgnoredAny };
    (@read status) => { _ };
    (@written $object:tt) => { Option::<&()>::None };
    (@written $object:tt status) => { $object.status.as_ref() };
}
pub(crate) use with_spec;
