//! Crontabs as they are found on real machines, and every way in which a line can be wrong.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::cron::{CronRule, HashSeed};

/// Sixty lines that run something, of the kinds found on Debian, Red Hat, SUSE and BSD machines.
const SYSTEM: &str = r#"
# /etc/crontab: system-wide crontab
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
MAILTO=root
17 *	* * *	root    cd / && run-parts --report /etc/cron.hourly
25 6	* * *	root	test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )
47 6	* * 7	root	test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.weekly )
52 6	1 * *	root	test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.monthly )
0 */12 * * * root test -x /usr/bin/certbot -a \! -d /run/systemd/system && perl -e 'sleep int(rand(43200))' && certbot -q renew
30 3 * * 0 root test -e /run/systemd/system || SERVICE_MODE=1 /usr/lib/x86_64-linux-gnu/e2fsprogs/e2scrub_all_cron
10 3 * * * root test -e /run/systemd/system || SERVICE_MODE=1 /sbin/e2scrub_all -A -r
09,39 *     * * *     root   [ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd/system ]; then /usr/lib/php/sessionclean; fi
57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && [ $(date +\%d) -le 7 ]; then /usr/share/mdadm/checkarray --cron --all --idle --quiet; fi
5-55/10 * * * * root command -v debian-sa1 > /dev/null && debian-sa1 1 1
59 23 * * * root command -v debian-sa1 > /dev/null && debian-sa1 60 2
24 0 8-14 * * root if [ $(date +\%w) -eq 0 ] && [ -x /usr/lib/zfs-linux/scrub ]; then /usr/lib/zfs-linux/scrub; fi
*/5 * * * *     munin if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi
14 10 * * *     munin if [ -x /usr/share/munin/munin-limits ]; then /usr/share/munin/munin-limits --force --contact nagios --contact old-nagios; fi
*/10 * * * * www-data [ -x /usr/share/awstats/tools/update.sh ] && /usr/share/awstats/tools/update.sh
10 03 * * * www-data [ -x /usr/share/awstats/tools/buildstatic.sh ] && /usr/share/awstats/tools/buildstatic.sh
*/5 * * * * www-data php /usr/share/cacti/site/poller.php 2>&1 >/var/log/cacti/poller-error.log
33  */6   * * *   librenms    /opt/librenms/cronic /opt/librenms/discovery-wrapper.py 1
*/5  *    * * *   librenms    /opt/librenms/discovery.php -h new >> /dev/null 2>&1
15   0    * * *   librenms    /opt/librenms/daily.sh >> /dev/null 2>&1
@daily root /usr/local/sbin/rotate-keys
01 * * * * root run-parts /etc/cron.hourly
0-59/15 8-18 * * mon-fri nagios /usr/local/nagios/bin/check_business.sh
-*/15 * * * * root test -x /usr/lib/cron/run-crons && /usr/lib/cron/run-crons >/dev/null 2>&1
0	3	*	*	*	root	newsyslog
1,31	0-5	*	*	*	root	adjkerntz -a
*/11	*	*	*	*	operator /usr/libexec/save-entropy
10 1 * * *	root	/usr/sbin/logrotate /etc/logrotate.conf
0~59 2 * * * root /usr/sbin/dnf-makecache
@reboot root /usr/local/bin/start-agents
"#;

const USER: &str = r#"
MAILTO="ops@example.com"
CRON_TZ=America/New_York
PATH = "/home/app/bin:/usr/bin:/bin"
HOME='/srv/app'
* * * * * cd /var/www/html && php artisan schedule:run >> /dev/null 2>&1
*/5 * * * * php -f /var/www/nextcloud/cron.php
0 2 * * * /usr/local/bin/backup.sh
30 1 * * * mysqldump -u root --all-databases | gzip > /backup/db-$(date +\%Y\%m\%d).sql.gz
0 4 * * sun /usr/bin/borg create --stats /mnt/backup::{hostname}-{now:\%Y-\%m-\%d} /home
0 0 1 * * /usr/bin/find /tmp -type f -mtime +30 -delete
0 0 1 1 * echo "Happy new year"
15 14 1 * * $HOME/bin/monthly
0 22 * * 1-5 mail -s "It's 10pm" joe%Joe,%%Where are your kids?%
5 4 * * sun echo "run at 5 after 4 every Sunday"
23 0-23/2 * * * echo "run 23 minutes after midn, 2am, 4am ..., everyday"
0 9-17 * * 1-5 /home/app/bin/poll --office-hours
*/15 9-17 * * MON-FRI flock -n /tmp/sync.lock /home/app/bin/sync
0 0,12 * * * python3 -c 'import random; import time; time.sleep(random.random() * 3600)' && certbot renew -q
43 6 * * * "/root/.acme.sh"/acme.sh --cron --home "/root/.acme.sh" > /dev/null
@hourly /usr/bin/freshclam --quiet
@weekly docker system prune -af
@monthly /home/app/bin/invoice
@midnight /home/app/bin/close-day
@yearly /home/app/bin/archive
20,50 * * * *   test -x $HOME/bin/fetch && $HOME/bin/fetch 2>&1 | logger -t fetch
0 5 * * 6,0 /home/app/bin/weekend
0 0 * * 0 pg_dump -Fc app > /backup/app.dump
*/2 * * * * curl -fsS -m 10 --retry 5 -o /dev/null https://hc.example.com/ping/uuid
0 12 * * 1#1 /home/app/bin/first-monday
0 8 L * * /home/app/bin/last-day
0 3 */2 * * rsync -az --delete /srv/ backup:/srv/
10 * * * * nice -n 19 ionice -c3 /usr/bin/updatedb
0 6 15-21 * 3 [ "$(date +\%u)" = 3 ] && /home/app/bin/third-wednesday
CRON_TZ=Europe/Berlin
0 7 * JAN,APR,JUL,OCT * /home/app/bin/quarter
"#;

