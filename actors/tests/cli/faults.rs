//! Servers that are not there, fall silent or break off: what the exit code says about the outcome.

use crate::{ended, fencepost, folder_with_token, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

/// A listener that treats its first connection like this.
#[allow(clippy::disallowed_methods, reason = "the other end of a broken connection")]
fn server(treat: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        // Nobody is there for a second connection, however long the first one takes.
        drop(listener);
        treat(stream);
    });
    address
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
}

/// Exit code and error code of a command against such a server.
fn ask(words: &[&str], address: SocketAddr) -> (i32, String) {
    let folder = folder_with_token();
    let url = format!("http://{address}");
    let rest = ["--server", &url, "--timeout", "300ms", "-o", "json"];
    let words: Vec<_> = words.iter().copied().chain(rest).collect();
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(out, "", "{words:?}");
    let problem: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!(problem.get("status"), None, "there was no answer: {err}");
    let told = problem["code"].as_str().unwrap();
    crate::problem_page::expect(told, crate::problem_page::EXIT, u32::try_from(code).unwrap());
    (code, told.to_owned())
}

/// A schedule is made on this connection, which is then closed.
fn answer_made(stream: &mut TcpStream) {
    read_head(stream);
    let body = "{\"name\":\"a\",\"next\":{\"due_at\":\"2030-01-01T00:00:00Z\"}}";
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    write!(stream, "HTTP/1.1 201 Created\r\n{head}connection: close\r\n\r\n{body}").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

/// How a command ends that is interrupted once the word has come that it waits.
fn interrupted(folder: &Path, words: &[&str], waits: &Receiver<()>) -> (i32, String, String) {
    let child = fencepost(folder, words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    waits.recv().unwrap();
    let id = child.id().to_string();
    let signal = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(signal.success());
    ended(child.wait_with_output().unwrap())
}

const CHANGE: &[&str] = &["job", "create", "--handler", "noop"];
const READ: &[&str] = &["job", "list"];

#[test]
fn a_server_that_is_not_there_exits_with_6() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for words in [CHANGE, READ] {
        assert_eq!(ask(words, address), (6, "server_unreachable".to_owned()));
    }
}

#[test]
fn a_change_without_an_answer_exits_with_7_and_a_read_with_6() {
    let breaks = |mut stream: TcpStream| read_head(&mut stream);
    assert_eq!(ask(CHANGE, server(breaks)), (7, "outcome_unknown".to_owned()));
    assert_eq!(ask(READ, server(breaks)), (6, "server_silent".to_owned()));
    let silent = |mut stream: TcpStream| {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    };
    assert_eq!(ask(CHANGE, server(silent)), (7, "outcome_unknown".to_owned()));
    assert_eq!(ask(READ, server(silent)), (6, "server_silent".to_owned()));
    let halfway = |mut stream: TcpStream| {
        read_head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{\"id\":")
            .unwrap();
    };
    assert_eq!(ask(CHANGE, server(halfway)), (7, "outcome_unknown".to_owned()));
}

#[test]
fn ctrl_c_while_waiting_exits_with_130() {
    let (tell, told) = std::sync::mpsc::channel();
    let address = server(move |mut stream| {
        read_head(&mut stream);
        tell.send(()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let folder = folder_with_token();
    let url = format!("http://{address}");
    let words = ["job", "wait", "job_0", "--server", &url, "-o", "json"];
    let (code, out, err) = interrupted(folder.path(), &words, &told);
    assert_eq!((code, out.as_str()), (130, ""), "{err}");
    assert!(err.contains("\"interrupted\""), "{err}");
}

#[test]
fn a_server_of_another_kind_is_named_as_such() {
    let other = |mut stream: TcpStream| {
        read_head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno")
            .unwrap();
    };
    assert_eq!(ask(READ, server(other)), (1, "answer_unexpected".to_owned()));
    let html = |mut stream: TcpStream| {
        read_head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>")
            .unwrap();
    };
    assert_eq!(ask(READ, server(html)), (1, "answer_unreadable".to_owned()));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the other end of an import")]
fn an_import_that_is_interrupted_tells_what_it_had_made() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::thread::spawn(move || answer_made(&mut stream));
        let (mut second, _) = listener.accept().unwrap();
        read_head(&mut second);
        tell.send(()).unwrap();
        let _ = second.read_to_end(&mut Vec::new());
    });
    let folder = folder_with_token();
    std::fs::write(folder.path().join("tab"), "0 1 * * * /bin/one\n0 2 * * * /bin/two\n").unwrap();
    let words = ["import", "crontab", "tab", "--server", &url];
    let (code, out, err) = interrupted(folder.path(), &words, &told);
    assert_eq!(code, 130, "{err}");
    assert!(out.starts_with("1\tcreated\tone-") && !out.contains("two"), "{out}");
    assert!(err.contains("1 created") && err.contains("[interrupted]"), "{err}");
}

#[test]
fn an_import_that_breaks_off_tells_what_it_had_made() {
    let made = |mut stream: TcpStream| answer_made(&mut stream);
    let folder = folder_with_token();
    std::fs::write(folder.path().join("tab"), "0 1 * * * /bin/one\n0 2 * * * /bin/two\n").unwrap();
    let url = format!("http://{}", server(made));
    let words = ["import", "crontab", "tab", "--server", &url];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(code, 6, "{err}");
    assert!(out.starts_with("1\tcreated\tone-") && !out.contains("two"), "{out}");
    assert!(err.contains("1 created") && err.contains("server_unreachable"), "{err}");
}
