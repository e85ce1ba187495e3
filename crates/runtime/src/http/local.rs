//! Addresses of this host or of its link.

use std::net::{IpAddr, Ipv6Addr};

/// Whether `address` is one of this host (loopback, unspecified) or of its link. A service there
/// assumes that no other host can reach it.
pub fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_unspecified() || address.is_link_local()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_local(IpAddr::V4(mapped)),
            None => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unicast_link_local()
            }
        },
    }
}

/// Whether the host of a URL is such an address, or a name that always means this host (RFC
/// 6761). The addresses of other names are checked when they are dialled.
pub fn is_local_host(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Some(bare) = bare {
        return bare.parse::<Ipv6Addr>().is_ok_and(|it| is_local(it.into()));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_local(address);
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}
