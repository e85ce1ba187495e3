//! IP addresses and CIDRs.

use std::net::{IpAddr, Ipv4Addr};

use crate::kind::field::{Errors, Field};

/// Validates an IP address by the rules of older API fields. Returns the address, if it is valid.
pub(in crate::kind) fn address(field: &Field<'_>, errors: &mut Errors) -> Option<IpAddr> {
    let text = field.text();
    let Some(found) = lenient(text) else {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(field.invalid_text(why));
        return None;
    };
    match text.parse::<IpAddr>() {
        Err(_) => errors.push(field.invalid("must not have leading 0s")),
        Ok(IpAddr::V6(it)) if it.to_ipv4_mapped().is_some() => {
            errors.push(field.invalid("must not be an IPv4-mapped IPv6 address"));
        }
        Ok(_) => {}
    }
    Some(found)
}

/// Validates an IP address that is written as Go prints it (`IsValidIP`).
pub(in crate::kind) fn canonical_address(field: &Field<'_>, errors: &mut Errors) {
    let before = errors.len();
    if let Some(found) = address(field, errors)
        && errors.len() == before
        && found.to_string() != field.text()
    {
        let why = format!("must be in canonical form (\"{found}\")");
        errors.push(field.invalid(why));
    }
}

/// Validates that traffic can be sent to an address.
pub(in crate::kind) fn reachable(
    field: &Field<'_>,
    address: IpAddr,
    errors: &mut Errors,
) {
    if address.is_unspecified() {
        let why = format!("may not be unspecified ({})", field.text());
        errors.push(field.invalid(why));
    }
    if address.is_loopback() {
        let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.push(field.invalid(why));
    }
    let (link_local, multicast) = match address {
        IpAddr::V4(it) => (it.is_link_local(), it.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(it) => (
            it.is_unicast_link_local(),
            it.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if link_local {
        let why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(field.invalid(why));
    }
    if multicast {
        let why =
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(field.invalid(why));
    }
}

/// A network.
#[derive(Clone, Copy, Debug)]
pub(in crate::kind) struct Network {
    /// Any address of the network.
    pub(in crate::kind) address: IpAddr,
    /// The length of the prefix in bits.
    pub(in crate::kind) prefix: u8,
}

impl Network {
    /// Parses an address, a slash and a length, whose numbers may have leading zeros
    /// (`ParseCIDRSloppy`).
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address = lenient(address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let is_number = prefix.bytes().all(|it| it.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|it| is_number && *it <= most)?;
        Some(Self { address, prefix })
    }

    /// Whether the network contains an address.
    pub(in crate::kind) fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(self.address, self.prefix) == masked(address, self.prefix)
    }
}

/// Validates a CIDR. Returns the network, if it is valid.
pub(in crate::kind) fn network(
    field: &Field<'_>,
    errors: &mut Errors,
) -> Option<Network> {
    let Some(Network { address, prefix }) = Network::parse(field.text()) else {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(field.invalid_text(why));
        return None;
    };
    let text = field.text().split('/').next().unwrap_or_default();
    if text.parse::<IpAddr>().is_err() {
        errors.push(field.invalid("must not have leading 0s in IP or prefix length"));
    } else if masked(address, prefix) != address {
        errors.push(field.invalid("must not have bits set beyond the prefix length"));
    }
    Some(Network { address, prefix })
}

/// Validates a CIDR that is written as Go prints it (`IsValidCIDR`). Returns the network, if it is
/// one.
pub(in crate::kind) fn canonical_network(
    field: &Field<'_>,
    errors: &mut Errors,
) -> Option<Network> {
    let before = errors.len();
    let found = network(field, errors)?;
    let text = format!("{}/{}", found.address, found.prefix);
    if errors.len() == before && text != field.text() {
        errors.push(field.invalid(format!("must be in canonical form (\"{text}\")")));
    }
    Some(found)
}

/// Validates an address with the length of its network's prefix, which is written as Go prints it
/// (`IsValidInterfaceAddress`).
pub(in crate::kind) fn interface_address(field: &Field<'_>, errors: &mut Errors) {
    let Some(Network { address, prefix }) = Network::parse(field.text()) else {
        let why =
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        errors.push(field.invalid_text(why));
        return;
    };
    let canonical = match address {
        IpAddr::V6(it) if let Some(mapped) = it.to_ipv4_mapped() => {
            format!("{mapped}/{}", prefix.saturating_sub(128 - 32))
        }
        _ => format!("{address}/{prefix}"),
    };
    if canonical != field.text() {
        errors
            .push(field.invalid(format!("must be in canonical form (\"{canonical}\")")));
    }
}

/// Parses an address whose numbers may have leading zeros (`ParseIPSloppy`).
fn lenient(text: &str) -> Option<IpAddr> {
    if let Ok(found) = text.parse() {
        return Some(found);
    }
    let mut parts = text.split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| is_number)
    });
    let mut next = || parts.next().flatten();
    let (a, b, c, d) = (next()?, next()?, next()?, next()?);
    parts
        .next()
        .is_none()
        .then(|| Ipv4Addr::new(a, b, c, d).into())
}

/// The address with the bits after the prefix cleared.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(it) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(it.to_bits() & mask).into()
        }
        IpAddr::V6(it) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            std::net::Ipv6Addr::from_bits(it.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(check: impl Fn(&Field<'_>, &mut Errors), text: &str) -> Vec<String> {
        let object = json!({ "at": text });
        let mut errors = Errors::new();
        check(&Field::of(&object, "at"), &mut errors);
        errors.into_iter().map(|it| it.detail).collect()
    }

    #[test]
    fn an_address_has_no_leading_zeros_and_is_not_ipv4_mapped() {
        let check = |field: &Field<'_>, errors: &mut Errors| {
            address(field, errors);
        };
        assert!(wrong(check, "10.0.0.1").is_empty());
        assert!(wrong(check, "fd00::1").is_empty());
        assert_eq!(wrong(check, "010.0.0.1"), ["must not have leading 0s"]);
        assert_eq!(
            wrong(check, "::ffff:10.0.0.1"),
            ["must not be an IPv4-mapped IPv6 address"]
        );
        assert!(wrong(check, "10.0.0")[0].starts_with("must be a valid IP address"));
    }

    #[test]
    fn a_network_has_no_bits_beyond_its_prefix() {
        let check = |field: &Field<'_>, errors: &mut Errors| {
            network(field, errors);
        };
        assert!(wrong(check, "10.0.0.0/8").is_empty());
        assert!(wrong(check, "0.0.0.0/0").is_empty());
        assert_eq!(
            wrong(check, "10.1.0.0/8"),
            ["must not have bits set beyond the prefix length"]
        );
        assert!(wrong(check, "10.0.0.0")[0].starts_with("must be a valid CIDR value"));
        assert!(wrong(check, "10.0.0.0/33")[0].starts_with("must be a valid CIDR value"));
    }
}
