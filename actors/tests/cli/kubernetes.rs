//! The manifests in `deploy/kubernetes`: sound by themselves, and true of the program.
//!
//! Owns: reading them as `kubectl kustomize` would, without a cluster. Every variable, setting and probe is tried on
//! the real binary. Next: `shape.rs`, `../process/managed.rs` (the other ways to run it).

use crate::shape::faults;
use crate::{ended, fencepost};
use fencepost_core::limits::{DRAIN_HAND_OVER_MS, DRAIN_SETTLE_MS, RELEASE_MS};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn documents_of(name: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn kustomization() -> Value {
    documents_of("kustomization.yaml").remove(0)
}

fn words(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Every document that is rendered.
fn documents() -> Vec<Value> {
    let files = words(&kustomization()["resources"]);
    files.iter().flat_map(|file| documents_of(file)).collect()
}

fn of_kind(kind: &str) -> Vec<Value> {
    documents()
        .into_iter()
        .filter(|document| document["kind"] == kind)
        .collect()
}

fn judge(document: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&text("schema.json")).unwrap();
    let kind = document["kind"].as_str().unwrap_or_default();
    match schema["$defs"].get(kind) {
        Some(rule) => faults(&schema, rule, document, kind),
        None => vec![format!("'{kind}' is no kind that the schema knows")],
    }
}

/// A set of pods as its start sees itself: the settings that hold in its first pod.
struct Part {
    name: String,
    document: Value,
    folder: tempfile::TempDir,
    file: String,
    variables: Vec<(String, String)>,
}

impl Part {
    fn all() -> Vec<Part> {
        of_kind("StatefulSet").into_iter().map(Part::of).collect()
    }

    fn of(document: Value) -> Part {
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        let container = &document["spec"]["template"]["spec"]["containers"][0];
        let args = words(&container["args"]);
        let ["serve", "--config", path] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
            panic!("{name}: {args:?}")
        };
        let file = path.strip_prefix("/etc/fencepost/config/").unwrap().to_owned();
        let settings = of_kind("ConfigMap")[0]["data"][&file].as_str().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(&file), settings).unwrap();
        let variables = variables(&name, container);
        Part {
            name,
            document,
            folder,
            file,
            variables,
        }
    }

    fn pod(&self) -> &Value {
        &self.document["spec"]["template"]["spec"]
    }

    fn container(&self) -> &Value {
        &self.pod()["containers"][0]
    }

    /// The real binary in the pod's environment.
    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = fencepost(self.folder.path(), words);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        ended(command.output().unwrap())
    }

    fn settings(&self) -> BTreeMap<String, Value> {
        let (code, out, err) = self.run(&["config", "show", "--config", &self.file, "-o", "json"]);
        assert_eq!((code, err.as_str()), (0, ""), "{}", self.name);
        let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
        let pair = |row: Value| (row["field"].as_str().unwrap().to_owned(), row["value"].clone());
        rows.into_iter().map(pair).collect()
    }

    /// Volumes by where they are mounted, and whether they can be written.
    fn mounts(&self) -> BTreeMap<String, (String, bool)> {
        let mounts = self.container()["volumeMounts"].as_array().unwrap().iter();
        let one = |mount: &Value| {
            let text = |name: &str| mount[name].as_str().unwrap().to_owned();
            (text("mountPath"), (text("name"), mount["readOnly"] != true))
        };
        mounts.map(one).collect()
    }
}

/// As the cluster would fill them in for the first pod.
fn variables(name: &str, container: &Value) -> Vec<(String, String)> {
    let mut known: Vec<(String, String)> = Vec::new();
    for variable in container["env"].as_array().unwrap() {
        let from = &variable["valueFrom"];
        let mut value = match from["fieldRef"]["fieldPath"].as_str() {
            Some("metadata.name") => format!("{name}-0"),
            Some(_) => "10.1.2.3".to_owned(),
            None if from.is_null() => variable["value"].as_str().unwrap().to_owned(),
            None => "fp_0123456789abcdef".to_owned(),
        };
        for (known, held) in &known {
            value = value.replace(&format!("$({known})"), held);
        }
        assert!(
            !value.contains("$("),
            "{name}: {value} names what comes later, or never"
        );
        known.push((variable["name"].as_str().unwrap().to_owned(), value));
    }
    known
}

#[test]
fn every_document_is_rendered_and_has_only_fields_that_are_known() {
    let named: BTreeSet<String> = words(&kustomization()["resources"]).into_iter().collect();
    let there = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name());
    let there = there
        .map(|name| name.into_string().unwrap())
        .filter(|name| name.ends_with(".yaml"));
    let there: BTreeSet<String> = there.filter(|name| name != "kustomization.yaml").collect();
    assert_eq!(named, there, "the files of the kustomization are those that are there");
    let mut names = BTreeSet::new();
    for document in documents().into_iter().chain([kustomization()]) {
        assert_eq!(judge(&document), Vec::<String>::new());
        let name = (document["kind"].to_string(), document["metadata"]["name"].to_string());
        assert!(names.insert(name), "twice: {}", document["metadata"]);
    }
    let mut slip = of_kind("StatefulSet").remove(0);
    slip["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = Value::Null;
    slip["spec"]["replicas"] = "3".into();
    assert_eq!(judge(&slip).len(), 2, "and a slip is found");
}