fn parse(text: &str, kind: CrontabKind) -> Crontab {
    Crontab::parse(text.as_bytes(), kind, "UTC")
}

fn only(text: &str, kind: CrontabKind) -> Proposal {
    let crontab = parse(text, kind);
    let found: Vec<_> = crontab.proposals().map(|(_, proposal)| proposal.clone()).collect();
    assert_eq!(found.len(), 1, "{crontab:?}");
    found[0].clone()
}

fn refused(text: &str, kind: CrontabKind) -> &'static str {
    let crontab = parse(text, kind);
    let codes: Vec<_> = crontab.unsupported().map(|(_, unsupported)| unsupported.code).collect();
    assert_eq!(codes.len(), 1, "{crontab:?}");
    codes[0]
}

#[test]
fn sixty_real_lines_are_nearly_all_converted() {
    let (system, user) = (parse(SYSTEM, CrontabKind::System), parse(USER, CrontabKind::User));
    let converted = system.proposals().count() + user.proposals().count();
    let left: Vec<_> = system.unsupported().chain(user.unsupported()).collect();
    assert_eq!(converted + left.len(), 60, "{left:?}");
    assert!(converted * 100 >= 60 * 95, "only {converted} of 60: {left:?}");
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!((left[0].0, left[0].1.code), (35, "crontab_macro"));
    let names: std::collections::BTreeSet<_> = system
        .proposals()
        .chain(user.proposals())
        .map(|(_, proposal)| proposal.name.clone())
        .collect();
    assert_eq!(names.len(), converted);
}

#[test]
fn settings_reach_the_lines_below_them() {
    let text = "A=1\n0 1 * * * first\nA = ' 2 '\nSHELL=/bin/bash\nCRON_TZ=europe/berlin\nRANDOM_DELAY=5\n0 2 * * * second\nCRON_TZ=\n0 3 * * * third\n";
    let crontab = parse(text, CrontabKind::User);
    let found: Vec<_> = crontab.proposals().map(|(_, proposal)| proposal).collect();
    assert_eq!(found[0].env, [("A".to_owned(), "1".to_owned())]);
    assert_eq!(found[0].argv, ["/bin/sh", "-c", "first"]);
    assert_eq!(found[0].jitter, Span::ZERO);
    assert_eq!(found[1].env[0], ("A".to_owned(), " 2 ".to_owned()));
    assert_eq!(found[1].argv[0], "/bin/bash");
    assert_eq!(found[1].jitter, Span::from_secs(300));
    let zones: Vec<_> = found.iter().map(|proposal| proposal.zone.as_str()).collect();
    assert_eq!(zones, ["UTC", "Europe/Berlin", "UTC"]);
    assert!(crontab.lines.iter().all(|line| line.number >= 1 && line.number <= 9));
}

