//! A Kubernetes API server on a loopback port, for `kubectl`.
//!
//! ```sh
//! cargo run -p kubemu-apiserver --example serve -- /tmp/kubeconfig
//! kubectl --kubeconfig /tmp/kubeconfig get namespaces
//! ```

use std::error::Error;
use std::future::pending;

use kubemu_apiserver::{Credentials, Options, Server};
use kubemu_clock::Clock;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: serve FILE; writes the kubeconfig to FILE")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = Server::new(Options::new(Clock::system()))?;
        let credentials = Credentials::generate()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        std::fs::write(&path, credentials.kubeconfig(address, "serve"))?;
        println!("https://{address}, kubeconfig in {path}");
        server.serve(listener, &credentials, pending()).await?;
        Ok(())
    })
}
