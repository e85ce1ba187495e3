//! Resolves a server's name to addresses that may be dialled.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::vec;

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

use crate::http::is_local;

/// Resolves like the system, but leaves out addresses of this host and of its link unless they
/// are allowed: after the kubeconfig was read, a name can be made to resolve to any address.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    system: GaiResolver,
    /// The error if there is no other address; `None` if such addresses may be dialled.
    local_refusal: Option<&'static str>,
}

impl Resolver {
    /// A resolver that rejects local addresses with this message, if there is one.
    pub(super) fn new(local_refusal: Option<&'static str>) -> Self {
        Self {
            system: GaiResolver::new(),
            local_refusal,
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
        let (found, refusal) = (self.system.call(name), self.local_refusal);
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            usable(found, refusal).map(Vec::into_iter)
        })
    }
}

/// The addresses that may be dialled.
///
/// # Errors
/// There are addresses, and none of them may be dialled.
fn usable(
    mut found: Vec<SocketAddr>,
    local_refusal: Option<&'static str>,
) -> io::Result<Vec<SocketAddr>> {
    let Some(refusal) = local_refusal else {
        return Ok(found);
    };
    let is_known = !found.is_empty();
    found.retain(|address| !is_local(address.ip()));
    if is_known && found.is_empty() {
        return Err(io::Error::other(refusal));
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
        assert!(usable(local.clone(), Some("no")).is_err());
        assert_eq!(usable(local.clone(), None).unwrap(), local);
        let both = addresses(&["127.0.0.1:0", "10.0.0.1:0"]);
        assert_eq!(
            usable(both, Some("no")).unwrap(),
            addresses(&["10.0.0.1:0"])
        );
        assert!(usable(Vec::new(), Some("no")).unwrap().is_empty());
    }
}
