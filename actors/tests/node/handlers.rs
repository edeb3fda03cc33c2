//! Workers that have other handlers than others of their cell, over real sockets.
//!
//! Owns: that a job finds the worker that has its handler. Next: `claims.rs`, `commands.rs`.

use super::claims::{Counter, Owner, cell};
use super::*;
use fencepost::targets::HandlerContext;
use fencepost::worker::ToWorker;
use fencepost_core::job::{AttemptResult, Delivery};
use fencepost_core::target::Target;

#[test]
fn f14_a_worker_without_the_handler_costs_a_job_no_attempt_while_another_one_has_it() {
    run(async {
        let world = cell().await;
        let owner = Owner::start(&world, "a").await;
        owner.host(&world, true).await;
        let (lacking, having) = (Counter::new(&world), Counter::new(&world));
        lacking.owners.learn_board(&owner.holds(1));
        having.owners.learn_board(&owner.holds(1));
        let mut made = Vec::new();
        for (number, delivery) in [(1, Delivery::AtLeastOnce), (2, Delivery::AtMostOnce)] {
            made.push(
                owner
                    .create_for(number, (Target::Handler(name("resize")), delivery))
                    .await,
            );
        }
        let first = lacking.start_worker(&world, 6, HandlerRegistry::default()).await;
        for id in &made {
            while owner.job(&world, *id).await.refunded < 1 {
                world.settle().await;
            }
        }
        let mut handlers = HandlerRegistry::default();
        handlers.register(name("resize"), |_: HandlerContext| async { Ok(b"done".to_vec()) });
        let second = having.start_worker(&world, 8, handlers).await;
        for id in made {
            let mut job = owner.job(&world, id).await;
            while !job.state.is_finished() {
                world.settle().await;
                job = owner.job(&world, id).await;
            }
            assert_eq!((job.state, job.charged), (JobState::Succeeded, 1), "{:?}", job.attempts);
            let (last, before) = job.attempts.split_last().unwrap();
            assert_eq!(last.result, AttemptResult::Succeeded);
            assert!(before.iter().all(|attempt| attempt.result == AttemptResult::HandedBack));
        }
        for worker in [first, second] {
            worker.send(ToWorker::Stop).await.unwrap();
        }
    });
}
