//! Settings through the real binary: what is wrong with them, which layer wins, and what is never shown.
//!
//! Owns: what a person reads. Next: `../../src/config/`, `config_page.rs`.

use crate::support::server::Server;
use crate::{ended, fencepost};
use serde_json::Value;
use std::path::Path;

/// The binary with these words and variables; no other setting from outside.
fn run(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = fencepost(folder, words);
    command.envs(variables.iter().copied());
    ended(command.output().unwrap())
}

fn folder_with(file: impl AsRef<[u8]>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.toml"), file).unwrap();
    folder
}

/// `file:line:column code field` of each mistake, from the JSON on standard error.
fn mistakes(err: &str) -> Vec<String> {
    let told: Value = serde_json::from_str(err).unwrap();
    assert_eq!(told["code"], "config_invalid", "{err}");
    let line = |mistake: &Value| {
        let text = |name: &str| mistake[name].as_str().unwrap_or_default().to_owned();
        assert!(!text("hint").is_empty() && !text("detail").is_empty(), "{mistake}");
        let place = match mistake["origin"].as_str().unwrap() {
            "file" => format!("{}:{}:{}", text("file"), mistake["line"], mistake["column"]),
            "env" => text("env"),
            _ => text("flag"),
        };
        format!("{place} {} {}", text("code"), text("field"))
    };
    told["mistakes"].as_array().unwrap().iter().map(line).collect()
}

const BAD: &str = "\
# Six mistakes.
shards = 900
slots = 8

[api]
listen = 4480
lisen = \"127.0.0.1:1\"

