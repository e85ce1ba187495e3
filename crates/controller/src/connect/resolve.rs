//! Resolving a server's name, to addresses that may be dialled.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::vec;

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

use crate::kubeconfig::is_local;

/// Resolves as the system does, and leaves out addresses of this host and of its link unless they
/// are allowed: a name can be made to resolve to anything after the kubeconfig was read.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    system: GaiResolver,
    allows_local: bool,
}

impl Resolver {
    /// One for a server that may, or may not, be on this host.
    pub(super) fn new(allows_local: bool) -> Self {
        Self {
            system: GaiResolver::new(),
            allows_local,
        }
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, allows_local) = (self.system.call(name), self.allows_local);
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            usable(found, allows_local).map(Vec::into_iter)
        })
    }
}

/// The addresses that may be dialled.
///
/// # Errors
/// There are addresses, and none of them may be dialled.
fn usable(mut found: Vec<SocketAddr>, allows_local: bool) -> io::Result<Vec<SocketAddr>> {
    let is_known = !found.is_empty();
    found.retain(|address| allows_local || !is_local(address.ip()));
    if is_known && found.is_empty() {
        return Err(io::Error::other(
            "the server's name resolves to a loopback or link-local address; the operator \
             allows one with --allow-loopback-workload-server",
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(all: &[&str]) -> Vec<SocketAddr> {
        all.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn a_name_that_resolves_to_this_host_is_not_dialled_unless_that_is_allowed() {
        let local = addresses(&["127.0.0.1:0", "[::1]:0", "169.254.169.254:0"]);
        assert!(usable(local.clone(), false).is_err());
        assert_eq!(usable(local.clone(), true).unwrap(), local);
        let both = addresses(&["127.0.0.1:0", "10.0.0.1:0"]);
        assert_eq!(usable(both, false).unwrap(), addresses(&["10.0.0.1:0"]));
        assert!(usable(Vec::new(), false).unwrap().is_empty());
    }
}
