//! Values of Kubernetes' own types.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::RunError;

use super::quantity::Quantity;
use super::semver::Semver;
use kubemu_gostd::url::Url;

/// A value of a type of one of Kubernetes' libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryValue(pub(crate) LibraryValueKind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LibraryValueKind {
    Cidr(Cidr),
    Format(&'static Format),
    /// Replaces a value that the API server cannot convert back from where it was stored: an
    /// error with this message when it is used.
    Unconvertible(Arc<str>),
    Ip(IpAddr),
    Quantity(Arc<Quantity>),
    Semver(Arc<Semver>),
    Url(Arc<Url>),
}

/// An address and the length of its prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

/// A format by name.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// The pattern's length for the cost, which may differ from the real one.
    pub(crate) pattern_size: u64,
    /// The violations of a text; empty if it conforms.
    pub(crate) check: fn(&str) -> Vec<String>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl LibraryValue {
    /// The name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self.0 {
            LibraryValueKind::Cidr(_) => "net.CIDR",
            LibraryValueKind::Format(_) => "kubernetes.NamedFormat",
            LibraryValueKind::Unconvertible(_) => "error",
            LibraryValueKind::Ip(_) => "net.IP",
            LibraryValueKind::Quantity(_) => "kubernetes.Quantity",
            LibraryValueKind::Semver(_) => "kubernetes.Semver",
            LibraryValueKind::Url(_) => "kubernetes.URL",
        }
    }

    /// The name of the value's Go type in the API server.
    pub(crate) const fn go_type(&self) -> &'static str {
        match self.0 {
            LibraryValueKind::Cidr(_) => "cel.CIDR",
            LibraryValueKind::Format(_) => "cel.Format",
            LibraryValueKind::Unconvertible(_) => "*types.Err",
            LibraryValueKind::Ip(_) => "cel.IP",
            LibraryValueKind::Quantity(_) => "cel.Quantity",
            LibraryValueKind::Semver(_) => "cel.Semver",
            LibraryValueKind::Url(_) => "cel.URL",
        }
    }

    /// Whether two values are equal; `None` if they are of different types, or of forms that
    /// the API server does not compare.
    pub(crate) fn same(&self, other: &Self) -> Option<bool> {
        match (&self.0, &other.0) {
            (LibraryValueKind::Quantity(_), LibraryValueKind::Quantity(right))
                if right.is_computed() =>
            {
                None
            }
            (left, right)
                if std::mem::discriminant(left) == std::mem::discriminant(right) =>
            {
                Some(left == right)
            }
            _ => None,
        }
    }

    /// The error, if it replaces a value.
    pub(crate) fn conversion_error(&self) -> Option<RunError> {
        match &self.0 {
            LibraryValueKind::Unconvertible(why) => Some(RunError::text(why.to_string())),
            _ => None,
        }
    }

    /// An error that replaces a value.
    pub(crate) fn unconvertible(error: &RunError) -> Self {
        Self(LibraryValueKind::Unconvertible(error.to_string().into()))
    }

    /// The value after the API server reads it from an optional variable: it gets the Go value
    /// and cannot convert it to the library's type.
    pub(crate) fn read_back(self) -> Self {
        let go = match &self.0 {
            LibraryValueKind::Format(_) => return self,
            LibraryValueKind::Cidr(_) => format!("(netip.Prefix){self}"),
            LibraryValueKind::Ip(_) => format!("(netip.Addr){self}"),
            LibraryValueKind::Unconvertible(why) => format!("(*errors.errorString){why}"),
            LibraryValueKind::Quantity(quantity) => {
                format!("(*resource.Quantity){quantity}")
            }
            LibraryValueKind::Semver(version) => format!("(semver.Version){version}"),
            LibraryValueKind::Url(url) => format!("(*url.URL){url}"),
        };
        let why = format!("unsupported conversion to ref.Val: {go}");
        Self(LibraryValueKind::Unconvertible(why.into()))
    }

    /// The length of a format's pattern, as the cost uses it.
    pub(crate) fn pattern_size(&self) -> u64 {
        match &self.0 {
            LibraryValueKind::Format(format) => format.pattern_size,
            _ => 1,
        }
    }

    /// The size that the cost uses: bytes of an address, 1 for the others.
    pub(crate) fn cost_size(&self) -> usize {
        match &self.0 {
            LibraryValueKind::Ip(IpAddr::V4(_)) => 4,
            LibraryValueKind::Ip(IpAddr::V6(_)) => 16,
            LibraryValueKind::Cidr(cidr) => usize::from(cidr.bits.div_ceil(8)),
            _ => 1,
        }
    }
}

/// The result of `string(x)` for addresses and networks.
impl fmt::Display for LibraryValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            LibraryValueKind::Cidr(cidr) => write!(f, "{}/{}", cidr.address, cidr.bits),
            LibraryValueKind::Ip(address) => address.fmt(f),
            _ => f.write_str(self.type_name()),
        }
    }
}
