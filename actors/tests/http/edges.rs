//! Bad input beside creation, what is told of it, and limits at their edge.
//!
//! Next: `input.rs` for the fields of jobs and schedules.

use crate::input::{JOB};
use crate::{World, run};

#[test]
fn control_characters_in_what_was_sent_are_shown_and_not_left_out() {
    run(async {
        let world = World::new().await;
        for (fields, shown) in [
            (
                r#""cron":"* * * * *","tz":"Europe/\u0000Berlin""#,
                r"'Europe/\u{0}Berlin' is",
            ),
            (r#""every":"1h","exclude":["sat\u001b"]"#, r"'sat\u{1b}' is no"),
            (r#""at_local":"2036-01-01T00:00:00\u0000""#, r"00\u{0}' is no"),
            (r#""every":"1\u0000h""#, r"1\u{0}h"),
            (r#""every":"1h","grace":"1h","que\u0000ue":1"#, r"que\u{0}ue"),
        ] {
            let body = format!("{{\"name\":\"a\",{fields},\"job\":{{{JOB}}}}}");
            let reply = world.post("/v1/schedules", &body).await;
            assert_eq!(reply.problem().0, 400, "{body}");
            let problem = reply.json();
            let told = format!("{}{}", problem["detail"].as_str().unwrap(), reply.field());
            assert!(told.contains(shown), "{shown}: {problem}");
        }
    });
}
