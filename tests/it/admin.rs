//! The admin listener.

use crate::support::seam::Seam;

#[tokio::test]
async fn health_is_asked_on_a_port_of_its_own() {
    let seam = Seam::start("http://127.0.0.1:9").await;
    assert_eq!(seam.admin_status("/live").await, 200);
    assert_eq!(seam.admin_status("/ready").await, 200);
    assert_eq!(seam.admin_status("/v1/models").await, 404);
    // The clients' port knows no health: what is asked there is for upstream.
    assert_eq!(seam.exchange("GET /ready HTTP/1.1\r\nhost: s\r\n\r\n").await.status, 502);
}
