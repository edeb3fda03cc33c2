//! A payment-like service that charges once, whatever calls arrive: `cargo run -p fencepost --example payments`.
//!
//! Owns: the worked example of `docs/guides/exactly-once-effects.md`. Must never: be taken for a bank. It
//! listens on loopback, keeps balances in the guard's own ledger (so that a charge, its key and its fence are
//! one transaction), and answers each of the guard's answers with the status that tells Fencepost what to do.
//!
//! `POST /charges` with `{"account": "ada", "cents": 250}` · `GET /accounts/ada`

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fencepost::guard::fjall::FjallLedger;
use fencepost::guard::{Answer, Call, Effects, Guard, GuardError};
use fencepost::net::rt::{HyperIo, HyperTimer};
use fencepost_core::ids::Token;
use fencepost_core::time::StoreTime;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use tokio::net::TcpListener;

/// What an account starts with.
const OPENING_CENTS: u64 = 10_000;
const BODY_BYTES_MAX: usize = 4_096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Charge {
    account: String,
    cents: u64,
}

/// The guard is the whole service: charges, keys and fences are in its ledger.
pub type Service = Guard<FjallLedger>;
type Reply = (StatusCode, String);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let folder = args
        .next()
        .map_or_else(|| PathBuf::from("payments-data"), PathBuf::from);
    let port: u16 = args.next().and_then(|port| port.to_str()?.parse().ok()).unwrap_or(8480);
    let service = Arc::new(Guard::new(FjallLedger::open(&folder)?));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        println!("payments: http://{}", listener.local_addr()?);
        Ok(serve(listener, service).await?)
    })
}

/// Answers calls until accepting fails.
pub async fn serve(listener: TcpListener, service: Arc<Service>) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request| reply(service.clone(), request));
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(HyperTimer).header_read_timeout(Duration::from_secs(5));
            // A broken connection is the caller's to notice; the charge, if it was made, is in the ledger.
            builder.serve_connection(HyperIo::new(stream), answer).await.ok();
        });
    }
}

async fn reply(service: Arc<Service>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = route(&service, request).await.unwrap_or_else(|refused| refused);
    let mut response = Response::new(Full::new(Bytes::from(text + "\n")));
    *response.status_mut() = status;
    Ok(response)
}

async fn route(service: &Service, request: Request<Incoming>) -> Result<Reply, Reply> {
    let path = request.uri().path().to_owned();
    if request.method() == Method::POST && path == "/charges" {
        return charge(service, request).await;
    }
    match path.strip_prefix("/accounts/") {
        Some(account) if request.method() == Method::GET => {
            let row = service.read(account_row(account).as_bytes()).map_err(unavailable)?;
            Ok((StatusCode::OK, format!(r#"{{"cents":{}}}"#, cents_of(row))))
        }
        _ => Err((StatusCode::NOT_FOUND, "no such page".into())),
    }
}

async fn charge(service: &Service, request: Request<Incoming>) -> Result<Reply, Reply> {
    let bad = |what: &str| (StatusCode::BAD_REQUEST, what.to_owned());
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let key = header("idempotency-key").ok_or_else(|| bad("the header idempotency-key is missing"))?;
    let token = header("fencepost-token").and_then(|text| text.parse::<Token>().ok());
    let token = token.ok_or_else(|| bad("the header fencepost-token is missing or no token"))?;
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|_| bad("the body did not arrive whole"))?.to_bytes();
    let charge: Charge = serde_json::from_slice(&body).map_err(|_| bad("the body is no charge"))?;
    // Fencing by account as well would refuse jobs that overtake each other; charges need no order.
    let call = Call {
        key: &key,
        token,
        line: None,
        now: now(),
    };
    let answer = service.apply(&call, |effects| take(effects, &charge));
    // The sync above blocks this example's one thread; a larger service gives the guard a thread of its own.
    Ok(status_of(answer))
}

/// The effect: checks and lowers the balance, all of it inside the guard's transaction.
fn take(effects: &mut Effects<'_>, charge: &Charge) -> Result<Vec<u8>, GuardError> {
    let row = account_row(&charge.account);
    let cents = cents_of(effects.get(row.as_bytes())?);
    let Some(left) = cents.checked_sub(charge.cents) else {
        return Err(GuardError::Refused(format!("{} cents are not there", charge.cents)));
    };
    effects.put(row.as_bytes(), left.to_be_bytes().to_vec());
    Ok(format!(r#"{{"charged":{},"left":{left}}}"#, charge.cents).into_bytes())
}

/// What each answer tells Fencepost: 2xx is done, 409 and 503 come back later, 422 is the job's own mistake.
fn status_of(answer: Result<Answer, GuardError>) -> Reply {
    match answer {
        Ok(Answer::Applied(result)) => (StatusCode::CREATED, text(&result)),
        Ok(Answer::Already(result)) => (StatusCode::OK, text(&result)),
        Ok(Answer::InProgress) => (StatusCode::CONFLICT, "this charge is being made; ask again".into()),
        Ok(Answer::Stale) => (StatusCode::PRECONDITION_FAILED, "a newer attempt was here".into()),
        Err(GuardError::Refused(why)) => (StatusCode::UNPROCESSABLE_ENTITY, why),
        Err(GuardError::Input) => (StatusCode::BAD_REQUEST, GuardError::Input.to_string()),
        Err(error @ GuardError::Ledger(_)) => unavailable(error),
    }
}

fn unavailable(_: GuardError) -> Reply {
    (StatusCode::SERVICE_UNAVAILABLE, "the ledger is not available".into())
}

fn account_row(account: &str) -> String {
    format!("account/{account}")
}

fn cents_of(row: Option<Vec<u8>>) -> u64 {
    let bytes = row.and_then(|row| <[u8; 8]>::try_from(row).ok());
    bytes.map_or(OPENING_CENTS, u64::from_be_bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[allow(
    clippy::disallowed_methods,
    reason = "a service of its own: its clock only says which keys are old"
)]
fn now() -> StoreTime {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    StoreTime::from_secs(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
