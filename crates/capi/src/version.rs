//! The versions of Cluster API's core contract.

use crate::Error;

/// The API group of Cluster and Machine.
pub const GROUP: &str = "cluster.x-k8s.io";

/// A version of Cluster API's core types, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contract {
    /// `v1beta1`, served by Cluster API 1.5 and later.
    V1Beta1,
    /// `v1beta2`, served by Cluster API 1.11 and later.
    V1Beta2,
}

impl Contract {
    /// The version to use if `served` are served: the newest supported one. `None` if there is
    /// none.
    ///
    /// The older version is not used if the newer one is served, because it goes through a
    /// conversion webhook that may fail.
    ///
    /// # Example
    /// ```
    /// use fivespot_capi::Contract;
    /// assert_eq!(Contract::choose(["v1beta1", "v1beta2"]), Some(Contract::V1Beta2));
    /// assert_eq!(Contract::choose(["v1alpha4"]), None);
    /// ```
    pub fn choose<'a>(served: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let known = [Self::V1Beta1, Self::V1Beta2];
        served
            .into_iter()
            .filter_map(|name| known.into_iter().find(|version| version.name() == name))
            .max()
    }

    /// The name of the version, without the group.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// Group and version in the form of `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1Beta1 => "cluster.x-k8s.io/v1beta1",
            Self::V1Beta2 => "cluster.x-k8s.io/v1beta2",
        }
    }

    /// Parses an `apiVersion`.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`] for any other group or version.
    pub fn of(api_version: &str) -> Result<Self, Error> {
        [Self::V1Beta1, Self::V1Beta2]
            .into_iter()
            .find(|version| version.api_version() == api_version)
            .ok_or_else(|| Error::UnknownVersion {
                found: api_version.to_owned(),
            })
    }
}
