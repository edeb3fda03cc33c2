//! A proxy between two nodes that a test cuts and heals.
//!
//! Owns: its connections. Next: `calls.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Proxy {
    pub address: SocketAddr,
    is_cut: Arc<watch::Sender<bool>>,
}

impl Proxy {
    pub async fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_cut = Arc::new(watch::channel(false).0);
        let state = is_cut.clone();
        tokio::spawn(async move {
            while let Ok((incoming, _)) = listener.accept().await {
                if *state.borrow() {
                    continue;
                }
                tokio::spawn(carry(incoming, target, state.subscribe()));
            }
        });
        Proxy { address, is_cut }
    }

    /// Breaks every connection; new ones are closed at once.
    pub fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub fn heal(&self) {
        self.is_cut.send_replace(false);
    }
}

async fn carry(mut incoming: TcpStream, target: SocketAddr, mut is_cut: watch::Receiver<bool>) {
    let Ok(mut outgoing) = TcpStream::connect(target).await else {
        return;
    };
    tokio::select! {
        biased;
        _ = is_cut.wait_for(|cut| *cut) => {}
        _ = tokio::io::copy_bidirectional(&mut incoming, &mut outgoing) => {}
    }
}