#[test]
fn a_per_cent_sign_begins_the_input_and_ends_its_lines() {
    let mail = only(
        r#"0 22 * * 1-5 mail -s "100\% done" joe%Joe,%%Where\% are you?"#,
        CrontabKind::User,
    );
    assert_eq!(mail.argv[2], r#"mail -s "100% done" joe"#);
    assert_eq!(mail.stdin.as_deref(), Some("Joe,\n\nWhere% are you?\n"));
    let plain = only(r"* * * * * date +\%s \d", CrontabKind::User);
    assert_eq!((plain.argv[2].as_str(), plain.stdin), (r"date +%s \d", None));
}

#[test]
fn system_lines_name_a_user_and_user_lines_do_not() {
    let system = only("0 1 * * *\twww-data\t /usr/bin/thing  --now ", CrontabKind::System);
    assert_eq!(
        (system.user.as_deref(), system.argv[2].as_str()),
        (Some("www-data"), "/usr/bin/thing  --now")
    );
    assert!(system.notes[0].contains("not as 'www-data'"));
    assert_eq!(refused("0 1 * * * /usr/bin/thing", CrontabKind::System), "crontab_user");
    assert_eq!(
        refused("0 1 * * * root", CrontabKind::System),
        "crontab_command_missing"
    );
    assert!(only("0 1 * * * root /usr/bin/thing", CrontabKind::User).notes[0].contains("system crontab"));
}

#[test]
fn what_has_no_place_here_is_reported_with_reason_and_hint() {
    let cases = [
        ("@reboot /bin/x", "crontab_macro"),
        ("FOO=\"a b\" # c", "crontab_quotes"),
        ("FOO='a", "crontab_quotes"),
        ("FOO = \"a\"b\"", "crontab_quotes"),
        ("@60 /bin/x", "crontab_macro"),
        ("@every 5m /bin/x", "crontab_macro"),
        ("@ /bin/x", "cron_macro_unknown"),
        ("@fortnightly /bin/x", "cron_macro_unknown"),
        ("0 1 * *", "crontab_fields_missing"),
        ("0 1 * * *", "crontab_command_missing"),
        ("0 1 * * * %only input", "crontab_command_missing"),
        ("61 1 * * * /bin/x", "cron_range"),
        ("0 0 30 2 * /bin/x", "cron_never"),
        ("5/15 * * * * /bin/x", "cron_step_base"),
        ("0 22-2 * * * /bin/x", "cron_range_backward"),
        ("* * * * Sunday /bin/x", "cron_value"),
        ("CRON_TZ=Mars/Base", "zone_unknown"),
        ("RANDOM_DELAY=soon", "crontab_random_delay"),
        ("0 1 * * * a\0b", "crontab_control_character"),
        ("hello", "crontab_fields_missing"),
    ];
    for (text, code) in cases {
        let crontab = parse(&format!("0 0 * * * before\n{text}\n"), CrontabKind::User);
        let found: Vec<_> = crontab.unsupported().collect();
        assert_eq!(
            found.iter().map(|(line, un)| (*line, un.code)).collect::<Vec<_>>(),
            [(2, code)],
            "{text}"
        );
        assert!(!found[0].1.reason.is_empty() && !found[0].1.hint.is_empty());
        assert_eq!(crontab.proposals().count(), 1, "{text}");
    }
    let broken = parse(
        "CRON_TZ=Nowhere\n0 1 * * * x\nCRON_TZ=UTC\n0 1 * * * y\n",
        CrontabKind::User,
    );
    let codes: Vec<_> = broken.unsupported().map(|(line, un)| (line, un.code)).collect();
    assert_eq!(codes, [(1, "zone_unknown"), (2, "crontab_zone_unknown")]);
    assert_eq!(broken.proposals().count(), 1);
}

#[test]
fn bytes_that_are_no_text_and_endless_files_are_reported() {
    let crontab = Crontab::parse(b"0 1 * * * caf\xe9\r\n0 2 * * * ok\r\n", CrontabKind::User, "UTC");
    assert_eq!(
        crontab
            .unsupported()
            .map(|(line, un)| (line, un.code))
            .collect::<Vec<_>>(),
        [(1, "crontab_not_utf8")]
    );
    assert_eq!(crontab.proposals().next().unwrap().1.argv[2], "ok");
    let long = format!("0 1 * * * {}", "x".repeat(crate::limits::ARGV_BYTES_MAX));
    assert_eq!(refused(&long, CrontabKind::User), "crontab_line_too_long");
    let endless = "0 1 * * * x\n".repeat(CRONTAB_BYTES_MAX / 12 + 10);
    let crontab = parse(&endless, CrontabKind::User);
    assert_eq!(
        crontab
            .lines
            .last()
            .map(|line| matches!(line.outcome, LineOutcome::Unsupported(_))),
        Some(true)
    );
}

#[test]
fn names_are_stable_and_tell_lines_apart() {
    let names = |text: &str| -> Vec<String> {
        parse(text, CrontabKind::User)
            .proposals()
            .map(|(_, proposal)| proposal.name.to_string())
            .collect()
    };
    let one = names("0 2 * * * cd /srv && FOO=1 nice -n 19 /usr/local/bin/Backup.sh --all\n");
    assert!(one[0].starts_with("backup.sh-") && one[0].len() == 16, "{one:?}");
    let moved =
        names("# moved\n0 3 * * * other\n0 2 * * * cd /srv && FOO=1 nice -n 19 /usr/local/bin/Backup.sh --all\n");
    assert_eq!(moved[1], one[0]);
    let twins = names("* * * * * x\n* * * * * x\n* * * * * y\n");
    assert_eq!(twins[1], format!("{}-2", twins[0]));
    assert_ne!(twins[2], twins[0]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300), system in any::<bool>()) {
        let kind = if system { CrontabKind::System } else { CrontabKind::User };
        let crontab = Crontab::parse(&bytes, kind, "UTC");
        prop_assert!(crontab.lines.len() <= bytes.split(|b| *b == b'\n').count());
    }

    #[test]
    fn any_line_of_likely_words_is_read(words in prop::collection::vec("[0-9*/,~%\\\\=@a-zA-Z\"' -]{0,8}", 0..12)) {
        for kind in [CrontabKind::System, CrontabKind::User] {
            for (_, proposal) in Crontab::parse(words.join(" ").as_bytes(), kind, "UTC").proposals() {
                prop_assert!(CronRule::parse(&proposal.expression, HashSeed(7)).is_ok(), "{}", proposal.expression);
            }
        }
    }
}
