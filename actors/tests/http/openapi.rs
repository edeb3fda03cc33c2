//! The OpenAPI page describes what there is, all of it, and nothing else.

use crate::{World, run};
use fencepost::api::guard::OPEN_PATHS;
use fencepost::api::routes::table;
use serde_json::Value;
use std::collections::BTreeSet;

async fn page(world: &World) -> Value {
    world.get("/openapi.json").await.json()
}

#[test]
fn the_page_lists_exactly_the_routes_of_the_router() {
    run(async {
        let world = World::new().await;
        let page = page(&world).await;
        assert_eq!(page["openapi"], "3.1.0");
        let mut listed = BTreeSet::new();
        for (path, methods) in page["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                listed.insert((path.clone(), method.clone()));
            }
        }
        let mut routed = BTreeSet::new();
        for (path, methods, _) in table() {
            routed.extend(methods.iter().map(|method| (path.to_owned(), (*method).to_owned())));
        }
        assert_eq!(listed, routed);
    });
}

#[test]
fn every_operation_says_what_it_does_and_how_it_is_secured() {
    run(async {
        let world = World::new().await;
        let page = page(&world).await;
        assert_eq!(page["security"], serde_json::json!([{ "token": [] }]));
        assert_eq!(page["components"]["securitySchemes"]["token"]["scheme"], "bearer");
        for (path, methods) in page["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let place = format!("{method} {path}");
                assert!(
                    operation["summary"].as_str().is_some_and(|text| text.len() > 5),
                    "{place}"
                );
                let open = operation.get("security").is_some();
                assert_eq!(open, OPEN_PATHS.contains(&path.as_str()), "{place}");
                let codes: Vec<_> = operation["responses"].as_object().unwrap().keys().collect();
                let plain = !path.starts_with("/v1/");
                assert!(
                    plain || codes.iter().any(|code| *code == "default"),
                    "{place}: {codes:?}"
                );
                assert!(codes.iter().any(|code| code.starts_with('2')), "{place}: {codes:?}");
            }
        }
    });
}

/// Names of the fields of a schema, through references and `allOf`.
fn fields(page: &Value, schema: &Value, names: &mut BTreeSet<String>) {
    if let Some(link) = schema["$ref"].as_str() {
        let name = link.rsplit('/').next().unwrap();
        return fields(page, &page["components"]["schemas"][name], names);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        fields(page, part, names);
    }
    names.extend(
        schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone()),
    );
}

/// The fields that a reader knows, from what it says about one that it does not.
fn known(hint: &str) -> BTreeSet<String> {
    let list = hint.strip_prefix("Known here: ").unwrap().trim_end_matches('.');
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn request_bodies_have_the_fields_that_the_readers_know() {
    run(async {
        let world = World::new().await;
        let page = page(&world).await;
        let job = r#""target":{"type":"handler","name":"noop"}"#;
        let cases = [
            ("NewJobBody", "POST", "/v1/jobs", format!("{{{job},\"zzzzzzzz\":1}}")),
            (
                "NewScheduleBody",
                "POST",
                "/v1/schedules",
                format!("{{\"name\":\"x\",\"cron\":\"* * * * *\",\"job\":{{{job}}},\"zzzzzzzz\":1}}"),
            ),
            (
                "ScheduleBody",
                "PUT",
                "/v1/schedules/x",
                format!("{{\"cron\":\"* * * * *\",\"job\":{{{job}}},\"zzzzzzzz\":1}}"),
            ),
            (
                "JobBody",
                "POST",
                "/v1/schedules",
                format!("{{\"name\":\"x\",\"cron\":\"* * * * *\",\"job\":{{{job},\"zzzzzzzz\":1}}}}"),
            ),
            (
                "PreviewBody",
                "POST",
                "/v1/preview",
                "{\"every\":\"1s\",\"zzzzzzzz\":1}".into(),
            ),
            (
                "BackfillBody",
                "POST",
                "/v1/schedules/x/backfill",
                "{\"from\":\"2026-01-01T00:00:00Z\",\"to\":\"2026-01-02T00:00:00Z\",\"zzzzzzzz\":1}".into(),
            ),
            (
                "SettleBody",
                "POST",
                &format!("/v1/jobs/job_{}/settle", "0".repeat(32)),
                "{\"verdict\":\"dead\",\"zzzzzzzz\":1}".into(),
            ),
            (
                "RetryBody",
                "POST",
                "/v1/jobs",
                format!("{{{job},\"retry\":{{\"zzzzzzzz\":1}}}}"),
            ),
            (
                "BatchBody",
                "POST",
                "/v1/jobs:batch",
                format!("{{\"jobs\":[{{{job}}}],\"zzzzzzzz\":1}}"),
            ),
        ];
        for (schema, method, path, body) in cases {
            let mut documented = BTreeSet::new();
            fields(&page, &page["components"]["schemas"][schema], &mut documented);
            let reply = world
                .send(method, path, &[("if-match", "*")], Some(body.as_bytes()))
                .await;
            assert_eq!(
                reply.problem(),
                (400, "field_unknown".into()),
                "{schema}: {:?}",
                reply.body
            );
            assert_eq!(known(reply.json()["hint"].as_str().unwrap()), documented, "{schema}");
        }
    });
}

/// The part of the page that a worker in another language needs, as JSON Schema.
fn worker_schema(page: &Value) -> String {
    let schemas = page["components"]["schemas"].as_object().unwrap();
    let mut wanted: Vec<String> = ["Claim", "Heartbeat", "Finish", "Release"]
        .iter()
        .flat_map(|call| [format!("{call}Body"), format!("{call}Answer")])
        .filter(|name| schemas.contains_key(name))
        .chain(["Problem".to_owned()])
        .collect();
    let mut defs = serde_json::Map::new();
    while let Some(name) = wanted.pop() {
        let text = schemas[&name].to_string();
        let parts = text.split("#/components/schemas/").skip(1);
        let named = parts.filter_map(|part| part.split('"').next().map(str::to_owned));
        wanted.extend(named.filter(|named| !defs.contains_key(named) && *named != name));
        let local = text.replace("#/components/schemas/", "#/$defs/");
        defs.insert(name, serde_json::from_str(&local).unwrap());
    }
    let schema = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made from /openapi.json by a test; see docs/guides/workers.md.",
        "title": "What workers of Fencepost and its servers send each other",
        "$defs": defs,
    });
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

#[test]
fn the_schema_for_workers_is_the_pages() {
    run(async {
        let world = World::new().await;
        let made = worker_schema(&page(&world).await);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/workers/worker.schema.json");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == made,
            "docs/workers/worker.schema.json is old: run this test with BLESS=1"
        );
        for name in [
            "ClaimBody",
            "ClaimAnswer",
            "HeartbeatAnswer",
            "FinishBody",
            "ReleaseBody",
        ] {
            assert!(made.contains(&format!("\"{name}\"")), "{name}");
        }
    });
}
