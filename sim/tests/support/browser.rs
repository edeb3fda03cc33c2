//! A real browser, driven over its pipe: pages are loaded and clicked as a person would.
//!
//! Owns: finding Chromium, and the little of its protocol that is needed. Must never: be taken for done where there
//! is none.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A browser with one page.
pub struct Browser {
    process: Child,
    folder: PathBuf,
    to: File,
    from: BufReader<File>,
    number: u64,
    session: Option<String>,
    is_loaded: bool,
}

/// Chromium's program, if there is one: `CHROMIUM` names it, or it is on the path.
pub fn find() -> Option<PathBuf> {
    let told = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    let on_path = move || {
        folders.find_map(|folder| {
            names
                .map(|name| folder.join(name))
                .into_iter()
                .find(|file| file.is_file())
        })
    };
    told.filter(|file| file.is_file()).or_else(on_path)
}

impl Browser {
    /// Starts it with an empty page; `folder` must be there and its own.
    pub fn start(program: &Path, folder: &Path) -> Browser {
        let pipe = |name: &str| {
            let path = folder.join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // A browser that hangs must not hang the test for ever.
        let script = "exec timeout 120 \"$0\" --headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe \
                      --window-size=1500,900 --user-data-dir=\"$1\" about:blank 3<\"$2\" 4>\"$3\"";
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(script)
            .arg(program)
            .arg(folder.join("profile"))
            .arg(&to)
            .arg(&from);
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut browser = Browser {
            process,
            folder: folder.to_owned(),
            to: File::options().write(true).open(&to).unwrap(),
            from: BufReader::new(File::open(&from).unwrap()),
            number: 0,
            session: None,
            is_loaded: false,
        };
        let target = browser.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", &attached);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.ask("Page.enable", &json!({}));
        browser.ask("Runtime.enable", &json!({}));
        browser
    }

    /// Loads a file and waits for it.
    pub fn load(&mut self, file: &Path) {
        self.is_loaded = false;
        self.ask("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        while !self.is_loaded {
            self.take();
        }
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of the first element that a selector names.
    pub fn text(&mut self, selector: &str) -> String {
        let value = self.value(&format!("document.querySelector({selector:?})?.textContent ?? ''"));
        value.as_str().unwrap().to_owned()
    }

    /// Presses and releases the mouse in the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const box = document.querySelector({selector:?}).getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let at = self.value(&middle);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", &event);
        }
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.take();
            if answer["id"] == json!(self.number) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message; a fault in the page's script is a failure.
    fn take(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert!(bytes.pop() == Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        assert_ne!(message["method"], "Runtime.exceptionThrown", "{message}");
        self.is_loaded |= message["method"] == "Page.loadEventFired";
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
