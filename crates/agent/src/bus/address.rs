//! The address of a bus, as the D-Bus Specification writes it ("Server Addresses").

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The first socket among the addresses, separated by `;`, that a client of this host can use. A name
/// in the abstract namespace begins with a zero, as [`Bus::connect`](super::Bus::connect) takes it.
/// `None` if there is none.
pub fn socket(addresses: &str) -> Option<PathBuf> {
    addresses.split(';').find_map(|address| {
        let keys = address.strip_prefix("unix:")?;
        let mut pairs = keys.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(key, value)| {
            let mut path = match key {
                "path" => vec![],
                "abstract" => vec![0],
                _ => return None,
            };
            path.extend(unescaped(value)?);
            Some(PathBuf::from(OsString::from_vec(path)))
        })
    })
}

/// The bytes of a value, in which `%` and two digits stand for one.
fn unescaped(value: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::socket;

    #[test]
    fn the_first_socket_of_this_host_is_taken() {
        for (addresses, wanted) in [
            ("unix:path=/run/user/1000/bus", Some("/run/user/1000/bus")),
            ("unix:path=/run/a%20b,guid=0123", Some("/run/a b")),
            ("unix:guid=0123,path=/run/bus", Some("/run/bus")),
            ("unix:abstract=/tmp/dbus-x,guid=1", Some("\0/tmp/dbus-x")),
            ("tcp:host=example;unix:path=/run/bus", Some("/run/bus")),
            ("unix:runtime=yes;unix:path=/run/bus", Some("/run/bus")),
            ("", None),
            ("autolaunch:", None),
            ("unix:path=", None),
            ("unix:path=/run/%2", None),
            ("unix:path=/run/%zz", None),
            ("unix:path", None),
        ] {
            let found = socket(addresses);
            assert_eq!(found.as_deref(), wanted.map(std::path::Path::new));
        }
    }
}
