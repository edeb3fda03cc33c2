# Short names for what the scripts do; each target is one command that works without make.
.PHONY: test lint format doc bench sim soak run

test:
	scripts/test

lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd sim && env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS cargo clippy --all-targets --release --locked -- -D warnings

format:
	cargo fmt --all
	cd sim && cargo fmt

doc:
	cargo doc --workspace --no-deps --locked

bench:
	cargo run --release --locked -- bench

sim:
	env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS cargo sim

# Fresh seeds for as long as FOR says.
FOR ?= 10m
soak:
	scripts/soak $(FOR)

run:
	cargo run --release --locked -- dev
