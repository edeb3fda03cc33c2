//! Who may speak to the API.

use crate::{TOKEN, World, run};
use fencepost::api::guard::OPEN_PATHS;
use fencepost::api::routes::table;

/// The path of a route with something in its places.
fn filled(path: &str) -> String {
    path.replace("{id}", &format!("job_{}", "0".repeat(32)))
        .replace("{name}", "x")
}

#[test]
fn every_route_but_the_probes_needs_the_token() {
    run(async {
        let world = World::new().await;
        for (path, methods, _) in table() {
            for method in methods {
                let method = method.to_uppercase();
                let reply = world.send_raw(&method, &filled(path), &[], None).await;
                if OPEN_PATHS.contains(&path) {
                    assert_eq!(reply.status, 200, "{method} {path}");
                    continue;
                }
                assert_eq!(reply.problem(), (401, "token_missing".into()), "{method} {path}");
                assert_eq!(reply.headers["www-authenticate"], "Bearer realm=\"fencepost\"");
                let wrong = [("authorization", "Bearer fp_test_0123456789abcdee")];
                let reply = world.send_raw(&method, &filled(path), &wrong, None).await;
                assert_eq!(reply.problem(), (401, "token_wrong".into()), "{method} {path}");
            }
        }
        let reply = world.send_raw("GET", "/no/such/path", &[], None).await;
        assert_eq!(reply.problem().0, 401);
    });
}

#[test]
fn foreign_hosts_and_origins_are_refused_even_with_the_token() {
    run(async {
        let world = World::new().await;
        let token = format!("Bearer {TOKEN}");
        let ask = async |headers: &[(&str, &str)]| {
            let all: Vec<_> = [("authorization", token.as_str())]
                .iter()
                .chain(headers)
                .copied()
                .collect();
            let reply = world.send_raw("GET", "/v1/jobs", &all, None).await;
            if reply.status == 200 {
                "ok".to_owned()
            } else {
                reply.problem().1
            }
        };
        let own = world.address.to_string();
        assert_eq!(ask(&[("host", &own)]).await, "ok");
        assert_eq!(ask(&[("host", "localhost")]).await, "ok");
        assert_eq!(ask(&[("host", "rebound.example")]).await, "host_foreign");
        assert_eq!(ask(&[("origin", "http://evil.example")]).await, "origin_foreign");
        assert_eq!(ask(&[("origin", "null")]).await, "origin_foreign");
        assert_eq!(ask(&[("sec-fetch-site", "cross-site")]).await, "origin_foreign");
        let probe = world
            .send_raw("GET", "/livez", &[("host", "rebound.example")], None)
            .await;
        assert_eq!(probe.problem().1, "host_foreign");
    });
}

#[test]
fn unknown_paths_and_methods_are_problems_too() {
    run(async {
        let world = World::new().await;
        assert_eq!(world.get("/v2/jobs").await.problem(), (404, "path_not_found".into()));
        let reply = world.send("DELETE", "/v1/jobs", &[], None).await;
        assert_eq!(reply.problem(), (405, "method_not_allowed".into()));
        assert_eq!(reply.headers["allow"], "GET,HEAD,POST");
        assert_eq!(world.send("OPTIONS", "/v1/jobs", &[], None).await.problem().0, 405);
    });
}

#[test]
fn answers_carry_a_request_id_and_are_never_cached() {
    run(async {
        let world = World::new().await;
        let (one, two) = (world.get("/v1/jobs").await, world.get("/v1/jobs").await);
        assert_ne!(one.headers["x-request-id"], two.headers["x-request-id"]);
        assert_eq!(one.headers["cache-control"], "no-store");
        assert_eq!(one.headers["x-content-type-options"], "nosniff");
    });
}

#[test]
fn a_draining_node_is_not_ready_at_once_and_the_server_ends() {
    run(async {
        let world = World::new().await;
        assert_eq!(world.get("/readyz").await.status, 200);
        world.node.drain().await;
        let reply = world.get("/readyz").await;
        assert_eq!((reply.status, reply.json()["draining"].as_bool()), (503, Some(true)));
        assert_eq!(world.get("/livez").await.status, 200);
        let late = world
            .post("/v1/jobs", r#"{"target":{"type":"handler","name":"noop"}}"#)
            .await;
        assert_eq!(
            (late.problem().0, late.json()["retryable"].as_bool()),
            (503, Some(true))
        );
        assert_eq!(late.headers["retry-after"], "1");
        world.stop();
        // The listener closes; a connection is refused from then on.
        while tokio::net::TcpStream::connect(world.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
}
