//! Connects to the embedded API server without a socket.

use std::net::SocketAddr;

use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, NetworkConnect};
use kube::Client;

/// Uses the in-process client for a kubeconfig of the embedded server, so that a virtual clock
/// waits for its requests, and connects to any other server over the network.
pub(crate) struct InProcessConnect {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
}

impl Connect for InProcessConnect {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        let authority = access
            .server()
            .authority()
            .map(http::uri::Authority::as_str);
        if authority == Some(self.address.to_string().as_str()) {
            return Ok(self.client.clone());
        }
        NetworkConnect.connect(access)
    }
}