#[test]
fn kubectl_renders_what_is_read_here() {
    let rendered = match Command::new("kubectl").arg("kustomize").arg(folder()).output() {
        Ok(rendered) => rendered,
        Err(error) => return println!("not run: kubectl is not there ({error})"),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(rendered.status.success(), "{}", text(&rendered.stderr));
    let rendered: Vec<Value> = serde_saphyr::from_multiple(&text(&rendered.stdout)).unwrap();
    assert_eq!(rendered.len(), documents().len());
    for pods in rendered.iter().filter(|document| document["kind"] == "StatefulSet") {
        assert_eq!(pods["metadata"]["namespace"], "fencepost");
        let image = &pods["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(*image, concat!("fencepost:", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn settings_variables_and_probes_are_the_programs_own() {
    let parts = Part::all();
    assert_eq!(parts.len(), 3);
    for part in &parts {
        let check = ["config", "check", &part.file];
        let (code, out, err) = part.run(&check);
        assert_eq!(
            (code, err.as_str()),
            (0, ""),
            "{}: no mistake, no unknown variable",
            part.name
        );
        assert!(out.contains("valid"), "{out}");
        let alone = ended(fencepost(part.folder.path(), &check).output().unwrap());
        assert_eq!(alone.0, 0, "{}: {}", part.name, alone.2);
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let asked = words(&part.container()[probe]["exec"]["command"]);
            let Some((program, asked)) = asked.split_first() else {
                continue;
            };
            assert_eq!(program, "/usr/local/bin/fencepost");
            let mut asked: Vec<&str> = asked.iter().map(String::as_str).collect();
            asked.extend(["--server", "http://127.0.0.1:1"]);
            let (code, _, err) = part.run(&asked);
            assert_eq!(code, 6, "understood, and nobody is there: {err}");
        }
    }
}

#[test]
fn ports_names_and_files_fit_together() {
    let services = of_kind("Service");
    let service = |name: &str| {
        services
            .iter()
            .find(|service| service["metadata"]["name"] == name)
            .unwrap()
    };
    let stored = "fencepost-store-0.fencepost-store:4481";
    for part in Part::all() {
        let settings = part.settings();
        let setting = |name: &str| settings[name].as_str().unwrap_or_default().to_owned();
        let labels = &part.document["spec"]["template"]["metadata"]["labels"];
        assert_eq!(part.document["spec"]["serviceName"], *part.name);
        let own = "app.kubernetes.io/name";
        assert_eq!(service(&part.name)["spec"]["selector"][own], labels[own]);
        assert_eq!(part.document["spec"]["selector"]["matchLabels"][own], labels[own]);
        let port = setting("mesh.listen")
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u64>().unwrap());
        assert_eq!(port.is_none(), part.name == "fencepost-worker");
        assert_eq!(
            part.container()["ports"][0]["containerPort"].as_u64(),
            port,
            "{}",
            part.name
        );
        assert_eq!(
            service(&part.name)["spec"]["ports"][0]["port"].as_u64(),
            port,
            "{}",
            part.name
        );
        match part.name.as_str() {
            "fencepost-store" => assert_eq!(part.document["spec"]["replicas"], 1, "one writer"),
            _ => assert_eq!(setting("mesh.store_at"), stored),
        }
        let mounts = part.mounts();
        for file in ["mesh.ca", "mesh.cert", "mesh.key"] {
            assert!(setting(file).starts_with("/etc/fencepost/certs/"), "{file}");
        }
        assert_eq!(mounts["/etc/fencepost/certs"], ("certs".to_owned(), false));
        assert_eq!(setting("node"), format!("{}-0", part.name), "as its certificate says");
        if part.name != "fencepost-worker" {
            assert_eq!(setting("data"), "/var/lib/fencepost/data");
            assert_eq!(mounts["/var/lib/fencepost"], ("data".to_owned(), true));
        }
        let roles = words(&settings["roles"]).join(",");
        let certs = format!("--roles {roles} ");
        assert!(
            text("README.md").contains(&certs),
            "the README makes certificates for {roles}"
        );
    }
    for policy in of_kind("NetworkPolicy") {
        let name = policy["metadata"]["name"].as_str().unwrap();
        let rules = ["ingress", "egress"].map(|way| policy["spec"][way][0]["ports"][0]["port"].clone());
        let is_mesh = ["fencepost-store", "fencepost-node", "fencepost-mesh"].contains(&name);
        assert_eq!(is_mesh, rules.contains(&4_481.into()), "{name}: {rules:?}");
    }
}

#[test]
fn a_pod_is_given_the_time_that_a_drain_takes_and_the_user_of_the_image() {
    let image = std::fs::read_to_string(folder().join("../container/Containerfile")).unwrap();
    for part in Part::all() {
        let drain = part.settings()["worker.drain"].as_str().unwrap().to_owned();
        let drain: u64 = drain.strip_suffix('s').unwrap().parse().unwrap();
        // Five seconds for requests that are still answered.
        let most = drain * 1_000 + 2 * DRAIN_SETTLE_MS + DRAIN_HAND_OVER_MS + 2 * RELEASE_MS + 5_000;
        let given = part.pod()["terminationGracePeriodSeconds"].as_u64().unwrap() * 1_000;
        assert!(given > most, "{}: {given} ms for {most} ms", part.name);
        let user = &part.pod()["securityContext"]["runAsUser"];
        assert!(image.contains(&format!("USER {user}:{user}")), "{user}");
    }
    assert_eq!(kustomization()["images"][0]["newTag"], env!("CARGO_PKG_VERSION"));
    let used = documents().iter().map(Value::to_string).collect::<String>();
    for secret in [
        "fencepost-api",
        "fencepost-store-certs",
        "fencepost-node-certs",
        "fencepost-worker-certs",
    ] {
        assert!(used.contains(&format!("\"{secret}\"")), "{secret}");
    }
    let made = text("README.md");
    assert!(made.contains("secret generic fencepost-api") && made.contains("secret generic fencepost-$kind-certs"));
}