[worker]
drain = 30
queues = [\"mail\", \"a b\"]
";

#[test]
fn every_mistake_is_told_at_once_with_its_place_and_what_to_write() {
    let folder = folder_with(BAD);
    let bad = [("FENCEPOST_DRAIN", "1 month")];
    let words = ["config", "check", "f.toml"];
    let (code, out, err) = run(folder.path(), &[&words[..], &["-o", "json"]].concat(), &bad);
    assert_eq!((code, out.as_str()), (8, ""), "{err}");
    let wanted = [
        "f.toml:2:10 config_out_of_range shards",
        "f.toml:3:1 config_key_unknown slots",
        "f.toml:6:10 config_type api.listen",
        "f.toml:7:1 config_key_unknown api.lisen",
        "f.toml:10:9 config_type worker.drain",
        "f.toml:11:19 config_name worker.queues",
        "FENCEPOST_DRAIN duration_form worker.drain",
    ];
    assert_eq!(mistakes(&err), wanted);
    let (code, out, err) = run(folder.path(), &words, &bad);
    assert_eq!((code, out.as_str()), (8, ""), "{err}");
    for hint in [
        "error: f.toml:2:10: 900 is not between 1 and 256. [config_out_of_range, shards]",
        "hint: Did you mean slots in [worker]?",
        "hint: Did you mean listen?",
        "hint: Write drain = \"30s\".",
        "error: env FENCEPOST_DRAIN: ",
    ] {
        assert!(err.contains(hint), "{hint}: {err}");
    }
    let (code, _, serve) = run(folder.path(), &["serve", "--config", "f.toml"], &bad);
    assert_eq!((code, serve), (8, err), "a start says the same");
    assert!(!folder.path().join("fencepost-data").exists(), "and makes nothing");
}

#[test]
fn broken_files_are_refused_with_the_place() {
    let cases: &[(&[u8], &str)] = &[
        (b"data = \"a\"\n\ndata = \"b\"\n", "f.toml:3:1 config_key_repeated data"),
        (b"[api]\n[api]\n", "f.toml:2:2 config_key_repeated api"),
        (b"[worker]\nslots = \n", "f.toml:2:9 config_syntax "),
        (b"a = {b = [1, }\n", "f.toml:1:14 config_syntax "),
        (b"# caf\xe9\n", "f.toml:1:6 config_not_utf8 "),
        (b"api = 3\n", "f.toml:1:7 config_type api"),
        (b"[log]\nform = \"jsno\"\n", "f.toml:2:8 config_word_unknown log.form"),
        (b"[node]\n", "f.toml:1:1 config_type node"),
        (
            b"[mesh]\nsecret = \"s3cr3t-s3cr3t-s3cr3t\"\n",
            "f.toml:2:1 config_secret_in_file mesh.secret",
        ),
        (b"[mesh]\nlisten = \"127.0.0.1:0\"\n", "f.toml:2:1 roles_invalid roles"),
        (b"roles = [\"store\"]\n", "f.toml:1:1 roles_invalid mesh.listen"),
        (
            b"roles = [\"store\"]\n[mesh]\nlisten = \"127.0.0.1:0\"\nadvertise = \"n1:4482\"\n",
            "f.toml:4:1 mesh_advertise_unused mesh.advertise",
        ),
        (
            b"[targets]\nallow_commands = \"true\"\n",
            "f.toml:2:18 config_type targets.allow_commands",
        ),
        (
            b"threads = 99999999999999999999\n",
            "f.toml:1:11 config_out_of_range threads",
        ),
    ];
    for (file, wanted) in cases {
        let folder = folder_with(file);
        let (code, out, err) = run(folder.path(), &["config", "check", "f.toml", "-o", "json"], &[]);
        assert_eq!((code, out.as_str()), (8, ""), "{wanted}: {err}");
        assert_eq!(mistakes(&err), [*wanted], "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
    for nest in ["[", "a = [", "a = {a = ", "a."] {
        let folder = folder_with(nest.repeat(20_000));
        let (code, _, err) = run(folder.path(), &["config", "check", "f.toml"], &[]);
        assert_eq!(code, 8, "{err}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = folder_with("#".repeat((256 << 10) + 1));
    let (code, _, err) = run(folder.path(), &["config", "check", "f.toml"], &[]);
    assert!(code == 8 && err.contains("config_too_large"), "{err}");
    for file in [".", "not-there.toml"] {
        for words in [&["config", "check", file][..], &["serve", "--config", file]] {
            let (code, out, err) = run(folder.path(), words, &[]);
            assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
            assert!(err.contains("[file_unreadable]") && err.contains("hint: "), "{err}");
        }
    }
    let many: String = (0..5_000).map(|no| format!("k{no} = 1\n")).collect();
    let folder = folder_with(many);
    let (code, _, err) = run(folder.path(), &["config", "check", "f.toml"], &[]);
    assert_eq!((code, err.matches("error: ").count()), (8, 100));
    assert!(err.ends_with("there are more; mend these first\n"), "{err}");
}

/// Value and origin of a setting, as `config show --origin` has them.
fn shown(folder: &Path, words: &[&str], variables: &[(&str, &str)], field: &str) -> String {
    let words = [&["config", "show", "--origin"], words].concat();
    let (code, out, err) = run(folder, &words, variables);
    assert_eq!(code, 0, "{err}");
    let line = out.lines().find(|line| line.split('\t').next() == Some(field));
    line.unwrap_or_else(|| panic!("no {field} in {out}")).replace('\t', " ")
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let folder = folder_with("[worker]\nslots = 5\n\n[targets]\nallow_commands = true\n");
    let ask = |words: &[&str], variables: &[(&str, &str)]| shown(folder.path(), words, variables, "worker.slots");
    let (file, env) = (("FENCEPOST_CONFIG", "f.toml"), ("FENCEPOST_SLOTS", "6"));
    assert_eq!(ask(&[], &[]), "worker.slots 64 default");
    assert_eq!(ask(&[], &[file]), "worker.slots 5 f.toml:2");
    assert_eq!(ask(&["--config", "f.toml"], &[]), "worker.slots 5 f.toml:2");
    assert_eq!(ask(&[], &[file, env]), "worker.slots 6 env FENCEPOST_SLOTS");
    assert_eq!(ask(&["--slots", "7"], &[file, env]), "worker.slots 7 flag --slots");
    let commands = |words: &[&str]| shown(folder.path(), words, &[file], "targets.allow_commands");
    assert_eq!(commands(&[]), "targets.allow_commands true f.toml:5");
    let off = commands(&["--allow-commands=false"]);
    assert_eq!(off, "targets.allow_commands false flag --allow-commands");
    let queues = shown(folder.path(), &["--queue", "a", "--queue", "b"], &[], "worker.queues");
    assert_eq!(queues, "worker.queues a,b flag --queue");
    let (code, out, err) = run(folder.path(), &["config", "show", "--origin", "-o", "json"], &[file]);
    assert_eq!(code, 0, "{err}");
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let slots = rows.iter().find(|row| row["field"] == "worker.slots").unwrap();
    assert_eq!(
        (&slots["value"], &slots["origin"], &slots["line"]),
        (&5.into(), &"file".into(), &2.into())
    );
}

#[test]
fn a_mistake_that_another_layer_hides_is_told_all_the_same() {
    let folder = folder_with("[worker]\nslots = 0\n");
    let words = ["config", "show", "--config", "f.toml", "--slots", "7", "-o", "json"];
    let (code, out, err) = run(folder.path(), &words, &[("FENCEPOST_SLOTS", "")]);
    assert_eq!((code, out.as_str()), (8, ""));
    let wanted = [
        "f.toml:2:9 config_out_of_range worker.slots",
        "FENCEPOST_SLOTS config_value worker.slots",
    ];
    assert_eq!(mistakes(&err), wanted);
}

#[test]
fn a_secret_is_shown_in_no_form() {
    let folder = tempfile::tempdir().unwrap();
    for secret in ["s3cr3t-s3cr3t-s3cr3t", "s3cr3t"] {
        for form in ["text", "json", "jsonl"] {
            for words in [
                &["config", "show", "--origin", "-o", form][..],
                &["config", "check", "-o", form],
            ] {
                let (code, out, err) = run(folder.path(), words, &[("FENCEPOST_MESH_SECRET", secret)]);
                assert_eq!(code, if secret.len() > 16 { 0 } else { 8 }, "{err}");
                assert!(!out.contains("s3cr3t") && !err.contains("s3cr3t"), "{out}{err}");
            }
        }
    }
}

#[test]
fn a_server_runs_by_its_file() {
    let folder = folder_with(
        "data = \"store\"\nshards = 2\n\n[api]\nlisten = \"127.0.0.1:0\"\n\n[targets]\nallow_commands = true\n",
    );
    let token = folder.path().join("store/token");
    let start = |words: &[&str]| {
        let words = [&["serve", "--config", "f.toml"], words].concat();
        Server::start(
            fencepost(folder.path(), &words),
            folder.path().join("said"),
            token.clone(),
        )
    };
    let mut server = start(&[]);
    let url = server.url();
    let ask = |words: &[&str]| {
        let variables = [
            ("FENCEPOST_SERVER", url.as_str()),
            ("FENCEPOST_TOKEN_FILE", "store/token"),
        ];
        run(folder.path(), words, &variables)
    };
    let (code, id, err) = ask(&["job", "create", "--", "true"]);
    assert_eq!(code, 0, "the file allows commands: {err}");
    assert_eq!(ask(&["job", "wait", id.trim()]).0, 0);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_store_and_its_node_run_by_files_and_share_a_secret_of_the_environment() {
    const SECRET: &str = "s3cr3t-s3cr3t-s3cr3t";
    let folder = folder_with("data = \"store\"\nroles = [\"store\"]\n\n[mesh]\nlisten = \"127.0.0.1:0\"\n");
    let command = |file: &str| {
        let mut command = fencepost(folder.path(), &["serve", "--config", file]);
        command.env("FENCEPOST_MESH_SECRET", SECRET);
        command
    };
    let (mut store, at) = Server::start_store(command("f.toml"), folder.path().join("store-said"));
    let node = format!(
        "data = \"node\"\nshards = 2\nroles = [\"scheduler\", \"worker\", \"gateway\", \"coordinator\"]\n\n\
         [api]\nlisten = \"127.0.0.1:0\"\n\n[mesh]\nstore_at = \"{at}\"\n"
    );
    std::fs::write(folder.path().join("node.toml"), node).unwrap();
    let token = folder.path().join("node/token");
    let mut node = Server::start(command("node.toml"), folder.path().join("node-said"), token);
    assert!(
        !folder.path().join("store/mesh-secret").exists(),
        "no file is made for a secret that is given"
    );
    for server in [&node, &store] {
        assert!(!server.said().contains("s3cr3t"), "{}", server.said());
    }
    assert_eq!((node.stop(), store.stop()), (Some(0), Some(0)));
}

#[test]
fn the_schema_is_one_and_names_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(folder.path(), &["config", "schema"], &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    let schema: Value = serde_json::from_str(&out).unwrap();
    let drain = &schema["properties"]["worker"]["properties"]["drain"];
    assert_eq!((&drain["type"], &drain["default"]), (&"string".into(), &"30s".into()));
    assert!(
        schema["additionalProperties"] == false && !out.contains("\"secret\""),
        "{out}"
    );
}

#[test]
fn roles_that_make_no_process_are_refused_with_those_that_do() {
    let folder = folder_with("");
    for roles in [
        "coordinator",
        "gateway",
        "scheduler",
        "gateway,coordinator",
        "store,scheduler",
        "all,worker",
    ] {
        let given = [("FENCEPOST_ROLES", roles), ("FENCEPOST_STORE_AT", "127.0.0.1:1")];
        let (code, _, err) = run(folder.path(), &["config", "check"], &given);
        assert_eq!(code, 8, "{roles}: {err}");
        assert!(err.contains("There is no process with the roles"), "{roles}: {err}");
        assert!(
            err.contains("scheduler,gateway,coordinator, with worker or without"),
            "{err}"
        );
    }
    for roles in [
        "scheduler,gateway,coordinator",
        "coordinator,gateway,scheduler,worker",
        "worker",
    ] {
        let given = [("FENCEPOST_ROLES", roles), ("FENCEPOST_STORE_AT", "127.0.0.1:1")];
        assert_eq!(run(folder.path(), &["config", "check"], &given).0, 0, "{roles}");
    }
}

#[test]
fn an_address_that_a_process_does_not_need_is_to_be_left_out() {
    let worker = "roles = [\"worker\"]\n[mesh]\nlisten = \"127.0.0.1:1\"\nstore_at = \"127.0.0.1:2\"\n";
    let store = "roles = [\"store\"]\n[mesh]\nlisten = \"127.0.0.1:1\"\nstore_at = \"127.0.0.1:2\"\n";
    for (file, place, name) in [
        (worker, "f.toml:3:1", "mesh.listen"),
        (store, "f.toml:4:1", "mesh.store_at"),
    ] {
        let folder = folder_with(file);
        let (code, _, err) = run(folder.path(), &["config", "check", "f.toml"], &[]);
        assert_eq!(code, 8, "{err}");
        assert!(
            err.contains(place) && err.contains(&format!("hint: Leave {name} out.")),
            "{err}"
        );
    }
}

#[test]
fn an_api_beyond_loopback_is_found_before_the_start() {
    let folder = folder_with("[api]\nlisten = \"0.0.0.0:4480\"\n");
    let (code, _, err) = run(folder.path(), &["config", "check", "f.toml"], &[]);
    assert_eq!(code, 8, "{err}");
    assert!(
        err.contains("f.toml:2:1") && err.contains("listen_not_loopback"),
        "{err}"
    );
    assert!(err.contains("proxy with TLS"), "{err}");
}
